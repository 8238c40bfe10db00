/** Which tables are swept because of the current types of their fields. */
import { expect, test } from "vitest";
import type { SourceSchema } from "../../core/source";
import { dependentsOf } from "../../core/source/airtable/dependents";
import { readAsNow } from "../../core/sync/engine";
import { nameOutdated, type SchemaChecking } from "../../core/sync/modes/live/apply-schema";
import { DirtySet } from "../../core/sync/state";
import { teamsAndPeople } from "../support/teams";

const connection = { changeFeed: { dependents: dependentsOf } } as SchemaChecking["connection"];

function schemaWith(nameType: string): SourceSchema {
  const { people } = teamsAndPeople();
  const fields = people.fields.map((field) =>
    field.id === "fldPName" ? { ...field, sourceType: nameType } : field,
  );
  return { tables: [{ ...people, fields }] };
}

test("a table is recorded once for what it is, and again when it was something else in between", () => {
  const dirty = new DirtySet();
  const [one, other] = [schemaWith("text"), schemaWith("email")];
  const cache = { schema: one };
  const readAs = readAsNow(cache, connection).get("tblP");
  const live = {
    cache,
    connection,
    schemaTracker: { table: () => ({ live: { readAs } }) },
    dirty,
  } as unknown as Parameters<typeof nameOutdated>[0];
  const named = new Map();
  /** Is the table swept when these are its fields? */
  const isNamed = (schema: SourceSchema) => {
    cache.schema = schema;
    nameOutdated(live, named);
    const { isWhole } = dirty.counts("tblP");
    dirty.ackTable("tblP", dirty.sequence, new Set());
    return isWhole;
  };
  expect([one, other, structuredClone(other), one, other].map(isNamed)).toEqual([
    false,
    true,
    false,
    false,
    true,
  ]);
});

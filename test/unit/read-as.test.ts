/** When cells may differ from what was read, although no record was changed. */
import { expect, test } from "vitest";
import type { ChangeFeed, SourceField, SourceSchema } from "../../core/source";
import { dependentsOf } from "../../core/source/airtable/dependents";
import { isOutdated, readAsNow } from "../../core/sync/engine";
import { sourceField, teamsAndPeople } from "../support/teams";

const changeFeed = { dependents: dependentsOf } as ChangeFeed;
const choices = (...names: string[]) => ({
  choices: names.map((name, index) => ({ id: `sel${index}`, name })),
});

const select = sourceField("fldTKind", "Kind", "single_select", choices("a", "b"));
const formula = sourceField("fldPSum", "Sum", "formula", {
  formula: "{fldPName}",
  referencedFieldIds: ["fldPName"],
  result: { type: "singleLineText" },
});

function schemaWith(
  change: (field: SourceField) => SourceField | undefined = (field) => field,
): SourceSchema {
  const { teams, people } = teamsAndPeople();
  const changed = (fields: SourceField[]) => fields.flatMap((field) => change(field) ?? []);
  return {
    tables: [
      { ...teams, fields: changed([...teams.fields, select]) },
      { ...people, fields: changed([...people.fields, formula]) },
    ],
  };
}

/** The tables to read again when this is the field, by id. */
function outdatedBy(fieldId: string, become: (field: SourceField) => SourceField | undefined): string[] {
  const then = readAsNow({ schema: schemaWith() }, { changeFeed });
  const schema = schemaWith((field) => (field.id === fieldId ? become(field) : field));
  const now = readAsNow({ schema }, { changeFeed });
  return [...now].flatMap(([id, readAs]) => (isOutdated(then.get(id), readAs) ? [id] : []));
}

test.for<[string, string, (field: SourceField) => SourceField | undefined, string[]]>([
  ["nothing", "fldTName", (field) => field, []],
  ["another name", "fldTName", (field) => ({ ...field, name: "Title" }), []],
  [
    "another type, which lookups of it show too",
    "fldTName",
    (field) => ({ ...field, sourceType: "email" }),
    ["tblT", "tblP"],
  ],
  ["another type, which nothing shows", "fldPName", (field) => ({ ...field, sourceType: "email" }), ["tblP"]],
  ["its end", "fldTKind", () => undefined, []],
  ["a choice more", "fldTKind", (field) => ({ ...field, options: choices("a", "b", "c") }), []],
  ["a choice's other name", "fldTKind", (field) => ({ ...field, options: choices("a", "B") }), ["tblT"]],
  ["a choice less", "fldTKind", (field) => ({ ...field, options: choices("a") }), ["tblT"]],
  [
    "another formula",
    "fldPSum",
    (field) => ({ ...field, options: { ...field.options, formula: "1" } }),
    ["tblP"],
  ],
  [
    "the same formula, reported in another order, with a result in another form",
    "fldPSum",
    ({ options: { formula, referencedFieldIds } = {}, ...field }) => ({
      ...field,
      options: { result: { type: "number" }, referencedFieldIds, formula },
    }),
    [],
  ],
])("%s of a field", ([, fieldId, become, tables]) => {
  expect(outdatedBy(fieldId, become)).toEqual(tables);
});

test("a field without a record is outdated", () => {
  expect(isOutdated(undefined, {})).toBe(true);
});

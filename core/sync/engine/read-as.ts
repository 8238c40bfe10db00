/**
 * Remembers with the replica which definition each field had when a table was last read completely. If a field gets
 * another type, computes something else, or has a renamed choice, cells change that a feed may not report and that no
 * record's modification time shows. Because the comparison is with the definitions at the time of reading, and not
 * with those last seen, a change while no worker held the base is noticed, too.
 */
import { markRead, READ_VIEW, type ReadAs, type Replica, traitsOf } from "../../replica";
import type { SourceConnection, SourceField, SourceSchema } from "../../source";
import type { BaseCache } from "../state";
import type { SchemaTracker } from "./schema-tracker";

const known = new WeakMap<SourceSchema, Map<string, ReadAs>>();

/**
 * Returns the field definitions by table id, according to the latest schema check: those of a table that is read from
 * now on.
 */
export function readAsNow(
  { schema }: Pick<BaseCache, "schema">,
  { changeFeed }: Pick<SourceConnection, "changeFeed">,
): ReadonlyMap<string, ReadAs> {
  if (!schema || schema.isRecalled) return new Map();
  const found = known.get(schema);
  if (found) return found;
  const dependents = changeFeed?.dependents(schema);
  const tables = new Map<string, ReadAs>(
    schema.tables.map(({ id, viewId }): [string, ReadAs] => [id, viewId ? { [READ_VIEW]: [viewId] } : {}]),
  );
  // A copied cell may be computed from cells that are not copied.
  for (const table of schema.whole ?? schema.tables) {
    for (const field of table.fields) {
      const tokens = tokensOf(field);
      const reached = dependents?.hops(table.id, field.id) ?? [];
      for (const id of new Set([table.id, ...reached.map((hop) => hop.tableId)])) {
        const readAs = tables.get(id);
        if (readAs) readAs[field.id] = tokens;
      }
    }
  }
  known.set(schema, tables);
  return tables;
}

/**
 * Returns one token for the field's definition, and one for each of its choices: an additional choice changes no cell.
 */
function tokensOf({ type, sourceType, options = {} }: SourceField): string[] {
  // The result of a computed field follows from its definition and from other fields.
  const { result: _, choices, ...computes } = options;
  const isChosen = Array.isArray(choices) ? (choices as { id?: unknown; name?: unknown }[]) : [];
  return [
    token(sourceType, traitsOf(type).computed ? Object.entries(computes).toSorted() : null),
    ...isChosen.map(({ id, name }) => token(id, name)),
  ];
}

function token(...parts: unknown[]): string {
  return Bun.hash(JSON.stringify(parts)).toString(36);
}

/**
 * Returns whether cells may have changed since they were read, although no record was edited, or the records of another
 * view were read. Added and deleted fields do not count.
 */
export function isOutdated(then: ReadAs | undefined, now: ReadAs): boolean {
  if (!then || then[READ_VIEW]?.[0] !== now[READ_VIEW]?.[0]) return true;
  return Object.entries(then).some(([fieldId, tokens]) => {
    const current = now[fieldId];
    return current !== undefined && tokens.some((one) => !current.includes(one));
  });
}

/** Stores the definitions with which a table was read completely. */
export async function rememberRead(
  { replica, epoch, schemaTracker }: { replica: Replica; epoch: number; schemaTracker: SchemaTracker },
  tableId: string,
  readAs: ReadAs | undefined,
): Promise<void> {
  const before = schemaTracker.catalog.get(tableId);
  if (!readAs || !before || before.readAs === readAs) return;
  if (Bun.deepEquals(before.readAs, readAs)) {
    // The next sweep need not compare them again.
    before.readAs = readAs;
    return;
  }
  await markRead(replica, epoch, tableId, readAs);
  // The catalog may have been loaded again meanwhile.
  for (const one of [before, schemaTracker.catalog.get(tableId)]) if (one) one.readAs = readAs;
}

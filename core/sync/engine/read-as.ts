/**
 * What the source's fields are when a table is read whole, remembered with the replica: a field that has another type
 * or computes something else, or a choice with another name, changes cells that no feed may tell of and no record's
 * time of change shows. As it is compared with what was read, and not with what was seen last, nothing is missed while
 * nobody looked.
 */
import { markRead, type ReadAs, type Replica, traitsOf } from "../../replica";
import type { SourceConnection, SourceField, SourceSchema } from "../../source";
import type { BaseCache } from "../state";
import type { SchemaTracker } from "./schema-tracker";

const known = new WeakMap<SourceSchema, Map<string, ReadAs>>();

/** By table id, of the schema that was looked at last: what a table is read as that is read from now on. */
export function readAsNow(
  { schema }: Pick<BaseCache, "schema">,
  { changeFeed }: Pick<SourceConnection, "changeFeed">,
): ReadonlyMap<string, ReadAs> {
  if (!schema) return new Map();
  const found = known.get(schema);
  if (found) return found;
  const dependents = changeFeed?.dependents(schema);
  const tables = new Map<string, ReadAs>(schema.tables.map(({ id }) => [id, {}]));
  for (const table of schema.tables) {
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

/** One for what the field is, and one for each of its choices: a choice more changes no cell. */
function tokensOf({ type, sourceType, options = {} }: SourceField): string[] {
  // What a computed field results in follows from what it computes, and from other fields.
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

/** May cells be other than they were read, though no record was changed? Fields that come or go are not in question. */
export function isOutdated(then: ReadAs | undefined, now: ReadAs): boolean {
  if (!then) return true;
  return Object.entries(then).some(([fieldId, tokens]) => {
    const current = now[fieldId];
    return current !== undefined && tokens.some((one) => !current.includes(one));
  });
}

/** Remembers what a table was read as that has been read whole. */
export async function rememberRead(
  { replica, epoch, schemaTracker }: { replica: Replica; epoch: number; schemaTracker: SchemaTracker },
  tableId: string,
  readAs: ReadAs | undefined,
): Promise<void> {
  const before = schemaTracker.catalog.get(tableId);
  if (!readAs || !before || Bun.deepEquals(before.readAs, readAs)) return;
  await markRead(replica, epoch, tableId, readAs);
  // The catalog may have been loaded again meanwhile.
  for (const one of [before, schemaTracker.catalog.get(tableId)]) if (one) one.readAs = readAs;
}

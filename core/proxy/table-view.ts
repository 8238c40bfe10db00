/**
 * Which table a request means, and which fields the keys of its answer mean.
 *
 * Requests and answers speak in names, which people change; the replica's catalog has them as of the last look at
 * the schema. What it does not know is looked for in the catalog as it is now, then in the source's own schema.
 */
import { proxied, type SourceSchema, type SourceTable } from "../source";
import type { LiveTable, ReplicaHandle } from "./replica-handle";

export interface TableView {
  tableId: string;
  /** Undefined: the source has the table, the replica not yet. */
  live: LiveTable | undefined;
  /** The field's id, or undefined for a name that is not known. */
  fieldId(key: string): string | undefined;
  /** Is the replica behind the source's schema, as far as this request shows? */
  isOutdated: boolean;
  /** Is every key known? If not, the record has to be read anew, keyed by field id. */
  isComplete: boolean;
  /** Is one of the keys a name, which another field may have by now? */
  isByName: boolean;
}

/** Is this an id of a table or of a field, rather than a name? */
export function isTableOrFieldId(ref: string): boolean {
  return isTableId(ref) || isFieldId(ref);
}

function isTableId(ref: string): boolean {
  return proxied.ids.isSurely("table", ref);
}

/** A key of this form that is not known is a field newer than the schema at hand. */
function isFieldId(ref: string): boolean {
  return proxied.ids.isSurely("field", ref);
}

/** A table under its names: of the catalog, or of the source's schema. */
export interface NamedTable {
  tableId: string;
  name: string;
  fields: { id: string; name: string }[];
}

/**
 * Finds the table `ref` names (its id, its name, else its name in other case, or the id of one of its fields) and
 * what `keys` mean in it.
 *
 * @param askSource the source's schema; asked only for what the catalog does not know
 * @returns null when the source does not know the table either
 */
export async function viewTable(
  handle: ReplicaHandle,
  ref: string,
  keys: ReadonlySet<string>,
  askSource: () => Promise<SourceSchema>,
): Promise<TableView | null> {
  for (const load of [() => handle.tables(), () => handle.reloadTables()]) {
    const tables = await load();
    const named = findNamedTable([...tables.values()].map(ofCatalog), ref);
    if (!named) continue;
    const view = viewOf(named, tables.get(named.tableId), keys);
    if (view.isComplete) return view;
  }
  const schema = await askSource();
  const named = findNamedTable(schema.tables.map(ofSource), ref);
  if (!named) return null;
  const live = (await handle.tables()).get(named.tableId);
  return {
    ...viewOf(named, live, keys),
    isOutdated: live !== undefined || !isFirstSync(await handle.tables()),
  };
}

/** Until its first sync has built a table, a replica is not behind: it is on its way. */
function isFirstSync(tables: ReadonlyMap<string, LiveTable>): boolean {
  return tables.size === 0;
}

function viewOf(named: NamedTable, live: LiveTable | undefined, keys: ReadonlySet<string>): TableView {
  const ids = new Set(named.fields.map((field) => field.id));
  const byName = new Map(named.fields.map((field) => [field.name, field.id]));
  const fieldId = (key: string) => {
    if (ids.has(key)) return key;
    return byName.get(key) ?? (isFieldId(key) ? key : undefined);
  };
  const all = [...keys];
  return {
    tableId: named.tableId,
    live,
    fieldId,
    isOutdated: all.some((key) => !ids.has(key) && !byName.has(key)),
    isComplete: all.every((key) => fieldId(key) !== undefined),
    isByName: all.some((key) => byName.has(key) && !ids.has(key)),
  };
}

/** Ids win over names; a name in other case is better than none. */
export function findNamedTable(tables: NamedTable[], ref: string): NamedTable | undefined {
  const folded = ref.toLowerCase();
  return (
    tables.find((table) => table.tableId === ref) ??
    tables.find((table) => table.name === ref) ??
    (isTableId(ref) ? undefined : tables.find((table) => table.name.toLowerCase() === folded)) ??
    (isFieldId(ref) ? tables.find((table) => table.fields.some((field) => field.id === ref)) : undefined)
  );
}

export function ofCatalog({ spec }: LiveTable): NamedTable {
  const fields = spec.columns.map((column) => ({ id: column.fieldId, name: column.sourceName }));
  return { tableId: spec.tableId, name: spec.sourceName, fields };
}

export function ofSource({ id, name, fields }: SourceTable): NamedTable {
  return { tableId: id, name, fields };
}

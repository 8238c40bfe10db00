/**
 * Resolves the table that a request names, and the fields that the keys of its answer name.
 *
 * Requests and answers contain names, which users change; the replica's catalog has them as of the last schema check.
 * Unknown names are looked up in a freshly loaded catalog, then in the source's own schema.
 */
import { proxied, type SourceSchema, type SourceTable } from "../source";
import type { LiveTable, ReplicaHandle } from "./replica-handle";

export interface TableView {
  tableId: string;
  /** Undefined: the source has the table, the replica not yet. */
  live: LiveTable | undefined;
  /** The field's id, or undefined for an unknown name. */
  fieldId(key: string): string | undefined;
  /** Is the replica behind the source's schema, as far as this request shows? */
  isOutdated: boolean;
  /** Is every key known? If not, the record has to be read again, keyed by field id. */
  isComplete: boolean;
  /** Is one of the keys a name, which may belong to another field by now? */
  isByName: boolean;
}

/** Is this an id of a table or of a field, rather than a name? */
export function isTableOrFieldId(ref: string): boolean {
  return isTableId(ref) || isFieldId(ref);
}

function isTableId(ref: string): boolean {
  return proxied.ids.isSurely("table", ref);
}

/** An unknown key of this form is a field newer than the loaded schema. */
function isFieldId(ref: string): boolean {
  return proxied.ids.isSurely("field", ref);
}

/** A table with its names: from the catalog, or from the source's schema. */
export interface NamedTable {
  tableId: string;
  name: string;
  fields: { id: string; name: string }[];
}

/**
 * Finds the table that `ref` names (by its id, its name, its name in other case, or the id of one of its fields) and
 * what `keys` mean in it.
 *
 * @param askSource returns the source's schema; called only for what the catalog does not know
 * @returns null if the source does not know the table either
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

/** A replica whose first sync has not built a table yet is not behind. */
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

/** Ids win over names; a name in other case is used if no exact match exists. */
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

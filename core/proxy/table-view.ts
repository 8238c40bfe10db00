/**
 * Resolves the table that a request names, and the fields that the keys of its answer name.
 *
 * Requests and answers contain names, which users change; the replica's catalog has them as of the last schema check.
 * Unknown names are looked up in a freshly loaded catalog, then in the source's own schema.
 */
import {
  isTableCopied,
  proxied,
  type SourceSchema,
  type SourceSelection,
  type SourceTable,
  treatmentsOf,
} from "../source";
import type { LiveTable, ReplicaHandle } from "./replica-handle";

export interface TableView {
  tableId: string;
  /** Undefined: the source has the table, the replica not yet. */
  live: LiveTable | undefined;
  /** The base does not copy the table. */
  isLeftOut: boolean;
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
 * @param selection what of the base is copied; null: everything
 * @returns null if the source does not know the table either
 */
export async function viewTable(
  handle: ReplicaHandle,
  ref: string,
  keys: ReadonlySet<string>,
  askSource: () => Promise<SourceSchema>,
  selection: SourceSelection | null,
): Promise<TableView | null> {
  if (selection && isTableId(ref) && !isTableCopied(selection, ref)) return leftOut(ref);
  const isOmitted = omittedIn(selection);
  let known: TableView | undefined;
  for (const load of [() => handle.tables(), () => handle.reloadTables()]) {
    const tables = await load();
    const named = findNamedTable([...tables.values()].map(ofCatalog), ref);
    if (!named) continue;
    known = viewOf(named, tables.get(named.tableId), keys, isOmitted);
    if (known.isComplete) return known;
  }
  const { tables, whole = tables } = await askSource();
  const named = findNamedTable(whole.map(ofSource), ref);
  if (!named) return null;
  if (selection && !isTableCopied(selection, named.tableId)) return leftOut(named.tableId);
  const live = (await handle.tables()).get(named.tableId);
  const view = viewOf(named, live, keys, isOmitted);
  // The catalog does not have the names of omitted fields, and is not behind because of that.
  const isOmittedKey = (key: string) => isOmitted(view.fieldId(key) ?? "");
  const isExplained = (key: string) => isOmittedKey(key) || known?.fieldId(key) === view.fieldId(key);
  const isSame = selection !== null && known?.tableId === view.tableId && [...keys].every(isExplained);
  return { ...view, isOutdated: live ? !isSame : !isFirstSync(await handle.tables()) };
}

/** A table whose writes concern no replica. */
function leftOut(tableId: string): TableView {
  const none = { live: undefined, fieldId: () => undefined };
  return { tableId, ...none, isLeftOut: true, isOutdated: false, isComplete: true, isByName: false };
}

function omittedIn(selection: SourceSelection | null): (fieldId: string) => boolean {
  const treatments = selection ? treatmentsOf(selection) : undefined;
  return (fieldId) => treatments?.get(fieldId) === "omitted";
}

/** A replica whose first sync has not built a table yet is not behind. */
function isFirstSync(tables: ReadonlyMap<string, LiveTable>): boolean {
  return tables.size === 0;
}

function viewOf(
  named: NamedTable,
  live: LiveTable | undefined,
  keys: ReadonlySet<string>,
  isOmitted: (fieldId: string) => boolean,
): TableView {
  const ids = new Set(named.fields.map((field) => field.id));
  const byName = new Map(named.fields.map((field) => [field.name, field.id]));
  const fieldId = (key: string) => {
    if (ids.has(key)) return key;
    return byName.get(key) ?? (isFieldId(key) ? key : undefined);
  };
  const all = [...keys].filter((key) => !isOmitted(key));
  return {
    tableId: named.tableId,
    live,
    isLeftOut: false,
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
  const fields = spec.columns
    .filter(({ filesOf }) => filesOf === undefined)
    .map((column) => ({ id: column.fieldId, name: column.sourceName }));
  return { tableId: spec.tableId, name: spec.sourceName, fields };
}

export function ofSource({ id, name, fields }: SourceTable): NamedTable {
  return { tableId: id, name, fields };
}

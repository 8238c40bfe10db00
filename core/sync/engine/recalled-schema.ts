/**
 * The schema as the replica's catalog has it, for a worker that has just started and cannot read the source's: rows of the
 * tables that the replica has are synced meanwhile.
 */
import type { Catalog, ColumnSpec, TableSpec } from "../../replica";
import {
  isTableCopied,
  type SourceField,
  type SourceSchema,
  type SourceSelection,
  type SourceTable,
  selectedTable,
} from "../../source";

/**
 * Returns the tables of the catalog that the selection copies. What it does not know (how fields are computed, the names of
 * most choices) is not compared with anything: see `SourceSchema.isRecalled`.
 */
export function recalledSchema(catalog: Catalog, selection: SourceSelection | null): SourceSchema {
  const known = [...catalog.values()].map(({ spec }) => tableOf(spec));
  const tables = selection
    ? known.flatMap((table) => (isTableCopied(selection, table.id) ? [ofSelection(table, selection)] : []))
    : known;
  return { tables, isRecalled: true };
}

/** What the table already lacked is still missing, even if the selection has it by now. */
function ofSelection(table: SourceTable, { tables }: SourceSelection): SourceTable {
  const selected = selectedTable(table, tables[table.id]);
  const partial = selected.partial ?? table.partial;
  return { ...selected, ...(partial && { partial }) };
}

/** Returns a table as far as the replica knows it. */
export function tableOf({ tableId, sourceName, description, columns, partial }: TableSpec): SourceTable {
  return {
    id: tableId,
    name: sourceName,
    description,
    primaryFieldId: "",
    fields: columns.filter(({ filesOf }) => filesOf === undefined).map(fieldOf),
    ...(partial && { partial }),
  };
}

/** The same for a field. */
export function fieldOf(column: ColumnSpec): SourceField {
  const { fieldId, sourceName, description, type, sourceType, result, choices, linkedTableId } = column;
  return { id: fieldId, name: sourceName, description, type, sourceType, result, choices, linkedTableId };
}

/**
 * Removes what the replica still holds, outside of its tables, of cells that a base no longer copies as they are: from
 * the recorded changes and from the recent-writes log.
 */
import type { SourceSchema } from "../source";
import { onReplica } from "./connection";
import type { Catalog } from "./plan";
import type { Replica } from "./replica";

export interface CellsToForget {
  tableId: string;
  /** SQL name of the table; null: only the recent-writes log has such cells. */
  name: string | null;
  /** The fields and, with the table's name, their columns; null: all cells of the table. */
  columns: { fieldId: string; name: string | null }[] | null;
}

/**
 * Returns the cells that live tables have in plain text and that the selection omits, hashes or leaves out. Fields that
 * were deleted in the source are not among them: their recorded changes stay.
 */
export function cellsToForget(catalog: Catalog, { tables, whole = [] }: SourceSchema): CellsToForget[] {
  const found: CellsToForget[] = [];
  for (const { id, fields } of whole) {
    const live = catalog.get(id)?.spec;
    if (!live) continue;
    const copied = tables.find((table) => table.id === id);
    const plain = new Set(copied?.fields.filter(({ type }) => type !== "hashed").map((field) => field.id));
    const known = new Set(fields.map((field) => field.id));
    const columns = live.columns.filter(({ fieldId, filesOf = fieldId, type }) => {
      // Details of attachments go with their field.
      return known.has(filesOf) && !plain.has(filesOf) && type !== "hashed";
    });
    const named = columns.map(({ fieldId, name }) => ({ fieldId, name }));
    if (!copied) found.push({ tableId: id, name: live.name, columns: null });
    else if (named.length > 0) found.push({ tableId: id, name: live.name, columns: named });
  }
  return found;
}

/**
 * Returns the cells that the selection omits, hashes or leaves out, whether or not tables have them: the recent-writes log may
 * have some from a proxy that did not know the selection yet, or from before, if what forgot them was cut short.
 */
export function cellsNotShown({ tables, whole = [] }: SourceSchema): CellsToForget[] {
  return whole.flatMap(({ id, fields }) => {
    const copied = tables.find((table) => table.id === id);
    const plain = new Set(copied?.fields.filter(({ type }) => type !== "hashed").map((field) => field.id));
    const hidden = fields.filter((field) => !plain.has(field.id));
    const columns = copied ? hidden.map((field) => ({ fieldId: field.id, name: null })) : null;
    return columns?.length === 0 ? [] : [{ tableId: id, name: null, columns }];
  });
}

/** @throws BasetideError `lease_lost` */
export async function forgetCells(
  { sql, swap }: Replica,
  epoch: number,
  { tableId, name, columns }: CellsToForget,
): Promise<void> {
  const fieldIds = columns?.map(({ fieldId }) => fieldId) ?? null;
  const names = columns?.map((column) => column.name) ?? null;
  await onReplica(
    () => sql`select ${sql.unsafe(swap)}.forget_cells(${epoch}, ${tableId}, ${name}, ${fieldIds}::text[],
      ${names}::text[])`,
  );
}

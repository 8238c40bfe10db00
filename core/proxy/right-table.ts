/**
 * Finds the table of a write if the request uses a name that may belong to another table by now.
 *
 * Neither records nor fields move between tables: the table that has the record or the field is the right one, whatever
 * the catalog says about the name. If no table has the record, the source's schema decides.
 */
import type { SourceSchema } from "../source";
import type { WriteAnswer } from "./answer";
import type { ReplicaHandle } from "./replica-handle";
import { findNamedTable, isTableOrFieldId, ofCatalog, ofSource } from "./table-view";

interface Addressed {
  tableRef: string;
  ids: string[];
  answer: WriteAnswer | null;
  /** The records are new: no table had them before. */
  isCreation?: boolean;
  /** A table that had one of the records before the source was asked, as far as is known. */
  locatedIn?: string | undefined;
}

/**
 * @param askSchema returns the source's current schema
 * @returns an id or a name of the table; `isMoved`: the catalog has the name for another table
 * @throws BasetideError `shape_changed`, `replica_unavailable`
 */
export async function rightTable(
  handle: ReplicaHandle,
  { tableRef, ids, answer, isCreation = false, locatedIn }: Addressed,
  askSchema: () => Promise<SourceSchema>,
): Promise<{ ref: string; isMoved: boolean }> {
  const asNamed = { ref: tableRef, isMoved: false };
  if (isTableOrFieldId(tableRef)) return asNamed;
  const tables = [...(await handle.tables()).values()];
  const named = findNamedTable(tables.map(ofCatalog), tableRef)?.tableId;
  if (named === undefined) return asNamed;
  const isNamed = ({ spec }: (typeof tables)[number]) => spec.tableId === named;
  const keys = new Set(answer?.records.flatMap((record) => Object.keys(record.fields)));
  const owner = tables.find(({ spec }) => spec.columns.some(({ fieldId }) => keys.has(fieldId)));
  if (owner) return { ref: owner.spec.tableId, isMoved: !isNamed(owner) };
  if (isCreation || locatedIn === named) return asNamed;
  if ((await handle.locate(tables.filter(isNamed), ids)).size > 0) return asNamed;
  const [other] = (
    await handle.locate(
      tables.filter((table) => !isNamed(table)),
      ids,
    )
  ).keys();
  if (other !== undefined) return { ref: other, isMoved: true };
  // The records are deleted and no table has them: nothing is left to change.
  if (answer?.records.length === 0) return asNamed;
  const { tables: copied, whole = copied } = await askSchema();
  const now = findNamedTable(whole.map(ofSource), tableRef)?.tableId;
  return { ref: now ?? tableRef, isMoved: now !== undefined && now !== named };
}

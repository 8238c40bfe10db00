/**
 * Answers a read from a replica, in the source's own JSON, if every requested cell can be restored exactly. All other
 * reads go to the source.
 */
import { MB } from "../../byte-units";
import {
  type CatalogTable,
  type ColumnSpec,
  READ_VIEW,
  type ReadRows,
  type Replica,
  readRows,
} from "../../replica";
import { type CellMaker, cellMaker, isNullIfEmpty } from "./cells";
import { translateFormula } from "./formula";
import { readOffset, writeOffset } from "./offset";
import type { ReadRequest } from "./request";
import { sortKeys } from "./sort";

/** A larger table takes longer than 20 ms to sort, or to search for a cell: about 10,000 wide rows. */
const MAX_SORTED_BYTES = 16 * MB;
/** A page ends here, and other requests wait for some milliseconds while it is made. Clients go on as long as there is an offset. */
const MAX_PAGE_BYTES = MB;

export interface ReadAnswer {
  status: 200 | 422;
  body: unknown;
  /** The data is at least as recent as this. */
  asOf: Date | null;
}

/** The source's answer for an offset that it no longer knows: the client starts the list again. */
export const LOST_OFFSET: ReadAnswer = {
  status: 422,
  body: { error: { type: "LIST_RECORDS_ITERATOR_NOT_AVAILABLE" } },
  asOf: null,
};

/**
 * @param tables of the replica, by the source's table id
 * @returns undefined for a read that only the source can answer; never if `request.offset` was issued by this proxy
 * @throws BasetideError `shape_changed`, `replica_unavailable`
 */
export async function answerRead(
  replica: Replica,
  tables: ReadonlyMap<string, CatalogTable>,
  request: ReadRequest,
): Promise<ReadAnswer | undefined> {
  const cursor = request.offset === undefined ? undefined : readOffset(request.offset);
  const otherwise = request.offset === undefined ? undefined : LOST_OFFSET;
  const table = tableOf(tables, request.tableRef);
  if (!table || (request.offset !== undefined && cursor?.tableId !== table.spec.tableId)) return otherwise;
  if (lacks(table, request)) return otherwise;
  const { columns } = table.spec;
  const makers = makersOf(columns, request.fields);
  if (!makers) return otherwise;
  const formula = request.formula === undefined ? undefined : translateFormula(request.formula, columns);
  if (request.formula !== undefined && !formula) return otherwise;
  const sort = sortKeys(request.sort, columns);
  if (!sort || (cursor && cursor.after.keys.length !== sort.length)) return otherwise;
  const given = cursor?.given ?? 0;
  const atMost = Math.min(request.pageSize, request.maxRecords - given);
  if (atMost < 1) return otherwise;
  const found = await readRows(replica, table, {
    columns: makers.map(({ column }) => column.name),
    blankColumns: makers.filter(({ make }) => make === blank).map(({ column }) => column.name),
    condition: formula?.condition,
    conditionColumns: formula?.columns,
    sort,
    after: cursor?.after,
    ids: request.recordId === undefined ? undefined : [request.recordId],
    // One row more than requested tells whether there is another page.
    limit: atMost + 1,
    maxSortedBytes: MAX_SORTED_BYTES,
    maxBytes: MAX_PAGE_BYTES,
  });
  if (found.isTooLarge || found.isUnknown || found.isFilled || found.withIssues > 0 || !found.asOf)
    return otherwise;
  const count = Math.min(found.rows.length, atMost);
  const hasMore = (found.isCut || found.rows.length > atMost) && given + count < request.maxRecords;
  // A later page with such a cell could not be continued by the source.
  if (found.hasDecisiveIssues || (hasMore && found.hasIssues)) return otherwise;
  const records = found.rows.slice(0, count).map((row) => recordOf(row, makers, request.byFieldId));
  const { asOf } = found;
  // A record that is not in this table may be in another: the source searches there too.
  if (request.recordId !== undefined) return records[0] ? { status: 200, body: records[0], asOf } : otherwise;
  const after = { id: records.at(-1)?.id ?? "", keys: found.keys[records.length - 1] ?? [] };
  const next = { tableId: table.spec.tableId, after, given: given + records.length };
  return { status: 200, body: hasMore ? { records, offset: writeOffset(next) } : { records }, asOf };
}

interface Making {
  column: ColumnSpec;
  make: CellMaker;
}

/** For cells of which only that they are empty can be restored. */
const blank: CellMaker = () => undefined;

/** Finds a table by its id or its exact name. */
function tableOf(tables: ReadonlyMap<string, CatalogTable>, ref: string): CatalogTable | undefined {
  return tables.get(ref) ?? tables.values().find(({ spec }) => spec.sourceName === ref);
}

/**
 * Does the table lack records or fields of the answer, because the base does not copy them? Records of other views are
 * there again only once the table has been read without a view.
 */
function lacks({ spec, readAs }: CatalogTable, { fields }: ReadRequest): boolean {
  if (spec.partial === "records" || readAs?.[READ_VIEW]) return true;
  return spec.partial === "fields" && fields.length === 0;
}

/** Undefined if a field is unknown, or cells of its column cannot be restored. */
function makersOf(all: ColumnSpec[], fields: string[]): Making[] | undefined {
  // The source has no field for the details of attachments.
  const columns = all.filter(({ filesOf }) => filesOf === undefined);
  const wanted =
    fields.length === 0
      ? columns
      : fields.map((ref) => columns.find(({ fieldId, sourceName }) => fieldId === ref || sourceName === ref));
  const making: Making[] = [];
  for (const column of new Set(wanted)) {
    const make = column && (cellMaker(column) ?? (isNullIfEmpty(column) ? blank : undefined));
    if (!make) return undefined;
    making.push({ column, make });
  }
  return making;
}

function recordOf(
  [id, createdTime, ...cells]: ReadRows["rows"][number],
  makers: Making[],
  byFieldId: boolean,
) {
  const fields: Record<string, unknown> = {};
  for (const [index, { column, make }] of makers.entries()) {
    const cell = make(cells[index]!);
    if (cell !== undefined) fields[byFieldId ? column.fieldId : column.sourceName] = cell;
  }
  return { id: id as string, createdTime: createdTime as string, fields };
}

/**
 * Lists: selects the rows, sorts them, and answers page by page.
 *
 * L1. An iterator's rows are fixed when it starts; their cells are read with each page. A row that is deleted meanwhile
 *     makes its page shorter; a new one is not included. The last page has no offset.
 */
import { choiceRank, resultTypeOf } from "./computed";
import { apiError } from "./errors";
import { compileFormula, FormulaSyntaxError } from "./formula";
import type { Iterator } from "./iterators";
import type { ListParams } from "./list-params";
import {
  fieldResolver,
  isEmptyCell,
  type SandboxBase,
  type SandboxField,
  type SandboxRow,
  type SandboxTable,
} from "./model";
import { PageBytes } from "./page";
import type { PageStamp } from "./page-cache";
import { recordTemplate } from "./record";
import { type ApiAnswer, type ListFault, okAnswer } from "./request";
import type { Sandbox } from "./sandbox";

export function listPage(
  sandbox: Sandbox,
  base: SandboxBase,
  table: SandboxTable,
  params: ListParams,
  fault?: ListFault,
): ApiAnswer {
  if (fault === "empty_list") return okAnswer({ records: [] });
  const { iterator, index } = params.offset
    ? sandbox.iterators.resume(table.id, params.offset)
    : { iterator: startIterator(sandbox, base, table, params), index: 0 };
  const end = Math.min(iterator.rowIds.length, index + params.pageSize);
  const first = fault === "repeat_page" ? Math.max(0, index - params.pageSize) : index;
  const bytes = pageBytes(sandbox, base, table, iterator.rowIds, first, first + end - index, params);
  // An endless list continues at its start.
  const next = end < iterator.rowIds.length ? end : fault === "endless_list" && end > 0 ? 0 : undefined;
  const tail = next === undefined ? "}" : `,"offset":"${sandbox.iterators.token(iterator, next)}"}`;
  return { status: 200, page: { bytes, tail } };
}

function startIterator(
  sandbox: Sandbox,
  base: SandboxBase,
  table: SandboxTable,
  params: ListParams,
): Iterator {
  table.rowIds ??= [...table.rows.keys()];
  let ids = table.rowIds;
  if (params.view?.filter !== undefined) ids = filtered(sandbox, base, table, params.view.filter, ids);
  if (params.filter !== undefined) ids = filtered(sandbox, base, table, params.filter, ids);
  if (params.sort.length > 0) ids = sorted(sandbox, base, table, params.sort, ids);
  if (params.maxRecords !== undefined) ids = ids.slice(0, params.maxRecords);
  return sandbox.iterators.start(table.id, ids);
}

function filtered(
  sandbox: Sandbox,
  base: SandboxBase,
  table: SandboxTable,
  text: string,
  ids: string[],
): string[] {
  try {
    const formula = compileFormula(text, fieldResolver(table));
    // A list of ids need not check every row: replicators use it to re-read changed records.
    const among = formula.recordIds ? new Set(formula.recordIds) : undefined;
    const candidates = among && among.size < ids.length ? ids.filter((id) => among.has(id)) : ids;
    return candidates.filter((id) => {
      const row = table.rows.get(id);
      return row !== undefined && formula.isTrue(sandbox.computed.rowContext(base, table, row));
    });
  } catch (error) {
    if (!(error instanceof FormulaSyntaxError)) throw error;
    const message = `The formula for filtering records is invalid: ${error.message}`;
    throw apiError(422, "INVALID_FILTER_BY_FORMULA", message);
  }
}

const collator = new Intl.Collator("en", { numeric: true });

/**
 * Ascending puts blanks first; selects are sorted by the order of their choices, links by name; ties keep their order.
 */
function sorted(
  sandbox: Sandbox,
  base: SandboxBase,
  table: SandboxTable,
  sort: ListParams["sort"],
  ids: string[],
): string[] {
  const keyed = ids.flatMap((id) => {
    const row = table.rows.get(id);
    return row ? [{ id, keys: sort.map(({ field }) => sortKey(sandbox, base, table, row, field)) }] : [];
  });
  keyed.sort((a, b) => {
    for (const [i, { isDescending }] of sort.entries()) {
      const order = compareKeys(a.keys[i], b.keys[i]);
      if (order !== 0) return isDescending ? -order : order;
    }
    return 0;
  });
  return keyed.map(({ id }) => id);
}

type SortKey = number | string | undefined;

function sortKey(
  sandbox: Sandbox,
  base: SandboxBase,
  table: SandboxTable,
  row: SandboxRow,
  field: SandboxField,
): SortKey {
  const value = sandbox.computed.cell(base, table, row, field);
  if (isEmptyCell(value)) return undefined;
  if (typeof value === "number") return value;
  if (value === true) return 1;
  const type = resultTypeOf(field);
  if (type === "singleSelect" && typeof value === "string") return choiceRank(field).get(value) ?? value;
  return sandbox.computed.text(base, table, row, field);
}

function compareKeys(a: SortKey, b: SortKey): number {
  if (a === undefined || b === undefined) return (a === undefined ? 0 : 1) - (b === undefined ? 0 : 1);
  if (typeof a === "number" && typeof b === "number") return a - b;
  return collator.compare(String(a), String(b));
}

/** The page's bytes, from the cache while nothing in it has changed. */
function pageBytes(
  sandbox: Sandbox,
  base: SandboxBase,
  table: SandboxTable,
  list: readonly string[],
  from: number,
  to: number,
  params: ListParams,
): PageBytes {
  if (params.shape.text) return makePage(sandbox, base, table, list.slice(from, to), params);
  const key = `${base.sharedFrom ?? base.id}|${table.id}|${params.shapeKey}|${list[from] ?? ""}|${to - from}`;
  const inTable = {
    schemaVersion: base.schemaVersion,
    foreignVersion: sandbox.computed.foreignVersion(base, table),
    tableVersion: table.version,
    list,
  };
  const unchanged = sandbox.pages.findInTable(key, inTable);
  if (unchanged) return unchanged;
  const ids = list.slice(from, to);
  const stamp = { ...inTable, ...stampOf(table, ids) };
  const page = sandbox.pages.find(key, ids, stamp) ?? makePage(sandbox, base, table, ids, params);
  sandbox.pages.keep(key, ids, stamp, page);
  return page;
}

function stampOf(table: SandboxTable, ids: readonly string[]): Pick<PageStamp, "rowVersion" | "rows"> {
  let [rowVersion, rows] = [0, 0];
  for (const id of ids) {
    const row = table.rows.get(id);
    if (!row) continue;
    rows += 1;
    if (row.version > rowVersion) rowVersion = row.version;
  }
  return { rowVersion, rows };
}

function makePage(
  sandbox: Sandbox,
  base: SandboxBase,
  table: SandboxTable,
  ids: readonly string[],
  params: ListParams,
): PageBytes {
  const records: string[] = [];
  for (const id of ids) {
    const row = table.rows.get(id);
    if (row) records.push(recordTemplate(sandbox, base, table, row, params.shape));
  }
  return new PageBytes(`{"records":[${records.join(",")}]`);
}

/**
 * Reads the parameters of a list request, from its query or from the body of `listRecords`.
 */
import { apiError, invalidRequest, unknownField } from "./errors";
import { findField, type SandboxField, type SandboxTable, type View } from "./model";
import { type Shape, shapeOf } from "./record";
import { booleanOf, type Query } from "./request";

/** The largest page, which is also the default. */
const MAX_PAGE_SIZE = 100;

export interface ListParams {
  pageSize: number;
  /** Over all pages. */
  maxRecords?: number;
  offset?: string;
  filter?: string;
  view?: View;
  sort: { field: SandboxField; isDescending: boolean }[];
  shape: Shape;
  /** The same shape always gives the same text. */
  shapeKey: string;
}

const KNOWN = new Set([
  "pageSize",
  "limit",
  "maxRecords",
  "offset",
  "view",
  "sort",
  "filterByFormula",
  "fields",
  "cellFormat",
  "timeZone",
  "userLocale",
  "returnFieldsByFieldId",
  "recordMetadata",
  "includeDateDependencyMetadata",
  // airtable.js sends it with the parameters that it belongs to.
  "method",
]);

/** The raw parameters of a query: arrays in brackets or plain, `sort[0][field]` gathered by its index. */
export function rawFromQuery(query: Query, isStrict: boolean): Record<string, unknown> {
  const raw: Record<string, unknown> = {};
  const sort: Record<string, Record<string, string>> = {};
  for (const [key, value] of query) {
    const [name = "", first, second] = key.replaceAll("]", "").split("[");
    if (!KNOWN.has(name)) {
      if (isStrict) throw invalidRequest();
      continue;
    }
    if (name === "sort") {
      const index = first ?? "0";
      sort[index] = { ...sort[index], [second ?? "field"]: value };
    } else if (name === "fields" || name === "recordMetadata") {
      const list = (raw[name] ?? []) as string[];
      raw[name] = value !== "" || first === undefined ? [...list, value] : list;
    } else raw[name] = value;
  }
  const indices = Object.keys(sort).sort((a, b) => Number(a) - Number(b));
  if (indices.length > 0) raw.sort = indices.map((index) => sort[index]);
  if (raw.pageSize === undefined && raw.limit !== undefined) raw.pageSize = raw.limit;
  return raw;
}

/**
 * The raw parameters of a `listRecords` body; zone and locale come from the query.
 */
export function rawFromBody(
  body: Record<string, unknown>,
  query: Query,
  isStrict: boolean,
): Record<string, unknown> {
  for (const key of Object.keys(body))
    if (isStrict && (!KNOWN.has(key) || key === "limit")) throw invalidRequest();
  const { limit: _limit, ...raw } = body;
  for (const [key, value] of query) {
    if (key === "timeZone" || key === "userLocale") raw[key] = value;
    else if (isStrict) throw invalidRequest();
  }
  return raw;
}

/**
 * Checks the parameters of a list of `table`.
 *
 * @throws ApiError 422 that names an unknown field or view, or for an invalid value of a parameter
 */
export function listParams(table: SandboxTable, raw: Record<string, unknown>): ListParams {
  const view = viewOf(table, raw.view);
  const fieldNames = stringList(raw.fields);
  const shape: Shape = { ...shapeOf(raw) };
  if (fieldNames.length > 0) shape.fields = fieldNames.map((name) => fieldOf(table, name));
  shape.commentCount = stringList(raw.recordMetadata).includes("commentCount");
  if (booleanOf(raw.includeDateDependencyMetadata) === undefined) throw invalidRequest();
  const params: ListParams = {
    pageSize: wholeNumber(raw.pageSize, MAX_PAGE_SIZE) ?? MAX_PAGE_SIZE,
    sort: sortOf(table, raw.sort),
    shape,
    shapeKey: `${shape.byId}|${shape.commentCount}|${shape.fields?.map((field) => field.id).join() ?? ""}`,
  };
  if (view) params.view = view;
  const maxRecords = wholeNumber(raw.maxRecords, Number.MAX_SAFE_INTEGER);
  if (maxRecords !== undefined) params.maxRecords = maxRecords;
  if (typeof raw.offset === "string" && raw.offset !== "") params.offset = raw.offset;
  if (typeof raw.filterByFormula === "string" && raw.filterByFormula.trim() !== "")
    params.filter = raw.filterByFormula;
  else if (raw.filterByFormula !== undefined && typeof raw.filterByFormula !== "string")
    throw invalidRequest();
  return params;
}

function viewOf(table: SandboxTable, view: unknown): View | undefined {
  if (view === undefined || view === "") return undefined;
  const found = table.views.find((one) => one.id === view || one.name === view);
  if (found) return found;
  const isId = typeof view === "string" && /^viw[0-9A-Za-z]{14}$/.test(view);
  throw apiError(422, isId ? "VIEW_ID_NOT_FOUND" : "VIEW_NAME_NOT_FOUND", `View ${String(view)} not found`);
}

function sortOf(table: SandboxTable, raw: unknown): ListParams["sort"] {
  if (raw === undefined) return [];
  if (!Array.isArray(raw)) throw invalidRequest();
  return raw.map((entry: unknown) => {
    const { field, direction = "asc" } = (entry ?? {}) as { field?: unknown; direction?: unknown };
    if (typeof field !== "string" || (direction !== "asc" && direction !== "desc")) throw invalidRequest();
    return { field: fieldOf(table, field), isDescending: direction === "desc" };
  });
}

function fieldOf(table: SandboxTable, nameOrId: string): SandboxField {
  const field = findField(table, nameOrId);
  if (!field) throw unknownField(nameOrId);
  return field;
}

/** A list of texts, or a single one. */
function stringList(raw: unknown): string[] {
  if (raw === undefined || raw === null) return [];
  const list: unknown[] = Array.isArray(raw) ? raw : [raw];
  return list.map((item) => {
    if (typeof item !== "string") throw invalidRequest();
    return item;
  });
}

function wholeNumber(raw: unknown, max: number): number | undefined {
  if (raw === undefined || raw === "") return undefined;
  const value = typeof raw === "number" ? raw : Number(raw);
  if (!Number.isInteger(value) || value < 1 || value > max) throw invalidRequest();
  return value;
}

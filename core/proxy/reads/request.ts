/** Parses a read through the proxy that a replica may be able to answer. */
import { objectIn } from "../../json";
import { proxied } from "../../source";

export interface RequestedSort {
  /** Id or name. */
  field: string;
  isDescending: boolean;
}

export interface ReadRequest {
  sourceBaseId: string;
  /** Id or name. */
  tableRef: string;
  /** One record, or a list. */
  recordId?: string | undefined;
  /** Ids or names; empty means all fields. */
  fields: string[];
  formula?: string | undefined;
  sort: RequestedSort[];
  maxRecords: number;
  pageSize: number;
  offset?: string | undefined;
  byFieldId: boolean;
}

const { ids, limits } = proxied;
/** Sorts by more fields are left to the source. */
const MAX_SORTS = 10;
/** In characters: more than any list needs. A longer body would keep this process from other requests while it is read. */
const LONGEST_BODY = 64 * 1024;
/** Parameters that do not change answers from a replica. */
const WITHOUT_EFFECT: Record<string, string> = { cellFormat: "json" };

/** The request target as the proxy parsed it; the request is forwarded with it. */
interface CallTarget {
  /** Upper case. */
  method: string;
  baseId: string | undefined;
  /** The path below `/v0`, decoded. */
  segments: string[];
  /** With its `?`, or empty. */
  query: string;
}

/**
 * @param body of a list by POST
 * @returns undefined for requests that only the source can answer: other calls, views, unknown parameters
 */
export function parseRead(
  { method, baseId, segments, query: search }: CallTarget,
  body: string | undefined,
): ReadRequest | undefined {
  const [base, table, third, ...more] = segments;
  if (base === undefined || base !== baseId || !table || more.length > 0) return undefined;
  const isPost = method === "POST" && third === "listRecords";
  if (!isPost && method !== "GET") return undefined;
  const isOne = !isPost && third !== undefined;
  if (isOne && !ids.mayBe("record", third)) return undefined;
  const given = isPost ? fromBody(body, search) : fromQuery(search);
  const read = given && readParameters(given, isOne);
  if (!read) return undefined;
  return { sourceBaseId: base, tableRef: table, ...(isOne && { recordId: third }), ...read };
}

type Parameters = [name: string, value: unknown][];

/** `fields[]=a&fields[0]=b` and `fields=a` are all accepted; of sorts, only `sort[0][field]=a&sort[0][direction]=asc`. */
function fromQuery(search: string): Parameters {
  const fields: string[] = [];
  const sort: Record<string, string>[] = [];
  const others: Parameters = [];
  for (const [name, value] of new URLSearchParams(search)) {
    const [, index, member] = /^sort\[(\d)\]\[(field|direction)\]$/.exec(name) ?? [];
    if (/^fields(\[\d*\])?$/.test(name)) fields.push(value);
    else if (index && member) sort[Number(index)] = { ...sort[Number(index)], [member]: value };
    else others.push([name, value]);
  }
  return [...others, ["fields", fields], ["sort", Array.from(sort)]];
}

function fromBody(body: string | undefined, search: string): Parameters | undefined {
  if (new URLSearchParams(search).size > 0 || (body?.length ?? 0) > LONGEST_BODY) return undefined;
  const parsed = objectIn(body ?? "");
  return parsed && Object.entries(parsed);
}

function readParameters(given: Parameters, isOne: boolean) {
  const read = {
    fields: [] as string[],
    formula: undefined as string | undefined,
    sort: [] as RequestedSort[],
    maxRecords: Number.POSITIVE_INFINITY,
    pageSize: limits.pageSize,
    offset: undefined as string | undefined,
    byFieldId: false,
  };
  for (const [name, value] of given) {
    if (WITHOUT_EFFECT[name] === value && value !== undefined) continue;
    const isUnderstood =
      isOne && name !== "returnFieldsByFieldId" ? isNothing(value) : take(read, name, value);
    if (!isUnderstood) return undefined;
  }
  return read;
}

type Read = NonNullable<ReturnType<typeof readParameters>>;

function take(read: Read, name: string, value: unknown): boolean {
  switch (name) {
    case "fields":
      if (!Array.isArray(value) || !value.every((field) => typeof field === "string")) return false;
      read.fields = value;
      return true;
    case "sort": {
      const sort = Array.isArray(value) ? value.map(sortOf) : [undefined];
      if (sort.length > MAX_SORTS || !sort.every((one) => one !== undefined)) return false;
      read.sort = sort;
      return true;
    }
    case "filterByFormula":
      if (typeof value !== "string") return false;
      read.formula = value === "" ? undefined : value;
      return true;
    case "maxRecords":
    case "pageSize": {
      const number = Number(value);
      const most = name === "pageSize" ? limits.pageSize : Number.MAX_SAFE_INTEGER;
      if (value === "" || !Number.isInteger(number) || number < 1 || number > most) return false;
      read[name] = number;
      return true;
    }
    case "offset":
      if (typeof value !== "string") return false;
      read.offset = value === "" ? undefined : value;
      return true;
    case "returnFieldsByFieldId": {
      const isTrue = [true, "true", "1"].includes(value as string);
      if (!isTrue && ![false, "false", "0"].includes(value as string)) return false;
      read.byFieldId = isTrue;
      return true;
    }
    default:
      return false;
  }
}

function sortOf(given: unknown): RequestedSort | undefined {
  const { field, direction = "asc", ...others } = (given ?? {}) as Record<string, unknown>;
  if (typeof field !== "string" || Object.keys(others).length > 0) return undefined;
  return direction === "asc" || direction === "desc"
    ? { field, isDescending: direction === "desc" }
    : undefined;
}

function isNothing(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}

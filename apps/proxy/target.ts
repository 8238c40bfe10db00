/**
 * What a request's target means: which upstream, which call, which base.
 *
 * P1. Only configured hosts are reached, and only under `/v0`. What is decided on is what is sent: Bun gives the
 * path with dot segments resolved and bytes that no URL may hold escaped, every other byte as it came, and sends
 * it so.
 */

export type Call =
  | { kind: "read" }
  /** Records are created, updated, upserted or deleted; `ids` are those that path and query name. */
  | { kind: "write"; tableRef: string; ids: string[] }
  | { kind: "upload"; recordId: string; fieldRef: string }
  | { kind: "schema" }
  | { kind: "sync_csv" }
  | { kind: "other" };

export interface Target {
  /** Scheme, host, path and query to send the request to. */
  url: string;
  /** The base whose quota the request is of, if any. */
  baseId: string | undefined;
  call: Call;
}

/** Why a request is not forwarded. */
export type Refusal = "host_not_allowed" | "path_not_allowed";

/** Ids as the source has them; anything else in a base's place is the source's to refuse. */
const BASE_ID = /^app[0-9A-Za-z]+$/;

/**
 * @param method upper case
 * @param requestUrl as `Request.url` has it: absolute, or a path alone from clients without a Host
 * @param upstreams address by host, lower case
 */
export function parseTarget(
  method: string,
  requestUrl: string,
  upstreams: Record<string, string>,
): Target | Refusal {
  const target = pathAndQuery(requestUrl);
  const question = target.indexOf("?");
  const path = question < 0 ? target : target.slice(0, question);
  const query = question < 0 ? "" : target.slice(question);
  // The host, then everything behind it; slashes around the host may be doubled by clients that join carelessly.
  const [, hostPart = "", rest = ""] = /^\/+([^/]*)\/*(.*)$/s.exec(path) ?? [];
  const host = hostPart.toLowerCase();
  if (!Object.hasOwn(upstreams, host)) return "host_not_allowed";
  const [version, ...segments] = `/${rest}`.split(/\/+/).slice(1).map(decode);
  if (version !== "v0" || leaves(segments)) return "path_not_allowed";
  const parts = segments.filter((segment) => segment !== "");
  return {
    url: `${upstreams[host]}/${rest}${query}`,
    baseId: baseIdOf(parts),
    call: callOf(method, parts, query),
  };
}

function pathAndQuery(requestUrl: string): string {
  const start = requestUrl.startsWith("/") ? 0 : requestUrl.indexOf("/", requestUrl.indexOf("://") + 3);
  const target = start < 0 ? "/" : requestUrl.slice(start);
  const fragment = target.indexOf("#");
  return fragment < 0 ? target : target.slice(0, fragment);
}

/**
 * Would these segments, with escaped slashes and dots read as an upstream might read them, lead out of where they
 * start? (Plain `..` is resolved before we see it; `%2e%2e%2f` is not.)
 */
function leaves(segments: string[]): boolean {
  let depth = 0;
  for (const part of segments.join("/").split(/[/\\]+/)) {
    const name = decode(part);
    if (name === "..") depth--;
    else if (name !== "" && name !== ".") depth++;
    if (depth < 0) return true;
  }
  return false;
}

function baseIdOf([first, second, third]: string[]): string | undefined {
  const id = first === "meta" && second === "bases" ? third : first === "bases" ? second : first;
  return id !== undefined && BASE_ID.test(id) ? id : undefined;
}

function callOf(method: string, parts: string[], query: string): Call {
  if (method === "GET" || method === "HEAD" || method === "OPTIONS") return { kind: "read" };
  const [first = "", second, third, fourth] = parts;
  if (first === "meta" && second === "bases" && fourth === "tables") return { kind: "schema" };
  if (!BASE_ID.test(first) || second === undefined) return { kind: "other" };
  if (parts.length === 2) return { kind: "write", tableRef: second, ids: queryIds(query) };
  if (parts.length === 3) {
    if (method === "POST") return { kind: third === "listRecords" ? "read" : "other" };
    return { kind: "write", tableRef: second, ids: [third!] };
  }
  if (parts.length === 4 && method === "POST") {
    if (fourth === "uploadAttachment") return { kind: "upload", recordId: second, fieldRef: third! };
    if (third === "sync") return { kind: "sync_csv" };
  }
  return { kind: "other" };
}

/** `records[]=rec…`, with or without brackets and numbers. */
function queryIds(query: string): string[] {
  return [...new URLSearchParams(query)]
    .filter(([name]) => /^records(\[\d*\])?$/.test(name))
    .map(([, value]) => value);
}

/** A `+` in a path is a plus. What is no escape stays as it is. */
function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

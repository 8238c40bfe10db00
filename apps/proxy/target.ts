/**
 * What a request's target means: which upstream, which call, which base.
 *
 * P1. Only configured hosts are reached, and only under `/v0`. A request names its host in the path, or is sent to it. What is decided on is what is sent, byte by byte: a
 * target that another parser could read in another way is refused. This is the only place that parses it; whatever
 * else is decided about a request goes by the `Target`.
 */
import { hasTraversal } from "./path-traversal";

export type Call =
  | { kind: "read" }
  /** Records are created, updated, upserted or deleted; `ids` are those that path and query name. */
  | { kind: "write"; tableRef: string; ids: string[] }
  | { kind: "upload"; recordId: string; fieldRef: string }
  | { kind: "schema" }
  | { kind: "sync_csv" }
  | { kind: "other" };

export interface Target {
  /** Upper case. */
  method: string;
  /** Scheme, host and port to send the request to. */
  address: string;
  /** Path and query as they are sent. */
  path: string;
  /** The path's segments below `/v0`, decoded; none is empty. */
  segments: string[];
  /** With its `?`, or empty. */
  query: string;
  /** The base whose quota the request is of, if any. */
  baseId: string | undefined;
  call: Call;
}

/** The hosts that a request may be sent to or name. */
export interface Names {
  /** Address by host, lower case. */
  upstreams: Record<string, string>;
  /** Host and port of the proxy itself, as `Host` has them. */
  ownHosts: ReadonlySet<string>;
}

/** Why a request is not forwarded. */
export type Refusal = "host_not_allowed" | "path_not_allowed" | "path_ambiguous";

/** Ids as the source has them; anything else in a base's place is the source's to refuse. */
const BASE_ID = /^app[0-9A-Za-z]+$/;

/**
 * @param method upper case
 * @param requestUrl absolute and in its normal form, as the listener's gate lets it through
 */
export function parseTarget(method: string, requestUrl: string, names: Names): Target | Refusal {
  const hostFrom = requestUrl.indexOf("://") + 3;
  const pathFrom = requestUrl.indexOf("/", hostFrom);
  const target = requestUrl.slice(pathFrom);
  const question = target.indexOf("?");
  const path = question < 0 ? target : target.slice(0, question);
  const query = question < 0 ? "" : target.slice(question);
  const addressed = upstreamOf(requestUrl.slice(hostFrom, pathFrom), path, names);
  if (!addressed) return "host_not_allowed";
  const { address, rest } = addressed;
  const [version, ...raw] = rest.split(/\/+/);
  if (version !== "v0") return "path_not_allowed";
  const sent = `/${rest}${query}`;
  if (!isNormal(address, sent) || hasTraversal(rest)) return "path_ambiguous";
  const segments = decoded(raw);
  if (!segments || hasSlashInId(segments)) return "path_ambiguous";
  return {
    method,
    address,
    path: sent,
    segments,
    query,
    baseId: baseIdOf(segments),
    call: callOf(method, segments, query),
  };
}

/**
 * The upstream that a request names, and its path there, without the first slash. `/{host}/v0/…` names it in the path,
 * whatever host the request was sent to. Otherwise that host does: an upstream's own name, or the proxy's, which stands
 * for the first upstream. Any other host is of no upstream, as its key and call were meant for somebody else.
 */
function upstreamOf(
  sentTo: string,
  path: string,
  { upstreams, ownHosts }: Names,
): { address: string; rest: string } | undefined {
  // Slashes around the host may be doubled by clients that join carelessly.
  const [, first = "", more = ""] = /^\/+([^/]*)\/*(.*)$/s.exec(path) ?? [];
  const addressOf = (host: string) => (Object.hasOwn(upstreams, host) ? upstreams[host] : undefined);
  const named = addressOf(first.toLowerCase());
  if (named !== undefined) return { address: named, rest: more };
  const rest = path.replace(/^\/+/, "");
  const own = addressOf(sentTo.replace(/:\d+$/, ""));
  if (own !== undefined) return { address: own, rest };
  const [address] = Object.values(upstreams);
  return address !== undefined && first === "v0" && ownHosts.has(sentTo) ? { address, rest } : undefined;
}

/** Would a parser of URLs give on the very same bytes? */
function isNormal(address: string, path: string): boolean {
  const url = URL.parse(address + path);
  return url !== null && !path.includes("#") && url.href === url.origin + path;
}

/** Escaped slashes are for names: of a table, and of the field of an upload. Ids and words of the API have none. */
function hasSlashInId(segments: string[]): boolean {
  const names = BASE_ID.test(segments[0] ?? "") ? (segments[3] === "uploadAttachment" ? [2] : [1]) : [];
  return segments.some((segment, index) => segment.includes("/") && !names.includes(index));
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

/** A `+` in a path is a plus. Undefined where an escape is malformed, which parsers read in different ways. */
function decoded(raw: string[]): string[] | undefined {
  try {
    return raw.filter((segment) => segment !== "").map((segment) => decodeURIComponent(segment));
  } catch {
    return undefined;
  }
}

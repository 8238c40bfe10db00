/**
 * Parses a request's target: which upstream, which call, which base.
 *
 * P1. Only configured hosts are reached, and only under `/v0`. A request names its host in the path, or is sent to it.
 *     The request is sent byte for byte as it was parsed: a target that another parser could read in another way is
 *     refused. Only this module parses it; all other decisions about a request use the `Target`.
 */
import { type Call, proxied } from "../../core/source";
import { hasTraversal } from "./path-traversal";

export interface ProxyTarget {
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
  /** The base in whose quota the request counts, if any. */
  baseId: string | undefined;
  call: Call;
}

/** The hosts that a request may be sent to or name. */
interface Names {
  /** Address by host, lower case. */
  upstreams: Record<string, string>;
  /** Host and port of the proxy itself, as in the `Host` header. */
  ownHosts: ReadonlySet<string>;
}

/** Why a request is not forwarded. */
type TargetRefusal = "host_not_allowed" | "path_not_allowed" | "path_ambiguous";

const { dialect } = proxied;

/**
 * @param method upper case
 * @param requestUrl absolute and in its normal form, as the listener's gate ensures
 */
export function parseTarget(method: string, requestUrl: string, names: Names): ProxyTarget | TargetRefusal {
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
  if (version !== dialect.version) return "path_not_allowed";
  const sent = `/${rest}${query}`;
  if (!isNormal(address, sent) || hasTraversal(rest)) return "path_ambiguous";
  const segments = decoded(raw);
  if (!segments || hasAmbiguousId(segments)) return "path_ambiguous";
  return {
    method,
    address,
    path: sent,
    segments,
    query,
    baseId: dialect.baseIdOf(segments),
    call: dialect.callOf(method, segments, query),
  };
}

/**
 * Returns the upstream that a request names, and its path there, without the first slash. `/{host}/v0/…` names it in
 * the path, whatever host the request was sent to. Otherwise that host does: an upstream's own name, or the proxy's,
 * which stands for the first upstream. Any other host belongs to no upstream: its key and call were meant for another
 * service.
 */
function upstreamOf(
  sentTo: string,
  path: string,
  { upstreams, ownHosts }: Names,
): { address: string; rest: string } | undefined {
  // Clients that join URLs carelessly may double the slashes around the host.
  const [, first = "", more = ""] = /^\/+([^/]*)\/*(.*)$/s.exec(path) ?? [];
  const addressOf = (host: string) => (Object.hasOwn(upstreams, host) ? upstreams[host] : undefined);
  const named = addressOf(first.toLowerCase());
  if (named !== undefined) return { address: named, rest: more };
  const rest = path.replace(/^\/+/, "");
  const own = addressOf(sentTo.replace(/:\d+$/, ""));
  if (own !== undefined) return { address: own, rest };
  const [address] = Object.values(upstreams);
  return address !== undefined && first === dialect.version && ownHosts.has(sentTo)
    ? { address, rest }
    : undefined;
}

/** Would a URL parser produce exactly the same bytes? */
function isNormal(address: string, path: string): boolean {
  const url = URL.parse(address + path);
  return url !== null && !path.includes("#") && url.href === url.origin + path;
}

/**
 * Allowed in names only. Ids and keywords of the API have none, and a parser that decodes twice, ends a segment at `;` or
 * drops control characters would read another id.
 */
const NOT_IN_IDS = /[/%;\p{Cc}]/u;

function hasAmbiguousId(segments: string[]): boolean {
  const names = dialect.namesIn(segments);
  return segments.some((segment, index) => NOT_IN_IDS.test(segment) && !names.includes(index));
}

/** A `+` in a path is a plus sign. Undefined if an escape is malformed, which parsers interpret differently. */
function decoded(raw: string[]): string[] | undefined {
  try {
    return raw.filter((segment) => segment !== "").map((segment) => decodeURIComponent(segment));
  } catch {
    return undefined;
  }
}

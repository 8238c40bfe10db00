/**
 * Refuses requests whose target can be parsed in more than one way, before any handler sees them.
 *
 * G1. Behind the gate `request.url` is absolute and in the normal form of the URL standard: parsing it again changes
 * nothing. Bun resolves `..`, `\` and escaped dots by itself, but only if `http://<Host><target>` is a URL; otherwise
 * it passes the target on unchanged, and the next parser decides about something else.
 */

/**
 * A name, an IPv4 address, or an IPv6 address in brackets; then a port. Repeated headers are joined by a comma, which
 * does not match.
 */
const HOST = /^(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i;

/** The host of the last request and its origin: a client sends the same one each time. */
let lastHost = "";
let lastOrigin: URL | null = null;

function originOf(host: string): URL | null {
  if (host !== lastHost)
    [lastHost, lastOrigin] = [host, HOST.test(host) ? URL.parse(`http://${host}`) : null];
  return lastOrigin;
}

/** @returns the reason why the request is malformed, as a sentence for its sender; undefined if it is not */
export function malformedRequest(request: Request): string | undefined {
  const host = request.headers.get("host");
  if (!host) return "The request has no Host header. Send one.";
  const origin = originOf(host);
  if (origin === null) return "The Host header is not a host name or address with an optional port.";
  const url = URL.parse(request.url);
  if (url?.href !== request.url || url.host !== origin.host || url.username || url.password) {
    return "The request's target is not a normalized path: resolve dot segments, and percent-encode characters that a URL cannot contain.";
  }
  if (request.url.includes("#")) return "The request's target has a fragment. Send # as %23.";
  return undefined;
}

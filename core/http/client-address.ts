/**
 * The address that a request comes from. It is stored outside the headers, so no client can forge it; behind a reverse
 * proxy it is the last entry of the header that the proxy writes, if one is configured.
 */

const FORWARDING = /^(?:forwarded|x-forwarded(?:-.*)?|x-real-ip|via)$/;

const addresses = new WeakMap<Request, string>();

/** Remembers the address of the connection. */
export function recordAddress(request: Request, address: string | undefined): void {
  if (address !== undefined) addresses.set(request, plain(address));
}

/** `request` has arrived as `original`. */
export function copyAddress(original: Request, request: Request): void {
  const address = addresses.get(original);
  if (address !== undefined) addresses.set(request, address);
}

/** @param header lower-case name of the reverse proxy's header; absent without a reverse proxy */
export function clientAddress(request: Request, header: string | undefined): string | null {
  const given = header === undefined ? undefined : request.headers.get(header)?.split(",").at(-1)?.trim();
  return given || addresses.get(request) || null;
}

const LOOPBACK = /^127\.\d+\.\d+\.\d+$/;

/** Is the host of a URL a name or an address of this machine itself? */
export function isLoopbackUrl(url: string): boolean {
  const { hostname } = new URL(url);
  return hostname === "localhost" || hostname === "[::1]" || LOOPBACK.test(hostname);
}

/**
 * Does the request come from this machine, without a reverse proxy? Behind a reverse proxy on this machine every
 * request has the loopback address: only the host that it was sent to, or a header, shows that it is from elsewhere.
 *
 * @param header lower-case name of the reverse proxy's own header, if one is configured
 */
export function isFromThisMachine(request: Request, header: string | undefined): boolean {
  const address = addresses.get(request);
  if (address === undefined || !LOOPBACK.test(address) || !isLoopbackUrl(request.url)) return false;
  return ![...request.headers.keys()].some((name) => name === header || FORWARDING.test(name));
}

/** Normalizes an address: a listener for both families reports IPv4 addresses inside IPv6 ones. */
function plain(address: string): string {
  return address === "::1" ? "127.0.0.1" : address.replace(/^::ffff:(?=\d+\.)/i, "");
}

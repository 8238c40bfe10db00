/**
 * The address that a request comes from. It is kept beside the request, not in a header, so no client can make it up;
 * behind a reverse proxy it is the last entry of the header that the proxy writes, if one is configured.
 */

const FORWARDING = /^(?:forwarded|x-forwarded(?:-.*)?|x-real-ip|via)$/;

const addresses = new WeakMap<Request, string>();

/** Remembers the address of the connection. */
export function recordAddress(request: Request, address: string | undefined): void {
  if (address !== undefined) addresses.set(request, plain(address));
}

/** @param header lower-case name of the proxy's header; absent where nothing is in front */
export function clientAddress(request: Request, header: string | undefined): string | null {
  const given = header === undefined ? undefined : request.headers.get(header)?.split(",").at(-1)?.trim();
  return given || addresses.get(request) || null;
}

/**
 * Does the request come from this very machine, past no reverse proxy? One on this machine gives loopback as the address
 * of everybody, and says whom it speaks for in a header.
 *
 * @param header lower-case name of the reverse proxy's own header, if one is configured
 */
export function isFromThisMachine(request: Request, header: string | undefined): boolean {
  const address = addresses.get(request);
  if (address === undefined || !/^127\.\d+\.\d+\.\d+$/.test(address)) return false;
  return ![...request.headers.keys()].some((name) => name === header || FORWARDING.test(name));
}

/** One way to write each: a listener for both families gives IPv4 addresses inside IPv6 ones. */
function plain(address: string): string {
  return address === "::1" ? "127.0.0.1" : address.replace(/^::ffff:(?=\d+\.)/i, "");
}

/**
 * The host of a URL that reaches a listener of this machine.
 *
 * @param host that it is bound to; absent: all interfaces
 * @param loopback how this machine is called
 */
export function reachedAt(host: string | undefined, loopback = "localhost"): string {
  if (host === undefined || host === "0.0.0.0" || host === "::" || host === "127.0.0.1") return loopback;
  return host.includes(":") ? `[${host}]` : host;
}

/**
 * Returns the host of a URL that reaches a listener of this machine.
 *
 * @param host the bound address; absent: all interfaces
 * @param loopback the name of this machine
 */
export function reachedAt(host: string | undefined, loopback = "localhost"): string {
  if (host === undefined || host === "0.0.0.0" || host === "::" || host === "127.0.0.1") return loopback;
  return host.includes(":") ? `[${host}]` : host;
}

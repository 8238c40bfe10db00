/** Finds free ports on this machine. */
import { createServer } from "node:net";

/** How many ports above the wanted one are tried. */
const REACH = 100;

/** Returns whether a program can listen on `port` of `host` now. */
export async function isPortFree(port: number, host: string): Promise<boolean> {
  return (await listenOnce(port, host)) !== undefined;
}

/**
 * Returns the first free port from `wanted` on; any free port for 0, or if none is found within the range.
 *
 * Another process may take the port before the caller does: listen, and call this again if that fails.
 */
export async function findFreePort(wanted: number, host: string): Promise<number> {
  for (let port = wanted; wanted !== 0 && port < wanted + REACH && port <= 65_535; port++) {
    if (await isPortFree(port, host)) return port;
  }
  return (await listenOnce(0, host))!;
}

/** Listens for a moment. Returns the port, or undefined if it is taken or this process may not use it. */
function listenOnce(port: number, host: string): Promise<number | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(undefined));
    server.listen({ port, host, exclusive: true }, () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" ? address?.port : undefined));
    });
  });
}

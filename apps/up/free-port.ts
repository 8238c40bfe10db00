/** Ports of this machine: is one free, and which is the next that is. */
import { createServer } from "node:net";

/** How far above the wanted port a free one is looked for. */
const REACH = 100;

/** Can a program listen on `port` of `host` now? */
export async function isPortFree(port: number, host: string): Promise<boolean> {
  return (await listenOnce(port, host)) !== undefined;
}

/**
 * The first free port from `wanted` on; any free one for 0, or where none within reach is.
 *
 * Somebody else may take it before the caller does: listen, and ask again if that fails.
 */
export async function findFreePort(wanted: number, host: string): Promise<number> {
  for (let port = wanted; wanted !== 0 && port < wanted + REACH && port <= 65_535; port++) {
    if (await isPortFree(port, host)) return port;
  }
  return (await listenOnce(0, host))!;
}

/** Listens for a moment; the port it had, or undefined when it is taken or not ours to use. */
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

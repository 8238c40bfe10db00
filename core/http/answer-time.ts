/**
 * Limits how long a client may wait. A silent connection is closed after a while, which ends requests that were never
 * completed; a complete request waits for us, and may wait longer.
 */

/** Bun's maximum, seconds: the source may answer slowly, and clients decide when to give up. */
const LONGEST_SECONDS = 255;
/** A client that is still sending when it is refused must get to read why, seconds. */
const LINGER_SECONDS = 2;

const servers = new WeakMap<Request, Bun.Server<undefined>>();

/** Remembers which server received a request. */
export function recordServer(request: Request, server: Bun.Server<undefined>): void {
  servers.set(request, server);
}

/** Must be called when the whole request has arrived, or something else limits the wait for it. Does nothing if the request has no connection. */
export function allowLongAnswer(request: Request): void {
  servers.get(request)?.timeout(request, LONGEST_SECONDS);
}

/** The rest of the request is not wanted: the connection is closed soon after the answer. */
export function endSoon(request: Request): void {
  servers.get(request)?.timeout(request, LINGER_SECONDS);
}

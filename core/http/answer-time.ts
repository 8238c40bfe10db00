/**
 * Limits how long a client may wait. A silent connection is closed after a while, which ends requests that were never
 * completed; a complete request waits for us, and may wait longer.
 */

/** Bun's maximum, seconds: the source may answer slowly, and clients decide when to give up. */
const LONGEST_SECONDS = 255;
/** A client that is still sending when it is refused must get to read why, seconds. */
const LINGER_SECONDS = 2;

/** Set the longest silence on the connection of each request, in seconds. */
const timeouts = new WeakMap<Request, (seconds: number) => void>();

/** Remembers which server received a request. */
export function recordServer(request: Request, server: Bun.Server<undefined>): void {
  timeouts.set(request, (seconds) => server.timeout(request, seconds));
}

/** `request` has arrived as `original`. */
export function copyServer(original: Request, request: Request): void {
  const timeout = timeouts.get(original);
  if (timeout) timeouts.set(request, timeout);
}

/** Must be called when the whole request has arrived, or something else limits the wait for it. Does nothing if the request has no connection. */
export function allowLongAnswer(request: Request): void {
  timeouts.get(request)?.(LONGEST_SECONDS);
}

/** The rest of the request is not wanted: the connection is closed soon after the answer. */
export function endSoon(request: Request): void {
  timeouts.get(request)?.(LINGER_SECONDS);
}

/**
 * How long a client may be kept waiting. A connection that is silent is closed after a while, which ends requests that
 * are begun and never completed; one whose request is complete waits for us, and may wait longer.
 */

/** The longest that Bun takes, seconds: slow answers are the source's to give, and clients' to give up on. */
const LONGEST_SECONDS = 255;

const servers = new WeakMap<Request, Bun.Server<undefined>>();

/** Remembers which server a request came in by. */
export function recordServer(request: Request, server: Bun.Server<undefined>): void {
  servers.set(request, server);
}

/** Call it once the whole request is here. Does nothing where no connection is behind the request. */
export function allowLongAnswer(request: Request): void {
  servers.get(request)?.timeout(request, LONGEST_SECONDS);
}

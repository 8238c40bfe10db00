/** The security headers of every answer of our own, in one place for all listeners. */

/** A year, for which browsers ask for this host over TLS only. */
const HSTS = "max-age=31536000";

const forwardedAnswers = new WeakSet<Response>();

/** Marks an answer as the source's: it goes to the client as it came. */
export function forwarded(response: Response): Response {
  forwardedAnswers.add(response);
  return response;
}

/**
 * Adds to an answer of ours what it does not say itself: `nosniff`, `no-store` unless the route allows caching, HSTS
 * where the public address is https, and `more`.
 *
 * @param publicUrl where clients reach this listener; absent where only operators do
 */
export function withOwnHeaders(
  response: Response,
  publicUrl: string | undefined,
  more: Record<string, string> = {},
): Response {
  if (forwardedAnswers.has(response)) return response;
  const own = {
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
    ...(publicUrl?.startsWith("https:") ? { "strict-transport-security": HSTS } : {}),
    ...more,
  };
  for (const [name, value] of Object.entries(own)) {
    if (!response.headers.has(name)) response.headers.set(name, value);
  }
  return response;
}

/** The path of a request's URL; empty where it is no URL, since errors of such a request have to be told too. */
export function pathOf(request: Request): string {
  return URL.parse(request.url)?.pathname ?? "";
}

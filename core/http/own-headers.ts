/** The security headers of all our own answers, for all listeners. */

/** A year, during which browsers use only TLS for this host. */
const HSTS = "max-age=31536000";

const forwardedAnswers = new WeakSet<Response>();

/** Marks an answer as the source's: it is sent to the client unchanged. */
export function forwarded(response: Response): Response {
  forwardedAnswers.add(response);
  return response;
}

/**
 * Adds headers that our answer does not set itself: `nosniff`, `no-store` unless the route allows caching, HSTS if the
 * public address is https, and `more`.
 *
 * @param publicUrl the public URL of this listener; absent if only operators reach it
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

/** Returns the path of a request's URL; empty for an invalid URL, since errors of such a request are logged too. */
export function pathOf(request: Request): string {
  return URL.parse(request.url)?.pathname ?? "";
}

/**
 * Compresses pages and JSON for clients that accept it.
 *
 * A page that contains a secret must not echo its request: otherwise its compressed size would reveal the secret, guess
 * by guess.
 */

/** Smaller answers fit in one packet either way. */
const MIN_BYTES = 1400;
/** Of 1 to 9: higher levels cost more time than they save bytes. */
const GZIP_LEVEL = 5;
/** Not compressed: a client that is refused must not cause work. */
const TOO_MANY_REQUESTS = 429;
const TEXT = /^(text\/html|application\/json)\b/;

/** Returns the response, compressed if the client accepts it. */
export async function compressed(request: Request, response: Response): Promise<Response> {
  const { headers, status, statusText } = response;
  if (status === TOO_MANY_REQUESTS) return response;
  if (!TEXT.test(headers.get("content-type") ?? "") || headers.has("content-encoding")) return response;
  if (response.body === null || !takesGzip(request.headers.get("accept-encoding") ?? "")) return response;
  const plain = await response.bytes();
  if (plain.length < MIN_BYTES) return new Response(plain, { status, statusText, headers });
  const sent = new Headers(headers);
  sent.delete("content-length");
  sent.set("content-encoding", "gzip");
  sent.append("vary", "Accept-Encoding");
  return new Response(Bun.gzipSync(plain, { level: GZIP_LEVEL }), { status, statusText, headers: sent });
}

function takesGzip(accepted: string): boolean {
  return accepted.split(",").some((offer) => /^\s*gzip\s*(;\s*q=(?!0(\.0*)?\s*$).*)?$/i.test(offer));
}

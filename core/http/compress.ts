/**
 * Sends pages and JSON compressed to whoever takes that.
 *
 * A page that holds a secret repeats nothing of its request: otherwise its size would tell, guess by guess, what the
 * secret is.
 */

/** Less than this is in one packet either way. */
const MIN_BYTES = 1400;
/** Of 1 to 9: from here on it costs more time than it saves bytes. */
const GZIP_LEVEL = 5;
const TEXT = /^(text\/html|application\/json)\b/;

/** The answer as it is, or compressed. */
export async function compressed(request: Request, response: Response): Promise<Response> {
  const { headers, status, statusText } = response;
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

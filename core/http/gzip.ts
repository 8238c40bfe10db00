/**
 * Compresses pages and JSON for clients that accept it, and decompresses bodies at once.
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

/**
 * Larger bodies would delay other requests by milliseconds, bytes. One of this size has at most 62 MB of text: deflate
 * makes it no more than 1,032 times smaller.
 */
const MOST_AT_ONCE = 60 * 1024;
/** Header and trailer of a gzip member, bytes. */
const SHORTEST_GZIP = 18;

/**
 * Returns the text of a gzip body, decompressed with libdeflate: half of zlib's CPU. Its synchronous form creates a
 * stream for every body, and its other form hands it to another thread and back, which costs several times as much as
 * decompressing 10 kB. Undefined for what zlib must judge: large or invalid bodies, and those of several
 * members, of which libdeflate reads one.
 */
export function gunzipAtOnce(bytes: Buffer): Buffer | undefined {
  if (bytes.length > MOST_AT_ONCE || bytes.length < SHORTEST_GZIP) return undefined;
  try {
    const { buffer, byteOffset, byteLength } = Bun.gunzipSync(bytes as Buffer<ArrayBuffer>, {
      library: "libdeflate",
    });
    // A body ends with its length.
    if (bytes.readUInt32LE(bytes.length - 4) !== byteLength) return undefined;
    return Buffer.from(buffer, byteOffset, byteLength);
  } catch {
    return undefined;
  }
}

/**
 * Frees the memory of bytes that have a buffer of their own, which becomes empty. Pages that wait for the garbage
 * collector take fresh memory from the kernel again and again, and a thread of the runtime gives it back.
 */
export function freeNow(bytes: Buffer): void {
  if (bytes.buffer instanceof ArrayBuffer && bytes.byteLength === bytes.buffer.byteLength)
    bytes.buffer.transfer(0);
}

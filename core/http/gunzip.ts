/**
 * Decompresses the usual body with libdeflate: half of zlib's CPU. Its synchronous form creates a stream for every body,
 * and its other form hands it to another thread and back, which costs several times as much as decompressing 10 kB.
 */

/**
 * Larger bodies would delay other requests by milliseconds, bytes. One of this size has at most 62 MB of text: deflate
 * makes it no more than 1,032 times smaller.
 */
const MOST_AT_ONCE = 60 * 1024;
/** Header and trailer of a gzip member, bytes. */
const SHORTEST_GZIP = 18;

/**
 * Returns the text of a gzip body. Undefined for what zlib must judge: large or invalid bodies, and those of several
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

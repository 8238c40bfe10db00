/** Decodes a buffered body, compressed or not, to text. */
import { promisify } from "node:util";
import { brotliDecompress, gunzip, inflate, zstdDecompress } from "node:zlib";
import { gunzipAtOnce } from "../http";

/** Maximum size of the decoded text, bytes; ten records of the largest cells are far smaller. */
const MAX_TEXT_BYTES = 64 * 1024 * 1024;
const limit = { maxOutputLength: MAX_TEXT_BYTES };

async function gunzipped(bytes: Uint8Array): Promise<Uint8Array> {
  const { buffer, byteOffset, byteLength } = bytes;
  return (
    gunzipAtOnce(Buffer.from(buffer, byteOffset, byteLength)) ??
    promisify<Uint8Array, object, Buffer>(gunzip)(bytes, limit)
  );
}

const decoders: Record<string, (bytes: Uint8Array) => Promise<Uint8Array>> = {
  identity: async (bytes) => bytes,
  gzip: gunzipped,
  "x-gzip": gunzipped,
  deflate: (bytes) => promisify<Uint8Array, object, Buffer>(inflate)(bytes, limit),
  br: (bytes) => promisify<Uint8Array, object, Buffer>(brotliDecompress)(bytes, limit),
  zstd: (bytes) => promisify<Uint8Array, object, Buffer>(zstdDecompress)(bytes, limit),
};

/**
 * @param encoding the body's `Content-Encoding`
 * @returns null for an unknown encoding, and for bytes that do not decode
 */
export async function bodyText(bytes: Uint8Array, encoding: string | null): Promise<string | null> {
  const name = encoding?.trim().toLowerCase() || "identity";
  if (!Object.hasOwn(decoders, name)) return null;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(await decoders[name]!(bytes));
  } catch {
    return null;
  }
}

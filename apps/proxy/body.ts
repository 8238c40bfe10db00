/** The client's body, whole: what is sent upstream is sent at once, and does not hang on a slow client. */
import type { OwnAnswer } from "./own-answers";

/** An upload of 5 MB is near 7 MB in base64; ten records of the largest cells are below 10 MB. */
export const MAX_BODY_BYTES = 16 * 1024 * 1024;

/** @returns undefined for a request without a body; why there is none of use */
export async function readBody(request: Request): Promise<Uint8Array<ArrayBuffer> | undefined | OwnAnswer> {
  if (request.body === null || request.method === "GET" || request.method === "HEAD") return undefined;
  const declared = Number(request.headers.get("content-length") ?? Number.NaN);
  if (declared > MAX_BODY_BYTES) return "PROXY_BODY_TOO_LARGE";
  try {
    if (declared <= MAX_BODY_BYTES) return new Uint8Array(await request.arrayBuffer());
    return await readCounting(request.body);
  } catch {
    return "PROXY_BODY_BROKEN";
  }
}

async function readCounting(body: ReadableStream<Uint8Array>): Promise<Uint8Array<ArrayBuffer> | OwnAnswer> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body) {
    length += chunk.length;
    if (length > MAX_BODY_BYTES) return "PROXY_BODY_TOO_LARGE";
    chunks.push(chunk);
  }
  return new Uint8Array(Buffer.concat(chunks));
}

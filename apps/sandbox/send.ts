/**
 * Sends answers over HTTP: with the service's headers, and gzip for clients that accept it.
 */
import type { ApiAnswer } from "./request";

/** Smaller answers are not compressed. */
const MIN_GZIP_BYTES = 300;

/** In every answer (the reference, section 7). */
const COMMON_HEADERS = new Headers({
  "access-control-allow-origin": "*",
  "access-control-allow-methods": "DELETE,GET,OPTIONS,PATCH,POST,PUT",
  "access-control-allow-headers":
    "authorization,content-length,content-type,user-agent,x-airtable-application-id,x-airtable-user-agent," +
    "x-api-version,x-requested-with",
  "content-type": "application/json; charset=utf-8",
  server: "Tengine",
  "set-cookie": "brw=brwSandbox0000001; path=/; domain=.airtable.com; samesite=none; secure",
  "strict-transport-security": "max-age=31536000; includeSubDomains; preload",
  vary: "Accept-Encoding",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
});

/** @param urlToken creates a token for attachment URLs, if the answer has some */
export function send(
  request: Request,
  answer: ApiAnswer,
  urlToken: () => string = () => "",
  mayGzip = true,
): Response {
  const takesGzip = mayGzip && (request.headers.get("accept-encoding")?.includes("gzip") ?? false);
  const { status, page } = answer;
  if (page) {
    const token = page.bytes.hasTokens ? urlToken() : "";
    const length = page.bytes.plainLength(page.tail);
    const isGzipped = takesGzip && length >= MIN_GZIP_BYTES;
    const body = isGzipped ? page.bytes.gzip(token, page.tail) : page.bytes.plain(token, page.tail);
    return response(status, body, length, isGzipped);
  }
  const text = answer.text ?? JSON.stringify(answer.json);
  if (status !== 200) return errorResponse(status, text);
  const length = Buffer.byteLength(text);
  const isGzipped = takesGzip && length >= MIN_GZIP_BYTES;
  return response(status, isGzipped ? Bun.gzipSync(text) : text, length, isGzipped);
}

function response(
  status: number,
  body: Uint8Array<ArrayBuffer> | string,
  plainLength: number,
  isGzipped: boolean,
): Response {
  const made = new Response(body, { status, headers: COMMON_HEADERS });
  made.headers.set("airtable-uncompressed-content-length", String(plainLength));
  if (isGzipped) made.headers.set("content-encoding", "gzip");
  return made;
}

/** Errors are small, never compressed, and carry a weak etag. */
function errorResponse(status: number, text: string): Response {
  const etag = `W/"${text.length.toString(16)}-${Bun.hash(text).toString(36)}"`;
  const made = new Response(text, { status, headers: COMMON_HEADERS });
  made.headers.set("etag", etag);
  return made;
}

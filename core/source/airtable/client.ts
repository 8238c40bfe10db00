/**
 * HTTP to Airtable: one request, its body as bytes, or an error of ours.
 *
 * Whatever the other side does, a request ends: by the time-out, which covers the body too, by the size limit,
 * or by the caller's signal. The key goes into the header and nowhere else.
 */
import packageJson from "../../../package.json" with { type: "json" };
import { BasetideError, errorCodes } from "../../errors";
import type { SourceClock } from "../clock";
import { refusal } from "./answers";

/** Largest body that is read, bytes once decompressed. A page of 100 records of large cells is a few MB. */
const MAX_BODY_BYTES = 64 * 1024 * 1024;
/** Deflate cannot shrink more than this, so a small gzip body cannot be a large one in disguise. */
const MAX_GZIP_RATIO = 1032;
/** Bun's codes for a body that is not what its `content-encoding` says. */
const DECOMPRESSION_FAILURE = /^(Zlib|Brotli|Zstd)/;
const USER_AGENT = `Basetide/${packageJson.version}`;

export interface ClientOptions {
  /** Scheme, host and port that the API is reached at. */
  address: string;
  apiKey: string;
  timeoutMs: number;
  /** Told the date of every answer. */
  clock?: SourceClock | undefined;
}

/**
 * Sends one request for `path` (encoded, with its query); `body` makes it a POST of JSON, and without a `method` it
 * is a GET. Gives the body of a 200.
 */
export type Request = (
  path: string,
  options: { signal: AbortSignal; body?: unknown; method?: "POST" | "DELETE" },
) => Promise<Buffer>;

/**
 * @returns the function that sends a request; it throws `sync_stopped` when the caller's signal aborts,
 *   `source_timeout`, `source_unavailable` when the source cannot be reached or breaks off, `source_bad_answer`
 *   for a redirect or a body over 64 MB, and what `refusal` makes of other statuses than 200
 */
export function createClient({ address, apiKey, timeoutMs, clock }: ClientOptions): Request {
  const headers = {
    Authorization: `Bearer ${apiKey}`,
    "User-Agent": USER_AGENT,
    Accept: "application/json",
    "Accept-Encoding": "gzip",
  };
  const postHeaders = { ...headers, "Content-Type": "application/json" };

  return async function request(path, { signal, body, method = body === undefined ? "GET" : "POST" }) {
    if (!/^[\x21-\x7e]+$/.test(apiKey)) {
      throw new BasetideError(
        "source_key_refused",
        "The API key is empty or holds characters that no key has.",
      );
    }
    using limit = limitBy(signal, timeoutMs);
    try {
      const response = await fetch(address + path, {
        method,
        headers: body === undefined ? headers : postHeaders,
        body: body === undefined ? null : JSON.stringify(body),
        redirect: "manual",
        // Bun sends what is no POST again by itself when a kept connection breaks before the answer, which the source
        // counts and the ledger never hears of. Pages, which are most of all requests, are POSTs.
        keepalive: method === "POST",
        signal: limit.signal,
      });
      clock?.note(Date.parse(response.headers.get("date") ?? ""));
      const bytes = await readBody(response, limit);
      if (response.status === 200) return bytes;
      throw withoutKey(refusal(response.status, response.headers, bytes), apiKey);
    } catch (error) {
      if (error instanceof BasetideError) throw error;
      throw networkError(error, signal, limit, { address, timeoutMs });
    }
  };
}

interface Limit extends Disposable {
  signal: AbortSignal;
  isTimeOut: boolean;
  /** Breaks the request off. */
  abort(): void;
}

/** A signal that aborts with `outer` or after `timeoutMs`. Disposing it leaves neither timer nor listener behind. */
function limitBy(outer: AbortSignal, timeoutMs: number): Limit {
  const controller = new AbortController();
  const abort = () => controller.abort();
  const limit: Limit = {
    signal: controller.signal,
    isTimeOut: false,
    abort,
    [Symbol.dispose]() {
      clearTimeout(timer);
      outer.removeEventListener("abort", abort);
    },
  };
  const timer = setTimeout(() => {
    limit.isTimeOut = true;
    abort();
  }, timeoutMs);
  if (outer.aborted) abort();
  else outer.addEventListener("abort", abort, { once: true });
  return limit;
}

/** The whole body. Streamed and counted unless its length is known to fit, because counting costs a third more. */
async function readBody(response: Response, limit: Limit): Promise<Buffer> {
  if (response.body === null) return Buffer.alloc(0);
  if (isSurelySmall(response.headers)) return Buffer.from(await response.arrayBuffer());
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of response.body) {
    length += chunk.length;
    if (length > MAX_BODY_BYTES) {
      limit.abort();
      throw new BasetideError(
        "source_bad_answer",
        `Airtable's answer is larger than ${MAX_BODY_BYTES} bytes`,
      );
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function isSurelySmall(headers: Headers): boolean {
  const length = headers.get("content-length");
  if (length === null) return false;
  const encoding = headers.get("content-encoding");
  if (encoding !== null && encoding !== "gzip") return false;
  return Number(length) * (encoding === null ? 1 : MAX_GZIP_RATIO) <= MAX_BODY_BYTES;
}

function networkError(
  cause: unknown,
  signal: AbortSignal,
  limit: Limit,
  { address, timeoutMs }: Pick<ClientOptions, "address" | "timeoutMs">,
): BasetideError {
  if (signal.aborted) return new BasetideError("sync_stopped", undefined, { cause });
  if (limit.isTimeOut) {
    return new BasetideError(
      "source_timeout",
      `Airtable did not answer within ${timeoutMs} ms. ${errorCodes.source_timeout}`,
      { cause, details: { timeoutMs } },
    );
  }
  const reason = cause instanceof Error && "code" in cause ? String(cause.code) : String(cause);
  if (DECOMPRESSION_FAILURE.test(reason)) {
    return new BasetideError("source_bad_answer", `Airtable's answer cannot be decompressed (${reason})`, {
      cause,
      details: { reason },
    });
  }
  return new BasetideError(
    "source_unavailable",
    `Airtable could not be reached at ${address} (${reason}). ${errorCodes.source_unavailable}`,
    { cause, details: { reason } },
  );
}

/** A source that echoes the key must not make us log it. */
function withoutKey(error: BasetideError, apiKey: string): BasetideError {
  if (!error.message.includes(apiKey)) return error;
  return new BasetideError(error.code, error.message.replaceAll(apiKey, "[key]"), { details: error.details });
}

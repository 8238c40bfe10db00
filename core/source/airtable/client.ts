/**
 * Sends HTTP requests to Airtable: returns the body as bytes, or throws one of our errors.
 *
 * Every request ends, whatever the other side does: by the time-out, which includes the body, by the size limit, or by
 * the caller's signal. The key is sent only in the header. A request is sent once, on a connection of the process's
 * pool.
 */
import type { IncomingMessage } from "node:http";
import { promisify } from "node:util";
import zlib from "node:zlib";
import packageJson from "../../../package.json" with { type: "json" };
import { BasetideError, errorCodes } from "../../errors";
import { type ConnectionPool, type HeldConnection, poolOf, StaleConnection } from "../../http/connections";
import type { SourceClock } from "../clock";
import { STALE_CONNECTION } from "../stale";
import type { SourceConnections } from "../types";
import { refusedCall } from "./answers";

/** Largest body that is read, bytes, compressed or decompressed. A page of 100 records of large cells is a few MB. */
const MAX_BODY_BYTES = 64 * 1024 * 1024;
const USER_AGENT = `Basetide/${packageJson.version}`;

interface ClientOptions {
  /** Scheme, host and port of the API. */
  address: string;
  apiKey: string;
  timeoutMs: number;
  /** Records the date of every answer. */
  clock?: SourceClock | undefined;
}

/**
 * Sends one request for `path` (encoded, with its query); a `body` makes it a POST of JSON, and without a `method` it
 * is a GET. Returns the body of a 200.
 *
 * @param options.held the connection to send it on; without one it waits for any
 */
export type Request = (
  path: string,
  options: {
    signal: AbortSignal;
    body?: unknown;
    method?: "POST" | "DELETE";
    held?: HeldConnection | undefined;
  },
) => Promise<Buffer>;

export interface Client {
  /**
   * Throws `sync_stopped` if the caller's signal aborts, `source_timeout`, `source_unavailable` if the source cannot be
   * reached or closes the connection, `source_bad_answer` for a redirect or a body over 64 MB, and the error that
   * `refusal` returns for other statuses than 200.
   */
  request: Request;
  connections: SourceConnections;
}

export function createClient({ address, apiKey, timeoutMs, clock }: ClientOptions): Client {
  const pool = poolOf(address);
  const headers = {
    Authorization: `Bearer ${apiKey}`,
    "User-Agent": USER_AGENT,
    Accept: "application/json",
    "Accept-Encoding": "gzip",
  };
  const postHeaders = { ...headers, "Content-Type": "application/json" };

  async function request(path: string, options: Parameters<Request>[1]): Promise<Buffer> {
    const { signal, body, method = body === undefined ? "GET" : "POST" } = options;
    if (!/^[\x21-\x7e]+$/.test(apiKey)) {
      throw new BasetideError("source_key_refused", "The API key is empty or contains invalid characters.");
    }
    using limit = limitBy(signal, timeoutMs);
    try {
      const held = options.held?.isOpen ? options.held : await pool.take(limit.signal);
      const asked = {
        method,
        path,
        headers: new Headers(body === undefined ? headers : postHeaders),
        body: body === undefined ? undefined : new TextEncoder().encode(JSON.stringify(body)),
      };
      const answer = await held.send(asked, limit.signal);
      clock?.record(Date.parse(answer.headers.date ?? ""));
      const bytes = await readBody(answer, limit);
      if (answer.statusCode === 200) return bytes;
      throw withoutKey(refusedCall(answer.statusCode ?? 0, headOf(answer), bytes), apiKey);
    } catch (error) {
      if (error instanceof BasetideError) throw error;
      throw networkError(error, signal, limit, { address, timeoutMs });
    }
  }

  return { request, connections: connectionsOf(pool, address) };
}

/** Wraps the pool so that it throws the source's errors. */
function connectionsOf(pool: ConnectionPool, address: string): SourceConnections {
  return {
    get spreadMs() {
      return pool.spreadMs;
    },
    keepWarm: () => pool.keepWarm(),
    tryTake: () => pool.tryTake(),
    async take(signal) {
      try {
        return await pool.take(signal);
      } catch (error) {
        throw signal.aborted ? error : unreachable(error, address);
      }
    },
  };
}

function headOf({ headers }: IncomingMessage): Headers {
  const retryAfter = headers["retry-after"];
  return new Headers(retryAfter === undefined ? {} : { "retry-after": retryAfter });
}

interface Limit extends Disposable {
  signal: AbortSignal;
  isTimeOut: boolean;
  /** Aborts the request. */
  abort(): void;
}

/** Returns a signal that aborts with `outer` or after `timeoutMs`. Disposing it removes the timer and the listener. */
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

/**
 * Returns the whole body, decompressed. @throws BasetideError `source_bad_answer`; the error that ended the connection
 */
async function readBody(answer: IncomingMessage, limit: Limit): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of answer as AsyncIterable<Uint8Array>) {
    length += chunk.length;
    if (length > MAX_BODY_BYTES) {
      limit.abort();
      throw tooLarge();
    }
    chunks.push(chunk);
  }
  return decompressed(Buffer.concat(chunks), answer.headers["content-encoding"] ?? "identity");
}

const gunzip = promisify<Uint8Array, zlib.ZlibOptions, Buffer>(zlib.gunzip);

async function decompressed(bytes: Buffer, encoding: string): Promise<Buffer> {
  if (encoding === "identity" || bytes.length === 0) return bytes;
  let cause: unknown;
  if (/^(x-)?gzip$/i.test(encoding)) {
    try {
      return await gunzip(bytes, { maxOutputLength: MAX_BODY_BYTES });
    } catch (error) {
      if (codeOf(error) === "ERR_BUFFER_TOO_LARGE") throw tooLarge();
      cause = error;
    }
  }
  const reason = cause === undefined ? encoding : codeOf(cause);
  throw new BasetideError("source_bad_answer", `Airtable's answer cannot be decompressed (${reason})`, {
    cause,
    details: { reason },
  });
}

function tooLarge(): BasetideError {
  return new BasetideError("source_bad_answer", `Airtable's answer is larger than ${MAX_BODY_BYTES} bytes`);
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : String(error);
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
  return unreachable(cause, address);
}

function unreachable(cause: unknown, address: string): BasetideError {
  const reason = cause instanceof StaleConnection ? STALE_CONNECTION : codeOf(cause);
  return new BasetideError(
    "source_unavailable",
    `Airtable could not be reached at ${address} (${reason}). ${errorCodes.source_unavailable}`,
    { cause, details: { reason } },
  );
}

/** Redacts the key: if the source echoes it, we must not log it. */
function withoutKey(error: BasetideError, apiKey: string): BasetideError {
  if (!error.message.includes(apiKey)) return error;
  return new BasetideError(error.code, error.message.replaceAll(apiKey, "[key]"), { details: error.details });
}

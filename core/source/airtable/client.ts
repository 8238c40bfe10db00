/**
 * Sends HTTP requests to Airtable: returns the body, or throws one of our errors.
 *
 * Every request ends, whatever the other side does: by the time-out, which includes the body, by the size limit, or by
 * the caller's signal. The key is sent only in the header. A request is sent once, on a connection of the process's
 * pool.
 */
import packageJson from "../../../package.json" with { type: "json" };
import { BasetideError, errorCodes } from "../../errors";
import {
  AnswerTimeout,
  AnswerTooLarge,
  type ConnectionPool,
  type Connections,
  type HeldConnection,
  type HttpAnswer,
  poolOf,
  StaleConnection,
} from "../../http/connections";
import type { SourceClock } from "../clock";
import { STALE_CONNECTION } from "../stale";
import { refusedCall } from "./answers";
import { errorReason, MAX_BODY_BYTES, ReceivedBody, tooLarge } from "./received-body";

/** Text that a request line or a header can carry. */
const PRINTABLE = /^[\x21-\x7e]+$/;
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
 * is a GET. Returns the text of a 200.
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
  /** The same, and returns the body before it is decompressed. */
  receive: (...call: Parameters<Request>) => Promise<ReceivedBody>;
  /**
   * Throws `sync_stopped` if the caller's signal aborts, `source_timeout`, `source_unavailable` if the source cannot be
   * reached or closes the connection, `source_bad_answer` for a redirect or a body over 64 MB, and the error that
   * `refusal` returns for other statuses than 200.
   */
  request: Request;
  connections: Connections;
}

export function createClient({ address, apiKey, timeoutMs, clock }: ClientOptions): Client {
  const pool = poolOf(address);
  const head = [
    `Authorization: Bearer ${apiKey}`,
    `User-Agent: ${USER_AGENT}`,
    "Accept: application/json",
    "Accept-Encoding: gzip",
    "",
  ].join("\r\n");
  const postHead = `${head}Content-Type: application/json\r\n`;
  const isKeyPrintable = PRINTABLE.test(apiKey);

  const request: Request = async (path, options) => (await receive(path, options)).text();

  async function receive(path: string, options: Parameters<Request>[1]): Promise<ReceivedBody> {
    const { signal, body, method = body === undefined ? "GET" : "POST" } = options;
    if (!PRINTABLE.test(path)) throw new RangeError("a path must be encoded");
    if (!isKeyPrintable) {
      throw new BasetideError("source_key_refused", "The API key is empty or contains invalid characters.");
    }
    try {
      let leftMs = timeoutMs;
      let { held } = options;
      if (!held?.isOpen) {
        const startedAt = performance.now();
        held = await taken(signal);
        leftMs -= performance.now() - startedAt;
      }
      const asked = {
        method,
        path,
        head: body === undefined ? head : postHead,
        body: body === undefined ? undefined : JSON.stringify(body),
        mostBytes: MAX_BODY_BYTES,
        timeoutMs: leftMs,
      };
      const answer = await held.exchange(asked, signal);
      clock?.record(timeOf(answer.headers.get("date") ?? ""));
      const received = new ReceivedBody(answer.body, answer.headers.get("content-encoding") ?? "identity");
      if (answer.status === 200) return received;
      throw withoutKey(refusedCall(answer.status, headersOf(answer), await received.text()), apiKey);
    } catch (error) {
      if (error instanceof BasetideError) throw error;
      if (error instanceof AnswerTooLarge) throw tooLarge();
      throw networkError(error, signal, { address, timeoutMs });
    }
  }

  /** @throws AnswerTimeout when no connection is free within the time of the request */
  async function taken(signal: AbortSignal): Promise<HeldConnection> {
    const late = AbortSignal.timeout(timeoutMs);
    try {
      return await pool.take(AbortSignal.any([signal, late]));
    } catch (error) {
      throw late.aborted && !signal.aborted ? new AnswerTimeout() : error;
    }
  }

  return { request, receive, connections: connectionsOf(pool, address) };
}

/** Wraps the pool so that it throws the source's errors. */
function connectionsOf(pool: ConnectionPool, address: string): Connections {
  return {
    get spreadMs() {
      return pool.spreadMs;
    },
    get dropMs() {
      return pool.dropMs;
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

let lastDate = { text: "", ms: Number.NaN };

/** Returns what the header `Date` says, ms; NaN if it is not valid. All answers of a second have the same one. */
function timeOf(text: string): number {
  if (text !== lastDate.text) lastDate = { text, ms: Date.parse(text) };
  return lastDate.ms;
}

function headersOf({ headers }: HttpAnswer): Headers {
  const retryAfter = headers.get("retry-after");
  return new Headers(retryAfter === undefined ? {} : { "retry-after": retryAfter });
}

function networkError(
  cause: unknown,
  signal: AbortSignal,
  { address, timeoutMs }: Pick<ClientOptions, "address" | "timeoutMs">,
): BasetideError {
  if (signal.aborted) return new BasetideError("sync_stopped", undefined, { cause });
  if (cause instanceof AnswerTimeout) {
    return new BasetideError(
      "source_timeout",
      `Airtable did not answer within ${timeoutMs} ms. ${errorCodes.source_timeout}`,
      { cause, details: { timeoutMs } },
    );
  }
  return unreachable(cause, address);
}

function unreachable(cause: unknown, address: string): BasetideError {
  const reason = cause instanceof StaleConnection ? STALE_CONNECTION : errorReason(cause);
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

/**
 * Sends one request to the upstream, with its own time-out, on a kept connection.
 *
 * P5. It is sent once, even if the connection breaks.
 */
import {
  AnswerTimeout,
  type HeldConnection,
  poolOf,
  StaleConnection,
  type StreamedAnswer,
  type WireRequest,
} from "../../core/http/connections";
import { firstOf } from "./answer-body";
import type { AnswerPlace } from "./answer-place";
import { answerHeaders, type RequestHeaders } from "./headers";

export interface UpstreamRequest extends WireRequest {
  /** Scheme, host and port. */
  address: string;
  headers: RequestHeaders;
}

/** Statuses whose answer has no body, and whose `Response` takes none (Fetch standard, "null body status"). */
const NO_BODY = new Set([204, 205, 304]);

/** "stale": a kept connection broke before an answer. "crowded": too many of its owners' requests hold connections. */
export type UpstreamFailure = "timeout" | "unreachable" | "aborted" | "stale" | "crowded";

/**
 * Sends the request and returns the answer as soon as its headers have arrived; its body has the unmodified bytes:
 * whole if they arrived at once, and otherwise a stream. `signal` (the client's) aborts the request, and later the
 * body.
 *
 * @param place left when the request has ended
 * @param held the connection that was already taken; without one it waits for any
 */
export async function askUpstream(
  request: UpstreamRequest,
  timeoutMs: number,
  signal: AbortSignal,
  place: AnswerPlace,
  held?: HeldConnection,
): Promise<Response | UpstreamFailure> {
  let late: AbortSignal | undefined;
  let answer: StreamedAnswer | undefined;
  try {
    const pool = poolOf(request.address);
    let connection = held ?? pool.tryTake();
    if (!connection) {
      late = AbortSignal.timeout(timeoutMs);
      connection = await pool.take(AbortSignal.any([signal, late]));
    }
    answer = await connection.send(request, signal, timeoutMs, (breakOff) => place.sent(breakOff));
    const head = headOf(answer);
    if (hasBody(request, answer)) return new Response(await firstOf(answer, place), head);
    place.leave();
    answer.discard();
    return new Response(null, head);
  } catch (error) {
    answer?.destroy();
    place.leave();
    if (signal.aborted) return "aborted";
    if (place.isLost) return "crowded";
    if (late?.aborted || error instanceof AnswerTimeout) return "timeout";
    return error instanceof StaleConnection ? "stale" : "unreachable";
  }
}

/** An answer that was read to its end. */
export interface WholeAnswer {
  status: number;
  statusText: string;
  /** Those that are for the client. */
  headers: Headers;
  bytes: Uint8Array<ArrayBuffer>;
}

/**
 * Sends the request and reads the whole answer; it cannot be aborted.
 *
 * @returns `{failure, status}` if it failed: with a status, if one had arrived
 */
export async function askWhole(
  request: UpstreamRequest,
  timeoutMs: number,
  held?: HeldConnection,
): Promise<WholeAnswer | { failure: UpstreamFailure; status: number | undefined }> {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), timeoutMs);
  let status: number | undefined;
  try {
    const connection = held ?? (await poolOf(request.address).take(late.signal));
    const answer = await connection.send(request, late.signal);
    status = answer.status;
    if (hasBody(request, answer)) return { ...headOf(answer), bytes: new Uint8Array(await answer.bytes()) };
    answer.discard();
    return { ...headOf(answer), bytes: new Uint8Array() };
  } catch (error) {
    if (late.signal.aborted) return { failure: "timeout", status };
    late.abort();
    return { failure: error instanceof StaleConnection ? "stale" : "unreachable", status };
  } finally {
    clearTimeout(timer);
  }
}

function hasBody({ method }: UpstreamRequest, { status }: StreamedAnswer): boolean {
  return method !== "HEAD" && !NO_BODY.has(status);
}

function headOf({ status, statusText, lines }: StreamedAnswer) {
  return { status, statusText, headers: answerHeaders(lines) };
}

/**
 * Produces the answer of each fault. Some faults replace the answer, some corrupt the bytes of the real one; those
 * about lists are applied where lists are made (`list.ts`).
 */
import { setTimeout } from "node:timers/promises";
import {
  type ApiError,
  apiError,
  billingLimit,
  iteratorLost,
  permissionsOrModelNotFound,
  rateLimited,
  retriable,
  unauthenticated,
  unroutable,
} from "./errors";
import type { Fault, FaultKind } from "./faults";
import type { ListFault } from "./request";

/** How long a hanging answer hangs by default: longer than any client waits. */
const HANG_MS = 10 * 60_000;
const SLOW_PIECES = 10;
const SLOW_DELAY_MS = 200;

const BAD_GATEWAY_PAGE =
  "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad Gateway</h1></center>\r\n" +
  "</body>\r\n</html>\r\n";
const WAITING_PAGE =
  "<!DOCTYPE html><html><head><title>Airtable</title></head><body>Please wait</body></html>";

const ERRORS: Partial<Record<FaultKind, () => ApiError>> = {
  status_500: () => apiError(500, "SERVER_ERROR", "An unexpected error occurred"),
  status_503: retriable,
  rate_limited: () => rateLimited("plural"),
  rate_limited_object: () => rateLimited("object"),
  billing_limit: () => billingLimit("object"),
  unauthorized: unauthenticated,
  forbidden: permissionsOrModelNotFound,
  not_found: unroutable,
  iterator_lost: iteratorLost,
};

const SPOILING = new Set<FaultKind>(["broken_json", "truncated", "slow_body", "hang"]);
const OF_LISTS = new Set<string>(["empty_list", "repeat_page", "endless_list"] satisfies ListFault[]);

/** The fault, if it is one that changes the records of a list. */
export function listFault(fault: Fault | undefined): ListFault | undefined {
  return fault && OF_LISTS.has(fault.kind) ? (fault.kind as ListFault) : undefined;
}

/** Whether the fault replaces the answer, so that none need be made. */
export function isReplacing(fault: Fault): boolean {
  return !SPOILING.has(fault.kind) && !OF_LISTS.has(fault.kind);
}

/** Returns the answer of a replacing fault. @throws ApiError for faults that are error answers */
export function replacement(fault: Fault): Response {
  const error = ERRORS[fault.kind];
  if (error) throw error();
  switch (fault.kind) {
    case "status_502_html":
      return new Response(BAD_GATEWAY_PAGE, { status: 502, headers: { "content-type": "text/html" } });
    case "html_200":
      return new Response(WAITING_PAGE, { status: 200, headers: { "content-type": "text/html" } });
    case "endless_body":
      return new Response(endlessBody(), { headers: { "content-type": "application/json; charset=utf-8" } });
    default:
      return new Response(deadBody());
  }
}

/**
 * Returns `response` with corrupted bytes. Its body must not be compressed.
 *
 * @param signal the client has disconnected: a hanging answer ends
 */
export async function spoiled(fault: Fault, response: Response, signal: AbortSignal): Promise<Response> {
  const { status, headers } = response;
  if (fault.kind === "hang") {
    await setTimeout(fault.delayMs ?? HANG_MS, undefined, { signal, ref: false }).catch(() => {});
    return response;
  }
  const bytes = new Uint8Array(await response.arrayBuffer());
  const half = bytes.subarray(0, Math.max(1, Math.floor(bytes.length / 2)));
  if (fault.kind === "broken_json") return new Response(half, { status, headers });
  if (fault.kind === "truncated") return new Response(cutBody(half), { status, headers });
  return new Response(slowBody(bytes, fault.delayMs ?? SLOW_DELAY_MS), { status, headers });
}

/** The connection is cut before any answer. */
function deadBody(): ReadableStream<Uint8Array> {
  return new ReadableStream({ start: (controller) => controller.error() });
}

/** `bytes`, then the connection is cut. */
function cutBody(bytes: Uint8Array): ReadableStream<Uint8Array> {
  return new ReadableStream({
    async pull(controller) {
      controller.enqueue(bytes);
      // Gives the bytes time to leave: an immediate error would overtake them.
      await Bun.sleep(5);
      controller.error();
    },
  });
}

function slowBody(bytes: Uint8Array, delayMs: number): ReadableStream<Uint8Array> {
  const pieceLength = Math.ceil(bytes.length / SLOW_PIECES);
  let at = 0;
  return new ReadableStream({
    async pull(controller) {
      await Bun.sleep(delayMs);
      controller.enqueue(bytes.subarray(at, at + pieceLength));
      at += pieceLength;
      if (at >= bytes.length) controller.close();
    },
  });
}

/** Endless records, a few megabytes a second at most. */
function endlessBody(): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const filler = encoder.encode(" ".repeat(16_384));
  let isBegun = false;
  return new ReadableStream({
    async pull(controller) {
      await Bun.sleep(5);
      controller.enqueue(isBegun ? filler : encoder.encode('{"records":['));
      isBegun = true;
    },
  });
}

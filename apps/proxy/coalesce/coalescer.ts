/**
 * Write coalescing: sends creates and updates of single records to the source in requests of up to ten, so that a
 * base's five requests a second carry up to fifty writes.
 *
 * P8. The updates of one record are sent one after the other, in order of arrival, each after the previous one was
 *     answered.
 */
import { withTimeout } from "../../../core/async";
import { requestId } from "../../../core/request-id";
import type { Caller } from "../caller";
import type { Elsewhere, ProxyContext } from "../context";
import { failed, ownAnswer } from "../own-answers";
import type { UpstreamRequest } from "../upstream";
import { answerWrite, forwardWrite, type WriteTarget } from "../write";
import { type BatchOutcome, WriteBatch } from "./batch";
import { sendBatch } from "./send-batch";
import { type SingleWrite, singleWriteOf } from "./single-write";

/** How long a batch waits for further writes, ms. While it waits for the rate limit, more may join. */
const GATHER_MS = 25;
/** Writes of one key that may wait for one base: what a key's requests carry in ten seconds. */
const MAX_WAITING = 500;
const FULL_RETRY_MS = 5000;

export class WriteCoalescer {
  /** The batch that writes can join, by their group. */
  readonly #open = new Map<string, WriteBatch>();
  readonly #turns = new RecordTurns();
  /** Writes that wait, by key and base. */
  readonly #waiting = new Map<string, number>();

  /** Forwards a write, together with others if the settings of its base and its own content allow that. */
  async forward(
    ctx: ProxyContext,
    request: UpstreamRequest,
    target: WriteTarget,
    signal: AbortSignal,
    elsewhere: Elsewhere,
  ): Promise<Response> {
    const { baseId, call, caller, isRecorded } = target;
    const write = mayCoalesce(caller) && singleWriteOf(request, baseId, call, caller.keyHash);
    if (!write) return forwardWrite(ctx, request, target, signal, elsewhere);
    // A batch that it has joined may be sent at any moment.
    if ((await isRecorded) === false) return failed(ctx.proxyMetrics, "aborted");
    const waiting = this.#waiting.get(caller.keyHash) ?? 0;
    if (waiting >= MAX_WAITING) return tooMany();
    this.#waiting.set(caller.keyHash, waiting + 1);
    const from = performance.now();
    try {
      // As long as a request may wait for the quota.
      const withinMs = 2 * ctx.config.upstreamTimeoutMs;
      const record = write.recordId && `${caller.keyHash} ${write.recordId}`;
      using turn = await this.#turns.take(record, withinMs);
      if (!turn) return tooMany();
      const outcome = await this.#send(ctx, request, write, target, signal);
      elsewhere.ms += performance.now() - from;
      if (outcome === "aborted") return failed(ctx.proxyMetrics, "aborted");
      if (outcome === "alone") return await forwardWrite(ctx, request, target, signal, elsewhere);
      if ("refusal" in outcome) return copyOfOwn(outcome.refusal, outcome.text);
      return await answerWrite(ctx, outcome, call, request);
    } finally {
      const left = this.#waiting.get(caller.keyHash)! - 1;
      if (left > 0) this.#waiting.set(caller.keyHash, left);
      else this.#waiting.delete(caller.keyHash);
    }
  }

  /** Sends the write with the open batch of its group, or with a new one. */
  async #send(
    ctx: ProxyContext,
    request: UpstreamRequest,
    write: SingleWrite,
    target: WriteTarget,
    signal: AbortSignal,
  ): Promise<BatchOutcome> {
    if (signal.aborted) return "aborted";
    const { promise, resolve, reject } = Promise.withResolvers<BatchOutcome>();
    const member = { request, write, resolve, reject };
    const known = this.#open.get(write.group);
    const batch = known?.isOpen ? known : new WriteBatch();
    batch.join(member);
    if (batch !== known) {
      this.#open.set(write.group, batch);
      void sendBatch(ctx, batch, target, batch.filledWithin(GATHER_MS)).finally(() => {
        if (this.#open.get(write.group) === batch) this.#open.delete(write.group);
      });
    }
    const leave = () => batch.leave(member) && resolve("aborted");
    signal.addEventListener("abort", leave);
    try {
      return await promise;
    } finally {
      signal.removeEventListener("abort", leave);
    }
  }
}

/**
 * May this caller's writes be combined? The setting belongs to one account: if others have connected the same base, it
 * applies to writes with the own key of the base that has it.
 */
function mayCoalesce({ found: { bases }, isProven, isOwnKeyOf }: Caller): boolean {
  if (!isProven || !bases.some((base) => base.coalesceWrites)) return false;
  const isOneAccounts = bases.every(({ accountId }) => accountId === bases[0]!.accountId);
  return bases.some((base) => base.coalesceWrites && (isOneAccounts || isOwnKeyOf(base)));
}

function tooMany(): Response {
  return ownAnswer("PROXY_TOO_MANY_REQUESTS", { retryAfterMs: FULL_RETRY_MS });
}

/** Returns the proxy's own answer to a batch, with the id of this request. */
function copyOfOwn({ status, headers }: Response, text: string): Response {
  const own = new Headers(headers);
  own.set("x-request-id", requestId()!);
  return new Response(text, { status, headers: own });
}

const NONE: Disposable = { [Symbol.dispose]() {} };

/** Lets the writes of one record go one after the other, in order of arrival. */
export class RecordTurns {
  /** When the last turn that was taken ends, by record. */
  readonly #last = new Map<string, Promise<void>>();

  /**
   * Resolves when all earlier turns of the record have ended; at once without a record.
   *
   * @returns undefined if they do not end within `ms`: the turn is given up
   */
  async take(record: string | undefined, ms: number): Promise<Disposable | undefined> {
    if (record === undefined) return NONE;
    const before = this.#last.get(record);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#last.set(record, promise);
    const end = () => {
      if (this.#last.get(record) === promise) this.#last.delete(record);
      resolve();
    };
    const isTime = before?.then(() => true) ?? true;
    if (isTime === true || (await withTimeout(ms, () => false, isTime))) return { [Symbol.dispose]: end };
    // Later turns still wait for the earlier ones.
    void before!.then(end);
    return undefined;
  }
}

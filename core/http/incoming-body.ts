/**
 * Receives the body of a request: memory is taken from a budget as bytes arrive, whatever length was announced, and a
 * client is waited for only as long as it sends.
 */
import { BasetideError } from "../errors";
import { allowLongAnswer, endSoon } from "./answer-time";
import type { BudgetShare } from "./shared-budget";

/** A client may be silent for this long, ms; over all, its bytes must arrive at the rate below from then on. */
const GRACE_MS = 10_000;
const LEAST_BYTES_PER_MS = 64;
/** A body that is announced to be no longer is counted when it is complete: the head may be longer. */
const SMALL_BYTES = 16 * 1024;

/**
 * Why a body was not received: it is longer than allowed; the budget is full, or the body gave way to others; it came too
 * slowly; the connection broke.
 */
export type BodyFailure = "too_large" | "full" | "late" | "broken";

interface BodyLimits {
  mostBytes: number;
  graceMs?: number;
}

export class IncomingBody implements Disposable {
  readonly #request: Request;
  readonly #mostBytes: number;
  readonly #graceMs: number;
  readonly #share: BudgetShare;
  readonly #failed = Promise.withResolvers<BodyFailure>();
  #received = 0;
  #beganAt = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /**
   * @param request has a body
   * @param share of a budget of bytes; it is closed with the body
   */
  constructor(request: Request, share: BudgetShare, { mostBytes, graceMs = GRACE_MS }: BodyLimits) {
    this.#request = request;
    this.#mostBytes = mostBytes;
    this.#graceMs = graceMs;
    this.#share = share;
  }

  /** Receives the whole body. Never fails. */
  async whole(): Promise<Uint8Array<ArrayBuffer> | BodyFailure> {
    const announced = this.#announced();
    if (announced > this.#mostBytes) return "too_large";
    this.#begin();
    try {
      if (announced <= SMALL_BYTES) {
        const bytes = await this.#orFailure(this.#request.arrayBuffer());
        if (typeof bytes !== "string") return this.#count(bytes.byteLength) ?? new Uint8Array(bytes);
        endSoon(this.#request);
        return bytes;
      }
      const pieces: Uint8Array[] = [];
      const reader = this.#request.body!.getReader();
      for (;;) {
        const piece = await this.#next(reader);
        if (typeof piece === "string") return piece;
        if (piece === undefined) return new Uint8Array(Bun.concatArrayBuffers(pieces));
        pieces.push(piece);
      }
    } catch {
      return "broken";
    } finally {
      clearTimeout(this.#timer);
    }
  }

  /** Returns the body as a stream, which fails with BasetideError `body_too_large`, `body_late` or `busy`. */
  stream(): ReadableStream<Uint8Array> {
    const reader = this.#request.body!.getReader();
    return new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          if (this.#announced() > this.#mostBytes) return controller.error(errorOf("too_large"));
          if (this.#beganAt === 0) this.#begin();
          const piece = await this.#next(reader);
          if (piece === undefined || typeof piece === "string") clearTimeout(this.#timer);
          if (piece === undefined) controller.close();
          else if (typeof piece === "string") controller.error(errorOf(piece));
          else controller.enqueue(piece);
        },
        cancel: (reason) => reader.cancel(reason),
      },
      // Nothing is received before it is read.
      { highWaterMark: 0 },
    );
  }

  /** The share has given way to another one: nothing more is received. */
  giveWay(): void {
    this.#failed.resolve("full");
  }

  /** It no longer gives way to others. */
  keep(): void {
    this.#share.keep();
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#share[Symbol.dispose]();
  }

  /** NaN: no length was announced. */
  #announced(): number {
    return Number(this.#request.headers.get("content-length") ?? Number.NaN);
  }

  #begin(): void {
    this.#beganAt = performance.now();
    this.#timer = setTimeout(() => this.#check(), this.#graceMs);
    // This deadline replaces the listener's, which ends slow uploads that make progress.
    allowLongAnswer(this.#request);
  }

  #check(): void {
    const dueAt = this.#beganAt + this.#graceMs + this.#received / LEAST_BYTES_PER_MS;
    const leftMs = dueAt - performance.now();
    if (leftMs <= 0) this.#failed.resolve("late");
    else this.#timer = setTimeout(() => this.#check(), leftMs);
  }

  /** @returns undefined at the end */
  async #next(
    reader: ReadableStreamDefaultReader<Uint8Array>,
  ): Promise<Uint8Array | undefined | BodyFailure> {
    const read = await this.#orFailure(reader.read());
    const failure = typeof read === "string" ? read : this.#count(read.value?.length ?? 0);
    if (failure === undefined) return (read as { value?: Uint8Array }).value;
    reader.cancel().catch(() => {});
    endSoon(this.#request);
    return failure;
  }

  #orFailure<T>(receiving: Promise<T>): Promise<T | BodyFailure> {
    // Its failure does not matter if it comes after the other.
    receiving.catch(() => {});
    return Promise.race([receiving, this.#failed.promise]);
  }

  #count(bytes: number): BodyFailure | undefined {
    this.#received += bytes;
    if (this.#received > this.#mostBytes) return "too_large";
    return bytes === 0 || this.#share.take(bytes) ? undefined : "full";
  }
}

function errorOf(failure: BodyFailure): BasetideError {
  if (failure === "full") return new BasetideError("busy", undefined, { details: { retryAfterSeconds: 1 } });
  const codes = { too_large: "body_too_large", late: "body_late", broken: "invalid_request" } as const;
  return new BasetideError(codes[failure]);
}

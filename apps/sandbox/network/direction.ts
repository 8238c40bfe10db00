/**
 * One direction of one simulated connection: bytes arrive after the network's delay.
 *
 * N1. They arrive in the order in which they were sent, whatever the jitter.
 */
import type { Socket } from "node:net";

/** The most bytes under way at once; beyond it the sender waits, as for a full TCP window. */
const MAX_UNDER_WAY_BYTES = 1 << 20;

interface Piece {
  /** On the performance clock, ms. */
  arrivesAt: number;
  /** Absent: the end of the stream. */
  bytes?: Buffer;
}

export class Direction {
  readonly #from: Socket;
  readonly #to: Socket;
  readonly #underWay: Piece[] = [];
  #bytesUnderWay = 0;
  #opensAt = 0;
  #lastArrivesAt = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isFull = false;

  constructor(from: Socket, to: Socket) {
    this.#from = from;
    this.#to = to;
    to.on("drain", () => this.#regulate());
  }

  /** Nothing is sent before `atMs`, on the performance clock. */
  openAt(atMs: number): void {
    this.#opensAt = atMs;
  }

  /** Sends bytes, or the connection's end. */
  carry(bytes: Buffer | undefined, delayMs: number): void {
    const nowMs = performance.now();
    const arrivesAt = Math.max(Math.max(nowMs, this.#opensAt) + delayMs, this.#lastArrivesAt);
    this.#lastArrivesAt = arrivesAt;
    if (arrivesAt <= nowMs && this.#underWay.length === 0) {
      this.#arrive(bytes);
      return;
    }
    // A copy: the runtime may read the next piece into the same memory.
    this.#underWay.push({ arrivesAt, ...(bytes && { bytes: Buffer.from(bytes) }) });
    this.#bytesUnderWay += bytes?.length ?? 0;
    this.#regulate();
    this.#timer ??= this.#wake(arrivesAt - nowMs);
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#underWay.length = 0;
  }

  #wake(afterMs: number): ReturnType<typeof setTimeout> {
    return setTimeout(() => this.#deliver(), Math.max(0, afterMs));
  }

  #deliver(): void {
    this.#timer = undefined;
    const nowMs = performance.now();
    while (this.#underWay.length > 0 && this.#underWay[0]!.arrivesAt <= nowMs) {
      const piece = this.#underWay.shift()!;
      this.#bytesUnderWay -= piece.bytes?.length ?? 0;
      this.#arrive(piece.bytes);
    }
    const [next] = this.#underWay;
    if (next) this.#timer = this.#wake(next.arrivesAt - nowMs);
    this.#regulate();
  }

  #arrive(bytes: Buffer | undefined): void {
    if (this.#to.destroyed) return;
    if (bytes === undefined) this.#to.end();
    else if (!this.#to.write(bytes)) this.#regulate();
  }

  /** Stops reading from the sender while too much is under way or the receiver does not read. */
  #regulate(): void {
    const isFull = this.#bytesUnderWay > MAX_UNDER_WAY_BYTES || this.#to.writableNeedDrain;
    if (isFull === this.#isFull) return;
    this.#isFull = isFull;
    if (isFull) this.#from.pause();
    else this.#from.resume();
  }
}

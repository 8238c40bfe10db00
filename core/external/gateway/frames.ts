/** Splits a stream of the Postgres protocol into messages, and buffers at most one unfinished message. */
import { HEAD_BYTES } from "../messages";
import { Violation } from "./fault";

/** @param whole the message with its head; `type` is its first byte */
type OnFrame = (type: number, whole: Buffer) => void;

export class Frames {
  readonly #limitOf: (type: number) => number;
  #parts: Buffer[] = [];
  #held = 0;
  /** Bytes of the unfinished message, with its head; 0 until its length is known. */
  #needed = 0;
  /** When the unfinished message began, ms; undefined if there is none. */
  begunAt: number | undefined;

  /** @param limitOf returns the longest body for this type of message; throws for an unknown type */
  constructor(limitOf: (type: number) => number) {
    this.#limitOf = limitOf;
  }

  /** Bytes of the unfinished message. */
  get held(): number {
    return this.#held;
  }

  /** Adds received data, and passes on every message that is complete now. @throws Violation */
  push(chunk: Buffer, onFrame: OnFrame): void {
    const data = this.#join(chunk);
    if (data === undefined) return;
    let at = 0;
    while (data.length - at >= HEAD_BYTES) {
      const size = this.#sizeOf(data, at);
      if (data.length - at < size) {
        this.#needed = size;
        break;
      }
      onFrame(data[at]!, data.subarray(at, at + size));
      at += size;
    }
    if (at < data.length) this.#keep(at === 0 ? data : data.subarray(at));
  }

  /** Returns the unfinished message with `chunk` appended; undefined if it is still known to be unfinished. */
  #join(chunk: Buffer): Buffer | undefined {
    if (this.#held === 0) return chunk;
    this.#parts.push(chunk);
    this.#held += chunk.length;
    if (this.#held < this.#needed) return undefined;
    const data = Buffer.concat(this.#parts, this.#held);
    this.#parts = [];
    this.#held = this.#needed = 0;
    this.begunAt = undefined;
    return data;
  }

  #keep(rest: Buffer): void {
    // A copy: the chunk that contains it may be much larger.
    this.#parts = [Buffer.from(rest)];
    this.#held = rest.length;
    this.begunAt ??= performance.now();
  }

  #sizeOf(data: Buffer, at: number): number {
    const length = data.readUInt32BE(at + 1);
    const limit = this.#limitOf(data[at]!);
    if (length < 4) throw new Violation("framing", `a message of ${length} bytes`);
    if (length - 4 > limit) throw new Violation("size", `a message of ${length} bytes, more than ${limit}`);
    return length + 1;
  }
}

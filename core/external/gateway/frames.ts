/** Cuts a stream of the Postgres protocol into messages, without keeping more than one unfinished message. */
import { Violation } from "./fault";

/** Type and length. */
const HEAD_BYTES = 5;

/** @param whole the message with its head, `type` its first byte */
export type OnFrame = (type: number, whole: Buffer) => void;

export class Frames {
  readonly #limitOf: (type: number) => number;
  #parts: Buffer[] = [];
  #held = 0;
  /** Of the unfinished message, with its head; 0 until its length is known. */
  #needed = 0;
  /** When the unfinished message began, ms; undefined where there is none. */
  begunAt: number | undefined;

  /** @param limitOf the longest body of a message of this type; throws for a type that is unknown */
  constructor(limitOf: (type: number) => number) {
    this.#limitOf = limitOf;
  }

  /** Bytes of the unfinished message. */
  get held(): number {
    return this.#held;
  }

  /** Takes in what came, and hands on every message that is complete now. @throws Violation */
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

  /** The unfinished message with `chunk` behind it; undefined while it is known to be unfinished still. */
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
    // A copy: the chunk that it is a part of may be much larger.
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

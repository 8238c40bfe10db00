/** Reads one HTTP/1.1 answer whole, from the bytes of a connection. */
import type { AnswerHead } from "./answer-head";
import { AnswerParser, type AnswerSink } from "./answer-parser";

/** An answer that was read to its end. */
export interface HttpAnswer extends Pick<AnswerHead, "status" | "headers"> {
  /** As it was sent: it may be compressed. Belongs to the caller. */
  body: Buffer;
}

/** The body is larger than allowed. */
export class AnswerTooLarge extends Error {}

export class AnswerReader implements AnswerSink {
  /** Undefined until the answer is complete. */
  answer: HttpAnswer | undefined;
  readonly #mostBytes: number;
  readonly #parser = new AnswerParser(this);
  #head: AnswerHead | undefined;
  #pieces: Buffer[] = [];
  #length = 0;

  /** @param mostBytes of the body */
  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes;
  }

  /** Whether any byte of the answer has arrived. */
  get hasBegun(): boolean {
    return this.#parser.hasBegun;
  }

  /** Whether the connection may be used for another request. Valid once the answer is complete. */
  get keepsAlive(): boolean {
    return this.#parser.keepsAlive;
  }

  /**
   * Reads the bytes that arrived next, which it may keep.
   *
   * @throws InvalidAnswer, AnswerTooLarge
   */
  push(bytes: Buffer): void {
    this.#parser.push(bytes);
  }

  /** The source has ended the connection. @returns whether the answer is complete */
  close(): boolean {
    return this.#parser.end();
  }

  /** For the parser, as those that follow. */
  head(head: AnswerHead, length = 0): void {
    if (length > this.#mostBytes) throw new AnswerTooLarge();
    this.#head = head;
  }

  body(piece: Buffer): void {
    this.#length += piece.length;
    if (this.#length > this.#mostBytes) throw new AnswerTooLarge();
    this.#pieces.push(piece);
  }

  end(): void {
    const { status, headers } = this.#head!;
    this.answer = { status, headers, body: this.#joined() };
  }

  /** The usual page arrives at once, and needs no copy. */
  #joined(): Buffer {
    return this.#pieces.length === 1 ? this.#pieces[0]! : Buffer.concat(this.#pieces, this.#length);
  }
}

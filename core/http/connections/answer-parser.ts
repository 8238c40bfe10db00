/**
 * Finds the end of one HTTP/1.1 answer in the bytes of a connection, in pieces of any size. It costs a fraction of
 * node:http, which creates a stream and a dozen listeners for each request.
 *
 * Strict, since a misread length would make the next answer on the connection start in the wrong place: whatever is not
 * plainly valid is an error, and the connection is closed.
 */

import { type AnswerHead, InvalidAnswer, readHead } from "./answer-head";

/** Longest head, bytes. */
const MOST_HEAD_BYTES = 64 * 1024;
const HEAD_END = Buffer.from("\r\n\r\n");
const LINE_END = Buffer.from("\r\n");
const NAME = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
const TEXT = "[\\t\\x20-\\x7e\\x80-\\xff]*";
const TRAILER = new RegExp(`^${NAME}:${TEXT}$`);
const CHUNK_SIZE = /^([0-9A-Fa-f]{1,8})[\t ]*(?:;[\t\x20-\x7e\x80-\xff]*)?$/;
const CLOSE = /(?:^|,)[\t ]*close[\t ]*(?:,|$)/;
const NO_BYTES = Buffer.alloc(0);

/** Gets the parts of an answer as they arrive. */
export interface AnswerSink {
  /** @param length of the body, bytes; undefined if it is not announced */
  head(head: AnswerHead, length: number | undefined): void;
  /** A part of the body, which belongs to the sink. */
  body(piece: Buffer): void;
  end(): void;
}

export class AnswerParser {
  /** Whether any byte of the answer has arrived. */
  hasBegun = false;
  /** Whether the connection may be used for another request. Valid once the answer is complete. */
  keepsAlive = true;
  readonly #sink: AnswerSink;
  readonly #isHead: boolean;
  /**
   * Reads the next part of the answer. Returns the bytes after it, if any: not by calling the next one, because an answer
   * may have a hundred thousand chunks.
   */
  #read: (bytes: Buffer) => Buffer | undefined = this.#readHead;
  #isComplete = false;
  /** What has arrived of a head, or of a chunk's size. */
  #pending: Buffer = NO_BYTES;
  /** Bytes of the body, or of the chunk, that have yet to arrive. */
  #left = 0;

  /** @param isHead the request was a HEAD: its answer has no body, whatever its headers say */
  constructor(sink: AnswerSink, isHead = false) {
    this.#sink = sink;
    this.#isHead = isHead;
  }

  /**
   * Reads the bytes that arrived next, which the sink may keep.
   *
   * @throws InvalidAnswer, and what the sink throws
   */
  push(bytes: Buffer): void {
    if (bytes.length === 0) return;
    this.hasBegun = true;
    let rest: Buffer | undefined = bytes;
    while (rest !== undefined && rest.length > 0) rest = this.#read(rest);
  }

  /** The source has ended the connection. @returns whether the answer is complete */
  end(): boolean {
    if (this.#read === this.#readToEnd) this.#complete();
    return this.#isComplete;
  }

  #readHead(bytes: Buffer): Buffer | undefined {
    const all = this.#withPending(bytes);
    const end = all.indexOf(HEAD_END);
    if (end < 0 ? all.length > MOST_HEAD_BYTES : end > MOST_HEAD_BYTES)
      throw new InvalidAnswer("a long head");
    if (end < 0) {
      this.#pending = all;
      return undefined;
    }
    const head = readHead(all, end);
    const { status } = head;
    const rest = all.subarray(end + HEAD_END.length);
    if (status === 101) throw new InvalidAnswer("the source switched to another protocol");
    // An interim answer; the final one follows.
    if (status < 200) return rest;
    if (status > 599) throw new InvalidAnswer(`the status ${status}`);
    const connection = head.headers.get("connection")?.toLowerCase();
    this.keepsAlive = !head.isHttp10 && (connection === undefined || !CLOSE.test(connection));
    return this.#beginBody(head, rest);
  }

  #beginBody(head: ReturnType<typeof readHead>, rest: Buffer): Buffer | undefined {
    const coding = head.headers.get("transfer-encoding");
    const length = head.headers.get("content-length");
    if (this.#isHead || head.status === 204 || head.status === 304) {
      this.#sink.head(head, undefined);
      return this.#end(rest);
    }
    if (coding !== undefined) {
      if (length !== undefined || head.isHttp10 || coding.toLowerCase() !== "chunked") {
        throw new InvalidAnswer(`the transfer coding ${coding}`);
      }
      this.#sink.head(head, undefined);
      this.#read = this.#readChunkSize;
    } else if (length !== undefined) {
      if (!/^\d{1,15}$/.test(length)) throw new InvalidAnswer("an invalid length");
      this.#left = Number(length);
      this.#sink.head(head, this.#left);
      if (this.#left === 0) return this.#end(rest);
      this.#read = this.#readLength;
    } else {
      this.keepsAlive = false;
      this.#sink.head(head, undefined);
      this.#read = this.#readToEnd;
    }
    return rest;
  }

  #readLength(bytes: Buffer): Buffer | undefined {
    const rest = this.#takePart(bytes);
    return this.#left === 0 ? this.#end(rest) : undefined;
  }

  #readToEnd(bytes: Buffer): undefined {
    this.#sink.body(bytes);
  }

  #readChunkSize(bytes: Buffer): Buffer | undefined {
    const all = this.#withPending(bytes);
    const end = all.indexOf(LINE_END);
    if (end < 0) {
      if (all.length > MOST_HEAD_BYTES) throw new InvalidAnswer("a long chunk size");
      this.#pending = all;
      return undefined;
    }
    const [, size] = CHUNK_SIZE.exec(all.toString("latin1", 0, end)) ?? [];
    if (size === undefined) throw new InvalidAnswer("an invalid chunk size");
    this.#left = Number.parseInt(size, 16);
    this.#read = this.#left === 0 ? this.#readTrailer : this.#readChunk;
    return all.subarray(end + LINE_END.length);
  }

  #readChunk(bytes: Buffer): Buffer | undefined {
    const rest = this.#takePart(bytes);
    if (this.#left > 0) return undefined;
    this.#read = this.#readChunkEnd;
    return rest;
  }

  #readChunkEnd(bytes: Buffer): Buffer | undefined {
    const all = this.#withPending(bytes);
    if (all[0] !== LINE_END[0] || (all.length > 1 && all[1] !== LINE_END[1])) {
      throw new InvalidAnswer("a chunk without an end");
    }
    if (all.length === 1) {
      this.#pending = all;
      return undefined;
    }
    this.#read = this.#readChunkSize;
    return all.subarray(2);
  }

  /** Trailers are read and ignored. */
  #readTrailer(bytes: Buffer): Buffer | undefined {
    const all = this.#withPending(bytes);
    const end = all.indexOf(LINE_END);
    if (end < 0 || all.length > MOST_HEAD_BYTES) {
      if (all.length > MOST_HEAD_BYTES) throw new InvalidAnswer("long trailers");
      this.#pending = all;
      return undefined;
    }
    const rest = all.subarray(end + LINE_END.length);
    if (end === 0) return this.#end(rest);
    if (!TRAILER.test(all.toString("latin1", 0, end))) throw new InvalidAnswer("an invalid trailer");
    return rest;
  }

  /** Gives the sink what belongs to the body or chunk. @returns the bytes after it */
  #takePart(bytes: Buffer): Buffer | undefined {
    const part = bytes.length > this.#left ? bytes.subarray(0, this.#left) : bytes;
    this.#left -= part.length;
    this.#sink.body(part);
    return part === bytes ? undefined : bytes.subarray(part.length);
  }

  #withPending(bytes: Buffer): Buffer {
    if (this.#pending.length === 0) return bytes;
    const all = Buffer.concat([this.#pending, bytes]);
    this.#pending = NO_BYTES;
    return all;
  }

  /** @param more bytes after the answer, which belong to no request of ours */
  #end(more: Buffer | undefined): undefined {
    if (more !== undefined && more.length > 0) this.keepsAlive = false;
    this.#complete();
  }

  #complete(): void {
    this.#isComplete = true;
    this.#read = () => {
      this.keepsAlive = false;
      return undefined;
    };
    this.#sink.end();
  }
}

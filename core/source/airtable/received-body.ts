/** The body of an answer as it was sent, and its text: decompressed, when it is needed. */
import { promisify } from "node:util";
import zlib from "node:zlib";
import { BasetideError } from "../../errors";
import { freeNow, gunzipAtOnce, gunzipBriefly, SHORTEST_GZIP } from "../../http";

/** Largest body that is read, bytes, compressed or decompressed. A page of 100 records of large cells is a few MB. */
export const MAX_BODY_BYTES = 64 * 1024 * 1024;

const LIMIT = { maxOutputLength: MAX_BODY_BYTES };
const gunzip = promisify<Uint8Array, zlib.ZlibOptions, Buffer>(zlib.gunzip);

/** What a gzip body says of its text. */
export interface TextChecksum {
  crc32: number;
  /** Bytes. */
  length: number;
}

export class ReceivedBody {
  /** As it was sent. */
  readonly bytes: Buffer;
  readonly #encoding: string;
  readonly #isGzip: boolean;
  #text: Buffer | undefined;

  /** @param encoding the value of `Content-Encoding`, `identity` without one */
  constructor(bytes: Buffer, encoding: string) {
    this.bytes = bytes;
    this.#encoding = encoding;
    this.#isGzip = /^(x-)?gzip$/i.test(encoding);
  }

  /** @throws BasetideError `source_bad_answer` */
  async text(): Promise<Buffer> {
    this.#text ??= this.#plain() ?? gunzipAtOnce(this.bytes);
    if (this.#text) return this.#text;
    try {
      this.#text = await gunzip(this.bytes, LIMIT);
      return this.#text;
    } catch (error) {
      throw undecompressed(error);
    }
  }

  /** The same at once, which takes longer for large bodies: for one that is rarely needed. */
  textNow(): Buffer {
    try {
      this.#text ??= this.#plain() ?? gunzipAtOnce(this.bytes) ?? zlib.gunzipSync(this.bytes, LIMIT);
      return this.#text;
    } catch (error) {
      throw undecompressed(error);
    }
  }

  /**
   * The same in memory that the next body's text overwrites, so it must be read at once. Undefined if it cannot be
   * decompressed that way.
   */
  briefText(): Buffer | undefined {
    return this.#text ?? this.#plain() ?? gunzipBriefly(this.bytes);
  }

  /** Keeps what `briefText` has just returned. */
  keep(brief: Buffer): Buffer {
    this.#text ??= this.#plain() ?? Buffer.from(brief);
    return this.#text;
  }

  /** What the body says of its text, without decompressing it; of its last member if it has several. */
  checksum(): TextChecksum | undefined {
    const { bytes } = this;
    if (bytes.length < SHORTEST_GZIP || !this.#isGzip) return undefined;
    return { crc32: bytes.readInt32LE(bytes.length - 8), length: bytes.readUInt32LE(bytes.length - 4) };
  }

  /** Frees the memory of the body and of its text. No part of them may be used afterwards. */
  discard(): void {
    if (this.#text) freeNow(this.#text);
    freeNow(this.bytes);
  }

  /** Returns the body if it is not compressed. @throws BasetideError `source_bad_answer` for an unknown encoding */
  #plain(): Buffer | undefined {
    if (this.#encoding === "identity" || this.bytes.length === 0) return this.bytes;
    if (this.#isGzip) return undefined;
    throw undecompressed(undefined, this.#encoding);
  }
}

export function tooLarge(): BasetideError {
  return new BasetideError("source_bad_answer", `Airtable's answer is larger than ${MAX_BODY_BYTES} bytes`);
}

function undecompressed(cause: unknown, reason = errorReason(cause)): BasetideError {
  if (cause instanceof BasetideError) return cause;
  if (reason === "ERR_BUFFER_TOO_LARGE") return tooLarge();
  return new BasetideError("source_bad_answer", `Airtable's answer cannot be decompressed (${reason})`, {
    cause,
    details: { reason },
  });
}

export function errorReason(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : String(error);
}

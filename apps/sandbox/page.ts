/**
 * The bytes of a list answer, built once and sent many times.
 *
 * Two answers with an unchanged page differ only in the token of attachment URLs and the iterator in `offset`. The page
 * is therefore stored with holes, plain and gzipped, and an answer is a copy with the holes filled. In the gzip stream,
 * a hole is a stored block between blocks that were deflated separately (no back reference crosses it), so filling it
 * needs no compression, only a new checksum.
 */
import zlib from "node:zlib";
import { URL_TOKEN } from "./attachments";

const GZIP_HEADER = new Uint8Array([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3]);
/** Checksum and length after the deflated data. */
const GZIP_TRAILER_BYTES = 8;
/** Header of a stored block. */
const STORED_HEADER_BYTES = 5;
/** Shorter pieces between two holes are not worth deflating. */
const MIN_DEFLATED_BYTES = 200;
const MAX_STORED_BYTES = 0xffff;

const encoder = new TextEncoder();
const TOKEN_BYTES = encoder.encode(URL_TOKEN);

interface Template {
  bytes: Uint8Array;
  /** The positions of the holes. */
  holes: number[];
}

export class PageBytes {
  readonly #plain: Template;
  readonly #crc: number;
  #gzip: Template | undefined;

  /** @param text the answer without its variable end; tokens as `URL_TOKEN` */
  constructor(text: string) {
    const bytes = encoder.encode(text);
    this.#plain = { bytes, holes: findHoles(bytes) };
    this.#crc = zlib.crc32(bytes);
  }

  get byteLength(): number {
    return this.#plain.bytes.length + (this.#gzip?.bytes.length ?? 0);
  }

  get hasTokens(): boolean {
    return this.#plain.holes.length > 0;
  }

  /** Bytes of the answer before compression. */
  plainLength(tail: string): number {
    return this.#plain.bytes.length + tail.length;
  }

  /** @param tail the end of the answer, ASCII */
  plain(token: string, tail: string): Uint8Array<ArrayBuffer> {
    const end = encoder.encode(tail);
    const answer = filled(this.#plain, encoder.encode(token), end.length);
    answer.set(end, answer.length - end.length);
    return answer;
  }

  gzip(token: string, tail: string): Uint8Array<ArrayBuffer> {
    this.#gzip ??= gzipTemplate(this.#plain);
    const [end, tokenBytes] = [encoder.encode(tail), encoder.encode(token)];
    const behind = STORED_HEADER_BYTES + end.length + GZIP_TRAILER_BYTES;
    const answer = filled(this.#gzip, tokenBytes, behind);
    let at = answer.length - behind;
    at = putStored(answer, at, end, true);
    const crc = this.hasTokens ? zlib.crc32(filled(this.#plain, tokenBytes, 0)) : this.#crc;
    const view = new DataView(answer.buffer);
    view.setUint32(at, zlib.crc32(end, crc), true);
    view.setUint32(at + 4, this.plainLength(tail), true);
    return answer;
  }
}

function findHoles(bytes: Uint8Array): number[] {
  const [buffer, holes] = [Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length), [] as number[]];
  for (
    let at = buffer.indexOf(TOKEN_BYTES);
    at >= 0;
    at = buffer.indexOf(TOKEN_BYTES, at + TOKEN_BYTES.length)
  )
    holes.push(at);
  return holes;
}

/** A copy with `token` in the holes and room for `behind` bytes at the end. */
function filled(template: Template, token: Uint8Array, behind: number): Uint8Array<ArrayBuffer> {
  const copy = new Uint8Array(template.bytes.length + behind);
  copy.set(template.bytes);
  for (const hole of template.holes) copy.set(token, hole);
  return copy;
}

function gzipTemplate(plain: Template): Template {
  const parts: Uint8Array[] = [GZIP_HEADER];
  const holes: number[] = [];
  let length = GZIP_HEADER.length;
  const add = (part: Uint8Array) => {
    parts.push(part);
    length += part.length;
  };
  let from = 0;
  for (const hole of [...plain.holes, plain.bytes.length]) {
    const piece = plain.bytes.subarray(from, hole);
    if (piece.length > 0) add(piece.length < MIN_DEFLATED_BYTES ? stored(piece) : deflated(piece));
    if (hole === plain.bytes.length) break;
    holes.push(length + STORED_HEADER_BYTES);
    add(stored(TOKEN_BYTES));
    from = hole + TOKEN_BYTES.length;
  }
  return { bytes: Buffer.concat(parts), holes };
}

/** Deflates to blocks that end on a whole byte and are not the last. */
function deflated(piece: Uint8Array): Uint8Array {
  return zlib.deflateRawSync(piece, { level: 6, finishFlush: zlib.constants.Z_SYNC_FLUSH });
}

function stored(piece: Uint8Array): Uint8Array {
  const block = new Uint8Array(STORED_HEADER_BYTES + piece.length);
  putStored(block, 0, piece, false);
  return block;
}

/** Writes a stored block. Returns its end position. */
function putStored(into: Uint8Array, at: number, piece: Uint8Array, isLast: boolean): number {
  if (piece.length > MAX_STORED_BYTES) throw new RangeError("a stored block holds 65,535 bytes at most");
  const length = piece.length;
  into.set([isLast ? 1 : 0, length & 0xff, length >> 8, ~length & 0xff, (~length >> 8) & 0xff], at);
  into.set(piece, at + STORED_HEADER_BYTES);
  return at + STORED_HEADER_BYTES + length;
}

/**
 * The digest of a list answer without the signed URLs of its attachments, which differ in each answer.
 *
 * Guarantee: two answers with the same digest differ at most in these URLs. `{"id":"att` in the bytes always opens an
 * object whose id it is: in a string, its quotes would be escaped. From there on, each member is read strictly, and an
 * attachment with any other member, order of its id, or escape in a URL has no digest: its page is split.
 */

import { pageDigest } from "./page-digest";

const OPENS = Buffer.from('{"id":"att');
const SIZES: ReadonlySet<string> = new Set(["small", "large", "full"]);
const NUMBERS: ReadonlySet<string> = new Set(["width", "height", "size"]);
const TEXTS: ReadonlySet<string> = new Set(["filename", "type"]);

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const BRACE_OPEN = 0x7b;
const BRACE_CLOSE = 0x7d;
const NOT_FOUND = -1;

/** The longest key of a member that is read. */
const MOST_KEY_BYTES = 10;

/** The bytes of one answer without its URLs. Used by one call at a time, and grown to the largest answer. */
let kept = Buffer.alloc(0);

/** @param end of the bytes that count; null if an attachment does not have the usual form */
export function unsignedDigest(bytes: Buffer, end: number): number | null {
  let marker = bytes.indexOf(OPENS);
  if (marker < 0 || marker >= end) return pageDigest(bytes.subarray(0, end));
  if (kept.length < end) kept = Buffer.allocUnsafeSlow(end);
  const scan: Scan = { bytes, end, keptTo: 0, length: 0, backslash: NOT_FOUND };
  while (marker >= 0 && marker < end) {
    const after = skipAttachment(scan, marker);
    if (after < 0) return null;
    marker = bytes.indexOf(OPENS, after);
  }
  keepTo(scan, end);
  return pageDigest(kept.subarray(0, scan.length));
}

interface Scan {
  bytes: Buffer;
  end: number;
  /** Where the bytes begin that are neither kept nor left out yet. */
  keptTo: number;
  /** Bytes that are kept. */
  length: number;
  /** The first backslash from some place on. */
  backslash: number;
}

function keepTo(scan: Scan, to: number): void {
  scan.length += scan.bytes.copy(kept, scan.length, scan.keptTo, to);
}

/** Returns the byte after the attachment that starts at `start`. */
function skipAttachment(scan: Scan, start: number): number {
  const { bytes } = scan;
  let at = skipText(scan, start + OPENS.length);
  let hasUrl = false;
  while (at >= 0 && bytes[at] === COMMA) {
    const key = keyAt(bytes, at + 1);
    if (key === undefined) return NOT_FOUND;
    at += 1 + key.length + 3;
    if (key === "url") {
      hasUrl = true;
      at = leaveOut(scan, at);
    } else if (key === "thumbnails") at = skipThumbnails(scan, at);
    else if (NUMBERS.has(key)) at = skipNumber(bytes, at);
    else if (TEXTS.has(key) && bytes[at] === QUOTE) at = skipText(scan, at + 1);
    else return NOT_FOUND;
  }
  return hasUrl && at >= 0 && bytes[at] === BRACE_CLOSE ? at + 1 : NOT_FOUND;
}

function skipThumbnails(scan: Scan, start: number): number {
  const { bytes } = scan;
  if (bytes[start] !== BRACE_OPEN) return NOT_FOUND;
  let at = start;
  do {
    const size = keyAt(bytes, at + 1);
    if (size === undefined || !SIZES.has(size)) return NOT_FOUND;
    at += 1 + size.length + 3;
    if (bytes[at] !== BRACE_OPEN) return NOT_FOUND;
    do {
      const key = keyAt(bytes, at + 1);
      if (key === undefined) return NOT_FOUND;
      at += 1 + key.length + 3;
      if (key === "url") at = leaveOut(scan, at);
      else if (NUMBERS.has(key)) at = skipNumber(bytes, at);
      else return NOT_FOUND;
    } while (at >= 0 && bytes[at] === COMMA);
    if (at < 0 || bytes[at] !== BRACE_CLOSE) return NOT_FOUND;
    at++;
  } while (bytes[at] === COMMA);
  return bytes[at] === BRACE_CLOSE ? at + 1 : NOT_FOUND;
}

/** Returns the key of the member at `start`: letters only, followed by a colon. */
function keyAt(bytes: Buffer, start: number): string | undefined {
  if (bytes[start] !== QUOTE) return undefined;
  let at = start + 1;
  const last = at + MOST_KEY_BYTES;
  while (at <= last && bytes[at]! >= 0x61 && bytes[at]! <= 0x7a) at++;
  return bytes[at] === QUOTE && bytes[at + 1] === COLON ? bytes.toString("latin1", start + 1, at) : undefined;
}

/** Leaves out the text of the URL whose quote is at `start`. @returns the byte after it */
function leaveOut(scan: Scan, start: number): number {
  const { bytes } = scan;
  if (bytes[start] !== QUOTE) return NOT_FOUND;
  const close = bytes.indexOf(QUOTE, start + 1);
  if (close < 0 || close >= scan.end) return NOT_FOUND;
  // With a backslash, the quote may be part of the text, and the answer be invalid in a way that a split would find.
  if (scan.backslash < start) {
    const next = bytes.indexOf(BACKSLASH, start);
    scan.backslash = next < 0 ? Infinity : next;
  }
  if (scan.backslash < close) return NOT_FOUND;
  keepTo(scan, start + 1);
  scan.keptTo = close;
  return close + 1;
}

/** Returns the byte after the text that has begun before `start`. */
function skipText({ bytes, end }: Scan, start: number): number {
  for (let at = start; at < end; at++) {
    const byte = bytes[at]!;
    if (byte === BACKSLASH) at++;
    else if (byte === QUOTE) return at + 1;
  }
  return NOT_FOUND;
}

function skipNumber(bytes: Buffer, start: number): number {
  let at = start;
  while (bytes[at]! >= 0x2b && bytes[at]! <= 0x7a && bytes[at] !== COMMA) at++;
  return at;
}

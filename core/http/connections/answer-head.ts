/**
 * Reads the head of an HTTP/1.1 answer from its bytes, which takes a third of the time of regular expressions. Strict, as the
 * rest of the parser (answer-parser.ts).
 */

export interface AnswerHead {
  readonly status: number;
  readonly statusText: string;
  /** Those of READ_NAMES, by name in lower case; repeated ones are joined. */
  readonly headers: ReadonlyMap<string, string>;
  /** Each header as it was sent, without repetitions of those that may occur only once. */
  readonly lines: readonly (readonly [name: string, value: string])[];
}

/** The answer is not valid HTTP/1.1, or has a form that is not supported. */
export class InvalidAnswer extends Error {
  readonly code = "INVALID_HTTP";
}

const CR = 0x0d;
const LF = 0x0a;
const TAB = 0x09;
const SPACE = 0x20;
const COLON = 0x3a;
const ZERO = 0x30;

/** Whether a byte may be part of a name, or of a text. */
const NAME_BYTES = bytesThat((byte) => /[!#$%&'*+.^_`|~0-9A-Za-z-]/.test(String.fromCharCode(byte)));
const TEXT_BYTES = bytesThat((byte) => byte === TAB || (byte >= 0x20 && byte !== 0x7f));
/** The length of `HTTP/1.1 200`. */
const STATUS_END = 12;
const VERSION = Buffer.from("HTTP/1.");

/** The headers that are read, here and by those who receive whole answers. The others are only passed on. */
const READ_NAMES = [
  "connection",
  "content-encoding",
  "content-length",
  "date",
  "keep-alive",
  "retry-after",
  "transfer-encoding",
];
/** The same by length. */
const NAMES_BY_LENGTH: { name: string; bytes: Buffer }[][] = [];
for (const name of READ_NAMES) {
  NAMES_BY_LENGTH[name.length] ??= [];
  NAMES_BY_LENGTH[name.length]!.push({ name, bytes: Buffer.from(name) });
}

/** Headers that may occur only once. A repetition with the same value is ignored. */
const SINGLE: ReadonlySet<string> = new Set(["content-length", "transfer-encoding", "content-encoding"]);

class Head implements AnswerHead {
  readonly status: number;
  readonly isHttp10: boolean;
  readonly headers = new Map<string, string>();
  readonly #bytes: Buffer;
  readonly #end: number;
  /** Where the first line ends. */
  readonly #firstEnd: number;

  constructor(bytes: Buffer, end: number) {
    this.#bytes = bytes;
    this.#end = end;
    this.isHttp10 = bytes[VERSION.length] === ZERO;
    this.status = statusOf(bytes, end);
    let at = STATUS_END;
    if (at < end && bytes[at] === SPACE) at = textEnd(bytes, at, end);
    this.#firstEnd = at;
    while (at < end) at = this.#readLine(at);
  }

  get statusText(): string {
    return this.#text(STATUS_END + 1, this.#firstEnd);
  }

  get lines(): AnswerHead["lines"] {
    const lines: [name: string, value: string][] = [];
    const seen: string[] = [];
    const text = this.#text(this.#firstEnd + 2, this.#end);
    for (let at = 0, end: number; at < text.length; at = end + 2) {
      end = text.indexOf("\r\n", at);
      if (end < 0) end = text.length;
      const colon = text.indexOf(":", at);
      const name = text.slice(at, colon);
      const key = name.toLowerCase();
      if (SINGLE.has(key)) {
        if (seen.includes(key)) continue;
        seen.push(key);
      }
      lines.push([name, trimmed(text.slice(colon + 1, end))]);
    }
    return lines;
  }

  /** @param at where the line before ends. @returns where this one ends */
  #readLine(at: number): number {
    const bytes = this.#bytes;
    const from = at + 2;
    let colon = from;
    while (colon < this.#end && NAME_BYTES[bytes[colon]!] === 1) colon++;
    const isNamed = bytes[at] === CR && bytes[at + 1] === LF && colon > from;
    if (!isNamed || colon >= this.#end || bytes[colon] !== COLON) throw new InvalidAnswer("an invalid head");
    const end = textEnd(bytes, colon + 1, this.#end);
    const name = readName(bytes, from, colon - from);
    if (name !== undefined) this.#add(name, trimmed(this.#text(colon + 1, end)));
    return end;
  }

  #add(name: string, value: string): void {
    const known = this.headers.get(name);
    if (known === undefined) this.headers.set(name, value);
    else if (!SINGLE.has(name)) this.headers.set(name, `${known}, ${value}`);
    else if (known !== value) throw new InvalidAnswer(`${name} twice`);
  }

  #text(from: number, to: number): string {
    return from < to ? this.#bytes.toString("latin1", from, to) : "";
  }
}

/** Returns the text without the blanks around it, which are spaces and tabs only. */
function trimmed(text: string): string {
  let [start, end] = [0, text.length];
  while (start < end && isBlank(text.charCodeAt(start))) start++;
  while (end > start && isBlank(text.charCodeAt(end - 1))) end--;
  return text.slice(start, end);
}

/**
 * Reads a head.
 *
 * @param end where the empty line behind it begins
 * @throws InvalidAnswer
 */
export function readHead(bytes: Buffer, end: number): AnswerHead & { readonly isHttp10: boolean } {
  return new Head(bytes, end);
}

function statusOf(bytes: Buffer, end: number): number {
  let isHttp = end >= STATUS_END;
  for (let at = 0; at < VERSION.length; at++) isHttp &&= bytes[at] === VERSION[at];
  if (!isHttp) throw new InvalidAnswer("an invalid head");
  const minor = bytes[VERSION.length]! - ZERO;
  let status = 0;
  for (let at = STATUS_END - 3; at < STATUS_END; at++) {
    const digit = bytes[at]! - ZERO;
    if (digit < 0 || digit > 9) throw new InvalidAnswer("an invalid head");
    status = 10 * status + digit;
  }
  if ((minor !== 0 && minor !== 1) || bytes[VERSION.length + 1] !== SPACE)
    throw new InvalidAnswer("an invalid head");
  return status;
}

/** Returns where the text that begins at `from` ends. */
function textEnd(bytes: Buffer, from: number, end: number): number {
  let at = from;
  while (at < end && TEXT_BYTES[bytes[at]!] === 1) at++;
  return at;
}

/** Returns the name in lower case if it is one of READ_NAMES. */
function readName(bytes: Buffer, from: number, length: number): string | undefined {
  const known = NAMES_BY_LENGTH[length];
  if (known) for (const { name, bytes: lower } of known) if (isName(bytes, from, lower)) return name;
  return undefined;
}

function isName(bytes: Buffer, from: number, lower: Buffer): boolean {
  // Of the bytes that a name may have, this changes only upper case.
  for (let at = 0; at < lower.length; at++) if ((bytes[from + at]! | 0x20) !== lower[at]) return false;
  return true;
}

function isBlank(byte: number | undefined): boolean {
  return byte === SPACE || byte === TAB;
}

function bytesThat(is: (byte: number) => boolean): Uint8Array {
  return Uint8Array.from({ length: 256 }, (_, byte) => Number(is(byte)));
}

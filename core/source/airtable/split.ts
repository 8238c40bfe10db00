/**
 * Finds the records of a list answer in its raw bytes, without parsing them.
 *
 * A sweep that finds no changes still reads every page, so this is the hottest code of the service: it moves from one
 * `{` to the next with the native byte search and examines a few bytes around each.
 *
 * Guarantee: for a valid answer the split equals the result of `JSON.parse`, or it is null and the caller parses the
 * page. Proof for the form on the wire `{"records":[{"id":"rec…","createdTime":"…","fields":{…}},…],"offset":"…"}`:
 *
 * - A marker `{"id":"rec…","createdTime":"…","fields":{` is never text: a quote in a string is escaped, and the first
 *   quote of the marker follows a `{`. Each marker opens an object, a record or a look-alike in a cell.
 * - A slice runs from a marker to the `}},` before the next, or to the `}}]` of the end. If it ended too early (the
 *   next marker is a look-alike) or too late (it contains a record of another form), its last object would not be the
 *   one that began it, so that `}}` would close an object under a key that is not the slice's own `fields`.
 * - Such an object starts with `{` after a colon or white space. Every such `{` is examined: one that is surely a key's
 *   value is skipped to its end, and the result is null if it ends where the slice does; one that may also be text
 *   makes its slice suspect, and a suspect slice is scanned byte by byte.
 *
 * For an answer that is not valid JSON, each slice may be valid or not: parsing an invalid slice throws when it is
 * read, and an answer whose slices all parse is valid.
 */

export interface PageSplit {
  /** First byte of each record. */
  starts: number[];
  /** The byte after each record. */
  ends: number[];
  ids: string[];
  /** Offset of the next page; absent on the last. */
  offset: string | undefined;
}

const HEAD = Buffer.from('{"records":[');
const ID_OPENS = Buffer.from('{"id":"rec');
const TIME_OPENS = Buffer.from('","createdTime":"');
const FIELDS_OPEN = Buffer.from('","fields":{');
/** The most characters of an id after `rec`: see `limits.ts`. */
const MAX_ID = 50;
const OFFSET_OPENS = Buffer.from('],"offset":"');

const WORD = byteClass(/[0-9A-Za-z]/);
/** The characters of an ISO 8601 time. */
const TIME = byteClass(/[0-9A-Za-z:.+-]/);

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const BRACKET_CLOSE = 0x5d;
const BRACE_OPEN = 0x7b;
const BRACE_CLOSE = 0x7d;

/** What of a list answer is known without its records. */
export interface PageOutline {
  /** Where the list ends. Two answers with the same bytes before have the same records. */
  listEnd: number;
  /** Id of the first record; undefined if there is none. */
  firstId: string | undefined;
  offset: string | undefined;
}

/** Returns the outline of a list answer; null if it does not have the expected form. It may have other flaws. */
export function outlinePage(bytes: Buffer): PageOutline | null {
  const tail = readTail(bytes);
  if (tail === null || !matches(bytes, 0, HEAD)) return null;
  if (tail.listEnd === HEAD.length) return { ...tail, firstId: undefined };
  const idEnd = idEndOfMarker(bytes, HEAD.length);
  return idEnd < 0 ? null : { ...tail, firstId: idOf(bytes, HEAD.length, idEnd) };
}

/** Splits a list answer; null if it does not have exactly the expected form. */
export function splitPage(bytes: Buffer): PageSplit | null {
  const tail = readTail(bytes);
  if (tail === null || !matches(bytes, 0, HEAD)) return null;
  const { listEnd, offset } = tail;
  const split: PageSplit = { starts: [], ends: [], ids: [], offset };
  if (listEnd === HEAD.length) return split;

  let suspects: number[] | undefined;
  /** The end of the object that was skipped last. */
  let skippedTo = 0;
  let brace = HEAD.length;
  do {
    let next = brace + 1;
    const before = bytes[brace - 1]!;
    if (before === COMMA || brace === HEAD.length) {
      const idEnd = idEndOfMarker(bytes, brace);
      if (idEnd > 0) {
        if (brace > HEAD.length && !endSlice(bytes, split, brace - 1, skippedTo)) return null;
        split.starts.push(brace);
        split.ids.push(idOf(bytes, brace, idEnd));
        next = bytes.indexOf(BRACE_OPEN, idEnd) + 1;
      } else if (brace === HEAD.length) return null;
    } else if (before === COLON && bytes[brace - 2] === QUOTE && WORD[bytes[brace - 3]!] === 1) {
      // A quote after a letter or digit closes a string, and a string before a colon is a key.
      skippedTo = endOfObject(bytes, brace);
      if (skippedTo < 0) return null;
      next = skippedTo;
    } else if (isSpace(before) || (before === COLON && mayEndKey(bytes[brace - 2]!))) {
      suspects ??= [];
      if (suspects.at(-1) !== split.starts.length - 1) suspects.push(split.starts.length - 1);
    }
    brace = bytes.indexOf(BRACE_OPEN, next);
  } while (brace >= 0 && brace < listEnd);

  if (!endSlice(bytes, split, listEnd, skippedTo)) return null;
  return suspects === undefined || suspects.every((index) => isOneRecord(bytes, split, index)) ? split : null;
}

/** Reads the end of the answer: where its list ends (the `]`), and its offset. */
function readTail(bytes: Buffer): { listEnd: number; offset: string | undefined } | null {
  const last = bytes.length - 1;
  if (bytes[last] !== BRACE_CLOSE) return null;
  if (bytes[last - 1] === BRACKET_CLOSE) return { listEnd: last - 1, offset: undefined };
  if (bytes[last - 1] !== QUOTE) return null;
  const textStart = bytes.lastIndexOf(QUOTE, last - 2) + 1;
  const listEnd = textStart - OFFSET_OPENS.length;
  if (listEnd < HEAD.length || !matches(bytes, listEnd, OFFSET_OPENS)) return null;
  for (let at = textStart; at < last - 1; at++) {
    const byte = bytes[at]!;
    if (byte === BACKSLASH || byte < 0x20 || byte > 0x7e) return null;
  }
  return { listEnd, offset: bytes.toString("latin1", textStart, last - 1) || undefined };
}

/** Ends the open slice at `end`, unless its last two braces are not those of its `fields` and of itself. */
function endSlice(bytes: Buffer, split: PageSplit, end: number, skippedTo: number): boolean {
  split.ends.push(end);
  return bytes[end - 1] === BRACE_CLOSE && bytes[end - 2] === BRACE_CLOSE && skippedTo !== end - 1;
}

/** Returns where the id of the marker at `start` ends, or -1 if there is no marker. */
function idEndOfMarker(bytes: Buffer, start: number): number {
  if (!matches(bytes, start, ID_OPENS)) return -1;
  const idStart = start + ID_OPENS.length;
  let idEnd = idStart;
  while (WORD[bytes[idEnd]!] === 1) idEnd++;
  if (idEnd === idStart || idEnd > idStart + MAX_ID || !matches(bytes, idEnd, TIME_OPENS)) return -1;
  let timeEnd = idEnd + TIME_OPENS.length;
  while (TIME[bytes[timeEnd]!] === 1) timeEnd++;
  return matches(bytes, timeEnd, FIELDS_OPEN) ? idEnd : -1;
}

function idOf(bytes: Buffer, start: number, idEnd: number): string {
  return bytes.toString("latin1", start + ID_OPENS.length - 3, idEnd);
}

/** Returns the byte after the object that starts at `start`, or -1 if it does not end. */
function endOfObject(bytes: Buffer, start: number): number {
  let depth = 0;
  let isInString = false;
  for (let at = start; at < bytes.length; at++) {
    const byte = bytes[at]!;
    if (isInString) {
      if (byte === BACKSLASH) at++;
      else if (byte === QUOTE) isInString = false;
    } else if (byte === QUOTE) isInString = true;
    else if (byte === BRACE_OPEN) depth++;
    else if (byte === BRACE_CLOSE && --depth === 0) return at + 1;
  }
  return -1;
}

/** Does slice `index` end right after its `fields`? Scans it, which distinguishes text from structure. */
function isOneRecord(bytes: Buffer, { starts, ends }: PageSplit, index: number): boolean {
  return endOfObject(bytes, bytes.indexOf(BRACE_OPEN, starts[index]! + 1)) === ends[index]! - 1;
}

function matches(bytes: Buffer, start: number, text: Buffer): boolean {
  for (let at = 0; at < text.length; at++) if (bytes[start + at] !== text[at]) return false;
  return true;
}

/** 1 for each byte whose character matches, 0 for the others: a table lookup is cheaper than range comparisons. */
function byteClass(pattern: RegExp): Uint8Array {
  return Uint8Array.from({ length: 256 }, (_, byte) => (pattern.test(String.fromCharCode(byte)) ? 1 : 0));
}

function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

/** May a colon after this byte separate a key from its value? If not, it is text. */
function mayEndKey(byte: number): boolean {
  return byte === QUOTE || isSpace(byte);
}

/** How deeply the brackets of a JSON text are nested, without parsing it. */
import { JSON_DEPTH } from "../limits";

const [QUOTE, BACKSLASH] = [0x22, 0x5c];
/** `[` and `{`, `]` and `}` differ in this bit only. */
const CASE_BIT = 0x20;
const [OPEN, CLOSE] = [0x5b | CASE_BIT, 0x5d | CASE_BIT];

/** @param from in `bytes`, `to` behind the text's end. What is no JSON may be called either. */
export function isTooDeep(bytes: Buffer, from: number, to: number): boolean {
  let depth = 0;
  for (let at = from; at < to; at++) {
    const byte = bytes[at]!;
    if (byte === QUOTE) {
      at = endOfText(bytes, at + 1, to);
    } else if ((byte | CASE_BIT) === OPEN) {
      depth += 1;
      if (depth > JSON_DEPTH) return true;
    } else if ((byte | CASE_BIT) === CLOSE) depth -= 1;
  }
  return false;
}

/** Where the text that begins at `from` has its closing quote. */
function endOfText(bytes: Buffer, from: number, to: number): number {
  let at = from;
  while (at < to && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1;
  return at;
}

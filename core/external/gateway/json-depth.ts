/** Measures how deeply the brackets of a JSON text are nested, without parsing it. */
import { JSON_DEPTH } from "../limits";

const [QUOTE, BACKSLASH] = [0x22, 0x5c];
/** `[` and `{`, `]` and `}` differ only in this bit. */
const CASE_BIT = 0x20;
const [OPEN, CLOSE] = [0x5b | CASE_BIT, 0x5d | CASE_BIT];

/** @param from offset in `bytes`; `to` is after the text's end. For invalid JSON the result may be either. */
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

/** Returns the offset of the closing quote of the text that begins at `from`. */
function endOfText(bytes: Buffer, from: number, to: number): number {
  let at = from;
  while (at < to && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1;
  return at;
}

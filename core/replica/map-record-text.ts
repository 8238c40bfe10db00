/**
 * Text that Postgres can store, made from text that JSON can carry.
 */

export const UNSTORABLE_TEXT = "text held characters that Postgres cannot store";

/** What a reader tells about the cell in hand. */
export interface CellReporter {
  report(reason: string): void;
}

/** `text` with each NUL and each half of a surrogate pair replaced by U+FFFD; clean text comes back untouched. */
export function storable(text: string, reporter?: CellReporter): string {
  if (text.isWellFormed() && text.indexOf("\0") === -1) return text;
  reporter?.report(UNSTORABLE_TEXT);
  return text.toWellFormed().replaceAll("\0", "\ufffd");
}

/** The first `length` UTF-16 units of `text`, or one less where that would cut a surrogate pair. */
export function cutText(text: string, length: number): string {
  if (text.length <= length) return text;
  const last = text.charCodeAt(length - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? length - 1 : length);
}

/**
 * A value as JSON text, always storable since JSON escapes what Postgres refuses. Null for a value that nests so
 * deeply (thousands of levels) that it can be parsed but not written.
 */
export function jsonText(value: unknown): string | null {
  if (typeof value === "number" && !Number.isFinite(value)) return String(value);
  try {
    return JSON.stringify(value) ?? null;
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}

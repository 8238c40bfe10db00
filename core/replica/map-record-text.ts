/**
 * Converts text that JSON can carry to text that Postgres can store.
 */
import { nestsDeeper } from "../nesting";
import { type IssueReason, UNSTORABLE_TEXT } from "./issue-reasons";

/** Receives a reader's reports about the current cell. */
export interface CellReporter {
  report(reason: IssueReason): void;
}

/** Returns `text` with each NUL and each unpaired surrogate replaced by U+FFFD; clean text is returned as it is. */
export function storable(text: string, reporter?: CellReporter): string {
  if (text.isWellFormed() && text.indexOf("\0") === -1) return text;
  reporter?.report(UNSTORABLE_TEXT);
  return text.toWellFormed().replaceAll("\0", "\ufffd");
}

/**
 * Returns a value as JSON text, which is always storable because JSON escapes what Postgres refuses. Null for a value
 * nested so deeply (thousands of levels) that it can be parsed but not serialized.
 */
export function jsonText(value: unknown): string | null {
  if (typeof value === "number" && !Number.isFinite(value)) return String(value);
  return nestsDeeper(value) ? null : (JSON.stringify(value) ?? null);
}

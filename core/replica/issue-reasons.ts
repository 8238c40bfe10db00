/** Why a cell is not in SQL as it is in the source: a reason of ours, or the source's own error in place of a value. */

/** The cell is neither a number nor a failed computation. */
export const NOT_A_NUMBER = "not a number";
export const UNSTORABLE_TEXT = "the text contained characters that Postgres cannot store";
export const ROW_TOO_WIDE = "row is wider than Postgres can store";

/** The cell's value is lost, or was changed. */
export const ownReasons = [
  NOT_A_NUMBER,
  UNSTORABLE_TEXT,
  ROW_TOO_WIDE,
  "not a date",
  "not true or false",
  "not a number of seconds",
  "longer than an interval can be",
  "nested too deeply",
  "an attachment without a URL",
] as const;

/** The source has no value to lose: `#ERROR!`, `NaN`. */
export type SourceError = string & { readonly source: true };

export type IssueReason = (typeof ownReasons)[number] | SourceError;

/** @param name as the source names the error */
export function sourceError(name: string): SourceError {
  return (name || "error") as SourceError;
}

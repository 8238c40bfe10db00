/**
 * Converts values to text, numbers and truth, and compares them.
 *
 * Blank is "" as text, 0 as a number, and equal to both. A list of one is its element; a longer one is text, joined by
 * commas, like a link to several rows.
 */
import { isoOf, parseIso } from "./dates";
import { ERROR, FormulaDate, FormulaError, type FormulaValue } from "./types";

/** The longest text that a formula may return, in UTF-16 units, as in a long text cell; longer text is an error. */
export const MAX_TEXT = 100_000;

/** Any value but a list. */
type Scalar = string | number | null | FormulaDate | FormulaError;

function toScalar(value: FormulaValue): Scalar {
  if (typeof value === "boolean") return value ? 1 : 0;
  if (!isList(value)) return value;
  if (value.length === 0) return null;
  return value.length === 1 ? toScalar(value[0] as FormulaValue) : joinTexts(value, ", ");
}

export function toText(value: FormulaValue): string | FormulaError {
  if (typeof value === "string") return value;
  const scalar = toScalar(value);
  if (scalar === null) return "";
  if (scalar instanceof FormulaDate) return isoOf(scalar.ms) ?? ERROR;
  return scalar instanceof FormulaError ? scalar : String(scalar);
}

/** Text that is written as a number counts as one; other text and dates are errors. */
export function toNumber(value: FormulaValue): number | FormulaError {
  if (typeof value === "number") return value;
  const scalar = toScalar(value);
  if (scalar === null || scalar === "") return 0;
  if (typeof scalar === "string")
    return /^\s*[-+]?(\d+\.?\d*|\.\d+)\s*$/.test(scalar) ? Number(scalar) : ERROR;
  if (scalar instanceof FormulaDate) return ERROR;
  return scalar;
}

/** A date, or text in ISO 8601; null for blank, an error for anything else. */
export function toDate(value: FormulaValue): FormulaDate | null | FormulaError {
  const scalar = toScalar(value);
  if (scalar === null || scalar === "") return null;
  if (scalar instanceof FormulaDate) return isoOf(scalar.ms) === undefined ? ERROR : scalar;
  if (scalar instanceof FormulaError) return scalar;
  return (typeof scalar === "string" ? parseIso(scalar) : undefined) ?? ERROR;
}

/** The caller handles errors: where they propagate, it must check for them first. */
export function isTruthy(value: FormulaValue): boolean {
  if (isList(value)) return value.length > 0;
  return Boolean(value) && !(value instanceof FormulaError);
}

/** @returns the texts with `separator` between them, or the first error, or an error if too long */
export function joinTexts(values: readonly FormulaValue[], separator: string): string | FormulaError {
  let joined = "";
  for (let at = 0; at < values.length; at++) {
    const text = toText(values[at] as FormulaValue);
    if (text instanceof FormulaError) return text;
    joined += at === 0 ? text : separator + text;
    if (joined.length > MAX_TEXT) return ERROR;
  }
  return joined;
}

/** Text and numbers are never equal; a date equals text that is the same moment in ISO 8601. */
export function areEqual(a: FormulaValue, b: FormulaValue): boolean | FormulaError {
  if (typeof a === "string" && typeof b === "string") return a === b;
  const left = toScalar(a);
  const right = toScalar(b);
  if (left instanceof FormulaError) return left;
  if (right instanceof FormulaError) return right;
  if (left === null || right === null) return isBlankLike(left) && isBlankLike(right);
  if (left instanceof FormulaDate || right instanceof FormulaDate) {
    const leftMs = msOf(left);
    return leftMs !== undefined && leftMs === msOf(right);
  }
  return left === right;
}

/**
 * Compares for `<` and the like: below 0, 0, above 0. NaN if there is no order (blank and a date, a NaN). Text compared
 * with a number, and text that is not a date compared with a date, are errors.
 */
export function compare(a: FormulaValue, b: FormulaValue): number | FormulaError {
  const left = toScalar(a);
  const right = toScalar(b);
  if (left instanceof FormulaError) return left;
  if (right instanceof FormulaError) return right;
  if (left instanceof FormulaDate || right instanceof FormulaDate) {
    if (isEmpty(left) || isEmpty(right)) return Number.NaN;
    const leftMs = msOf(left);
    const rightMs = msOf(right);
    return leftMs === undefined || rightMs === undefined ? ERROR : leftMs - rightMs;
  }
  if (typeof left === "string" || typeof right === "string") {
    if (typeof left === "number" || typeof right === "number") return ERROR;
    return (left ?? "") < (right ?? "") ? -1 : (left ?? "") > (right ?? "") ? 1 : 0;
  }
  const difference = (left ?? 0) - (right ?? 0);
  // Infinity minus itself is NaN, but the two are equal.
  return left === right ? 0 : difference;
}

function isBlankLike(value: Scalar): boolean {
  return value === null || value === "" || value === 0;
}

function isEmpty(value: Scalar): boolean {
  return value === null || value === "";
}

function msOf(value: Scalar): number | undefined {
  if (value instanceof FormulaDate) return value.ms;
  return typeof value === "string" ? parseIso(value)?.ms : undefined;
}

function isList(value: FormulaValue): value is readonly FormulaValue[] {
  return Array.isArray(value);
}

/** Values of formulas, as far as SQL can compute them, and how they count as true and compare. */
import type { FormulaOperator } from "../../formula";
import type { Comparison, Condition, DateExpression, NumberExpression, TextExpression } from "../../replica";

/** Thrown for a formula, or a part of one, that only the source can evaluate. */
export class Untranslatable extends Error {}

export type ComparisonOperator = Exclude<FormulaOperator, "&" | "+" | "-" | "*" | "/">;

export type Value =
  /** 1 or 0. */
  | { kind: "condition"; condition: Condition }
  | { kind: "text"; text: TextExpression }
  | { kind: "number"; number: NumberExpression }
  | { kind: "date"; date: DateExpression }
  | { kind: "checkbox"; column: string }
  /**
   * Several texts. `separator`: they are joined by it; else in a way that is not known. `isLookup`: without that, it is
   * not known whether they count as text.
   */
  | { kind: "list"; column: string; separator?: string; isLookup?: boolean }
  /** The position of a text in another; 0 if there is none. */
  | { kind: "position"; found: Condition }
  | { kind: "blank" }
  | { kind: "if"; condition: Condition; yes: Value; no: Value };

/**
 * How the value is used. `isPositive`: the row is left out if it is false, whatever else is true. `isInOr`: it is one
 * of several, so that an error in it would decide, although the others have decided without it. Where a blank date may be false or an error, it is false if
 * `isPositive`, and otherwise unknown.
 */
export interface Use {
  isPositive: boolean;
  isInOr: boolean;
}

export function not(of: Condition): Condition {
  return { kind: "not", of };
}

/** SQL repeats the operand of these functions: nested, it would grow exponentially. */
const COPIES: Partial<Record<TextExpression["kind"], number>> = {
  lower: 3,
  upper: 3,
  left: 4,
  right: 4,
  mid: 4,
};
const MAX_COPIES = 16;

/** @throws Untranslatable if the text is nested too deeply for SQL */
export function textValue(text: TextExpression): Value {
  if (copiesIn(text) > MAX_COPIES) throw new Untranslatable();
  return { kind: "text", text };
}

function copiesIn(text: TextExpression): number {
  const own = COPIES[text.kind] ?? 1;
  if (!("of" in text)) return own;
  return own * (Array.isArray(text.of) ? Math.max(...text.of.map(copiesIn)) : copiesIn(text.of));
}

export function constantText(value: Value): string | undefined {
  return value.kind === "text" && value.text.kind === "constant" ? value.text.value : undefined;
}

export function constantNumber(value: Value): number | undefined {
  return value.kind === "number" && value.number.kind === "constant" ? value.number.value : undefined;
}

/** Returns when the value is not 0, false, "" or blank. */
export function truth(value: Value): Condition {
  switch (value.kind) {
    case "condition":
      return value.condition;
    case "text":
      if (value.text.kind === "constant") return { kind: "constant", value: value.text.value !== "" };
      return not(sameText(value.text, { kind: "constant", value: "" }));
    case "number": {
      const { number } = value;
      if (number.kind === "constant") return { kind: "constant", value: number.value !== 0 };
      const zero: NumberExpression = { kind: "constant", value: 0 };
      return {
        kind: "or",
        of: [compareNumbers(number, "<", zero), compareNumbers(number, ">", zero)],
      };
    }
    case "date":
      return not({ kind: "no_date", of: value.date });
    case "checkbox":
      return { kind: "checked", column: value.column };
    case "list":
      if (value.separator !== undefined || value.isLookup) throw new Untranslatable();
      return not({ kind: "list_empty", column: value.column });
    case "position":
      return value.found;
    case "blank":
      return { kind: "constant", value: false };
    case "if":
      return { ...value, yes: truth(value.yes), no: truth(value.no) };
  }
}

const mirrored: Record<ComparisonOperator, ComparisonOperator> = {
  "=": "=",
  "!=": "!=",
  "<": ">",
  "<=": ">=",
  ">": "<",
  ">=": "<=",
};

/** @throws Untranslatable if it is not known how the source compares the two */
export function compareValues(left: Value, operator: ComparisonOperator, right: Value): Condition {
  // Each branch of one would be compared with each branch of the other.
  if (left.kind === "if" && right.kind === "if") throw new Untranslatable();
  if (left.kind === "if") return chosen(left, (value) => compareValues(value, operator, right));
  if (right.kind === "if") return chosen(right, (value) => compareValues(left, operator, value));
  const result = compareWith(left, operator, right) ?? compareWith(right, mirrored[operator], left);
  if (!result) throw new Untranslatable();
  return result;
}

function chosen({ condition, yes, no }: Value & { kind: "if" }, use: (value: Value) => Condition): Condition {
  return { kind: "if", condition, yes: use(yes), no: use(no) };
}

/** Undefined if `left` is not the one that decides how the two are compared. */
function compareWith(left: Value, operator: ComparisonOperator, right: Value): Condition | undefined {
  const isEquality = operator === "=" || operator === "!=";
  const either = (condition: Condition) => (operator === "=" ? condition : not(condition));
  const isBlank = right.kind === "blank" || constantText(right) === "";
  switch (left.kind) {
    case "text":
      if (!isEquality) return undefined;
      if (right.kind === "blank") return either(sameText(left.text, { kind: "constant", value: "" }));
      return right.kind === "text" ? either(sameText(left.text, right.text)) : undefined;
    case "number":
      if (right.kind === "number") return compareNumbers(left.number, operator, right.number);
      if (isEquality && isBlank && left.number.kind === "column")
        return either({ kind: "no_number", of: left.number });
      return undefined;
    case "date":
      if (isEquality && isBlank) return either({ kind: "no_date", of: left.date });
      return right.kind === "date" ? compareDates(left.date, operator, right.date) : undefined;
    case "checkbox":
      return compareTruth({ kind: "checked", column: left.column }, operator, right);
    case "condition":
      return compareTruth(left.condition, operator, right);
    case "list":
      if (!isEquality || left.separator !== undefined || left.isLookup) return undefined;
      return either(
        isBlank
          ? { kind: "list_empty", column: left.column }
          : { kind: "list_is", column: left.column, text: elementText(right) },
      );
    case "position":
      return comparePosition(left, operator, right);
    default:
      return undefined;
  }
}

function compareTruth(
  condition: Condition,
  operator: ComparisonOperator,
  right: Value,
): Condition | undefined {
  const number = constantNumber(right);
  if (number !== 0 && number !== 1) return undefined;
  if (operator === "=") return number === 1 ? condition : not(condition);
  if (operator === "!=") return number === 1 ? not(condition) : condition;
  if (operator === ">" && number === 0) return condition;
  return undefined;
}

function comparePosition(
  { found }: Value & { kind: "position" },
  operator: ComparisonOperator,
  right: Value,
): Condition | undefined {
  const number = constantNumber(right);
  if ((operator === ">" && number === 0) || (operator === ">=" && number === 1)) return found;
  if (number !== 0) return undefined;
  if (operator === "=") return not(found);
  return operator === "!=" ? found : undefined;
}

function sameText(left: TextExpression, right: TextExpression): Condition {
  const folded = lowerIs(left, right) ?? lowerIs(right, left);
  return folded ?? { kind: "same_text", left, right };
}

/** For text in lower case, a constant says more than another text: it cannot come from most letters beyond ASCII. */
function lowerIs(left: TextExpression, right: TextExpression): Condition | undefined {
  if (left.kind !== "lower" || right.kind !== "constant") return undefined;
  if (!isLowerAscii(right.value)) return undefined;
  return { kind: "lower_is", of: left.of, text: right.value };
}

/** Returns where `needle` occurs in the value. */
export function contains(value: Value, needle: string): Condition {
  if (needle === "") throw new Untranslatable();
  if (value.kind === "if") return chosen(value, (part) => contains(part, needle));
  if (value.kind === "blank") return { kind: "constant", value: false };
  if (value.kind === "list" && !value.isLookup) {
    const { column, separator = "" } = value;
    // The text could match across two elements.
    const isAcross =
      needle.includes(separator) || separator.includes(needle.at(0)!) || separator.includes(needle.at(-1)!);
    if (separator !== "" && isAcross) throw new Untranslatable();
    return { kind: "list_contains", column, text: elementText({ kind: "text", text: constant(needle) }) };
  }
  if (value.kind !== "text") throw new Untranslatable();
  const { text } = value;
  if (text.kind === "lower" && isLowerAscii(needle))
    return { kind: "lower_contains", of: text.of, text: needle };
  return { kind: "contains", of: text, text: needle };
}

function constant(value: string): TextExpression {
  return { kind: "constant", value };
}

/** A text that can only be in, or be, one element of a list, however they are joined. */
function elementText(value: Value): string {
  const text = constantText(value);
  if (text === undefined || text === "" || /[,"]|^\s|\s$/.test(text)) throw new Untranslatable();
  return text;
}

function isAscii(text: string): boolean {
  return Buffer.byteLength(text) === text.length;
}

function isLowerAscii(text: string): boolean {
  return isAscii(text) && !/[A-Z]/.test(text);
}

/**
 * It is unknown whether a blank counts as 0 or as no value. A comparison with a constant that is false for 0, or, as a
 * negation, true, has the same result either way; for others, rows with a blank are unknown.
 */
function compareNumbers(
  left: NumberExpression,
  operator: ComparisonOperator,
  right: NumberExpression,
): Condition {
  if (operator === "!=") return not(compareNumbers(left, "=", right));
  if (left.kind === "constant") {
    if (right.kind !== "constant") return compareNumbers(right, mirrored[operator], left);
    return { kind: "constant", value: holds(left.value, operator, right.value) };
  }
  const isSure = left.kind === "column" && right.kind === "constant" && !holds(0, operator, right.value);
  return { kind: "number", left, operator, right, blank: isSure ? false : null };
}

function compareDates(left: DateExpression, operator: ComparisonOperator, right: DateExpression): Condition {
  if (operator === "!=") return not(compareDates(left, "=", right));
  return { kind: "date", left, operator, right, blank: null };
}

function holds(left: number, operator: Comparison, right: number): boolean {
  switch (operator) {
    case "=":
      return left === right;
    case "<":
      return left < right;
    case "<=":
      return left <= right;
    case ">":
      return left > right;
    case ">=":
      return left >= right;
  }
}

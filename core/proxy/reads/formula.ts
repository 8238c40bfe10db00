/**
 * Translates the subset of the source's formulas that SQL evaluates identically into a condition on rows. The source
 * evaluates all other formulas.
 *
 * R1. A formula is translated only if every row gets the same result as in the source. Behavior that is not known for
 *     sure (how blanks compare with 0, how text sorts, how names fold) is not translated.
 */
import type { ColumnSpec, Condition } from "../../replica";
import type { FieldType } from "../../source";
import { isNumber, isText } from "./cells";

/** It is unknown what a formula sees of rich text. */
function isPlainText(type: FieldType): boolean {
  return isText(type) && type !== "rich_text";
}

type Operator = "=" | "!=" | "<" | "<=" | ">" | ">=";

type Value =
  | { kind: "condition"; condition: Condition }
  | { kind: "field"; column: ColumnSpec }
  | { kind: "text"; value: string }
  | { kind: "number"; value: number }
  | { kind: "blank" }
  | { kind: "record_id" };

class Untranslatable extends Error {}

const TOKEN =
  /\s*(?:(\{(?:[^{}\\]|\\.)*\})|("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(\d+(?:\.\d+)?)|([A-Za-z_]\w*)|(!=|<=|>=|[=<>(),-]))/y;
const LONGEST = 10_000;

/** @returns undefined for a formula that cannot be translated exactly */
export function translateFormula(formula: string, columns: readonly ColumnSpec[]): Condition | undefined {
  if (formula.length > LONGEST) return undefined;
  try {
    const parser = new Parser(tokens(formula), columns);
    const condition = truth(parser.expression());
    parser.end();
    return condition;
  } catch (error) {
    // RangeError: the nesting exhausted the stack.
    if (error instanceof Untranslatable || error instanceof RangeError) return undefined;
    throw error;
  }
}

interface Token {
  kind: "field" | "text" | "number" | "word" | "sign";
  text: string;
}

function tokens(formula: string): Token[] {
  const found: Token[] = [];
  const kinds = ["field", "text", "number", "word", "sign"] as const;
  TOKEN.lastIndex = 0;
  const end = formula.trimEnd().length;
  while (TOKEN.lastIndex < end) {
    const match = TOKEN.exec(formula);
    if (!match) throw new Untranslatable();
    const index = match.slice(1).findIndex((part) => part !== undefined);
    found.push({ kind: kinds[index]!, text: match[index + 1]! });
  }
  return found;
}

class Parser {
  readonly #tokens: Token[];
  readonly #columns: readonly ColumnSpec[];
  #at = 0;

  constructor(all: Token[], columns: readonly ColumnSpec[]) {
    this.#tokens = all;
    this.#columns = columns;
  }

  end(): void {
    if (this.#at < this.#tokens.length) throw new Untranslatable();
  }

  expression(): Value {
    const left = this.#operand();
    const next = this.#tokens[this.#at]?.text;
    if (!isOperator(next)) return left;
    this.#at++;
    const right = this.#operand();
    // `a = b = c` is left to the source.
    if (isOperator(this.#tokens[this.#at]?.text)) throw new Untranslatable();
    return { kind: "condition", condition: compare(left, next, right) };
  }

  #operand(): Value {
    const token = this.#tokens[this.#at++];
    if (!token) throw new Untranslatable();
    switch (token.kind) {
      case "field":
        return { kind: "field", column: this.#column(unescaped(token.text.slice(1, -1))) };
      case "text":
        return { kind: "text", value: unescaped(token.text.slice(1, -1)) };
      case "number":
        return { kind: "number", value: Number(token.text) };
      case "word":
        if (this.#tokens[this.#at]?.text === "(") return this.#call(token.text.toUpperCase());
        return { kind: "field", column: this.#column(token.text) };
      case "sign":
        return this.#sign(token.text);
    }
  }

  #sign(sign: string): Value {
    if (sign === "-" && this.#tokens[this.#at]?.kind === "number") {
      return { kind: "number", value: -Number(this.#tokens[this.#at++]!.text) };
    }
    if (sign !== "(") throw new Untranslatable();
    const inner = this.expression();
    this.#expect(")");
    return inner;
  }

  #call(name: string): Value {
    this.#expect("(");
    const given: Value[] = [];
    if (this.#tokens[this.#at]?.text !== ")") {
      given.push(this.expression());
      while (this.#tokens[this.#at]?.text === ",") {
        this.#at++;
        given.push(this.expression());
      }
    }
    this.#expect(")");
    const conditions = () => given.map(truth);
    if ((name === "AND" || name === "OR") && given.length > 0) {
      return { kind: "condition", condition: { kind: name === "AND" ? "and" : "or", of: conditions() } };
    }
    if (name === "NOT" && given.length === 1) {
      return { kind: "condition", condition: { kind: "not", of: conditions()[0]! } };
    }
    if (given.length > 0) throw new Untranslatable();
    if (name === "TRUE") return { kind: "number", value: 1 };
    if (name === "FALSE") return { kind: "number", value: 0 };
    if (name === "BLANK") return { kind: "blank" };
    if (name === "RECORD_ID") return { kind: "record_id" };
    throw new Untranslatable();
  }

  #expect(sign: string): void {
    if (this.#tokens[this.#at++]?.text !== sign) throw new Untranslatable();
  }

  /** Finds a column by its exact name or id: it is unknown how the source folds names. */
  #column(name: string): ColumnSpec {
    const found = this.#columns.filter((column) => column.sourceName === name || column.fieldId === name);
    if (found.length !== 1) throw new Untranslatable();
    return found[0]!;
  }
}

function isOperator(text: string | undefined): text is Operator {
  return text !== undefined && ["=", "!=", "<", "<=", ">", ">="].includes(text);
}

/** Unescapes `\'`, `\"`, `\\`, `\{`, `\}`; the meaning of other escapes is unknown. */
function unescaped(text: string): string {
  return text.replace(/\\(.)/gs, (_, escaped: string) => {
    if (!`'"\\{}`.includes(escaped)) throw new Untranslatable();
    return escaped;
  });
}

/** A row matches unless the result is 0, false, "" or blank. */
function truth(value: Value): Condition {
  switch (value.kind) {
    case "condition":
      return value.condition;
    case "number":
      return { kind: "constant", value: value.value !== 0 };
    case "text":
      return { kind: "constant", value: value.value !== "" };
    case "blank":
      return { kind: "constant", value: false };
    case "record_id":
      return { kind: "constant", value: true };
    case "field": {
      const { type, name } = value.column;
      if (type === "checkbox") return { kind: "checked", column: name };
      if (isPlainText(type)) return not({ kind: "text", column: name, equals: "" });
      if (!isNumber(type)) throw new Untranslatable();
      return { kind: "or", of: [below(name), above(name)] };
    }
  }
}

function below(column: string): Condition {
  return { kind: "number", column, operator: "<", value: 0 };
}

function above(column: string): Condition {
  return { kind: "number", column, operator: ">", value: 0 };
}

function not(of: Condition): Condition {
  return { kind: "not", of };
}

function compare(left: Value, operator: Operator, right: Value): Condition {
  if (left.kind === "field" || left.kind === "record_id") return compareWith(left, operator, right);
  if (right.kind === "field" || right.kind === "record_id")
    return compareWith(right, mirrored[operator], left);
  throw new Untranslatable();
}

const mirrored: Record<Operator, Operator> = {
  "=": "=",
  "!=": "!=",
  "<": ">",
  "<=": ">=",
  ">": "<",
  ">=": "<=",
};

function compareWith(
  left: Value & { kind: "field" | "record_id" },
  operator: Operator,
  right: Value,
): Condition {
  const isEquality = operator === "=" || operator === "!=";
  const either = (condition: Condition) => (operator === "=" ? condition : not(condition));
  if (left.kind === "record_id") {
    if (right.kind !== "text" || !isEquality) throw new Untranslatable();
    return either({ kind: "id", equals: right.value });
  }
  const { type, name } = left.column;
  if (isPlainText(type) && isEquality && (right.kind === "text" || right.kind === "blank")) {
    return either({ kind: "text", column: name, equals: right.kind === "text" ? right.value : "" });
  }
  if (
    type === "checkbox" &&
    isEquality &&
    right.kind === "number" &&
    (right.value === 0 || right.value === 1)
  ) {
    const checked: Condition = { kind: "checked", column: name };
    return either(right.value === 1 ? checked : not(checked));
  }
  if (isNumber(type) && right.kind === "number") return compareNumber(name, operator, right.value);
  throw new Untranslatable();
}

/**
 * It is unknown whether a blank counts as 0 or as no value. Only comparisons with the same result either way are
 * translated: those that are false for 0, or, as a negation, true.
 */
function compareNumber(column: string, operator: Operator, value: number): Condition {
  const zero: Record<Operator, boolean> = {
    "=": value === 0,
    "!=": value === 0,
    "<": value > 0,
    "<=": value >= 0,
    ">": value < 0,
    ">=": value <= 0,
  };
  if (zero[operator]) throw new Untranslatable();
  if (operator === "!=") return not({ kind: "number", column, operator: "=", value });
  return { kind: "number", column, operator, value };
}

/**
 * Translates the subset of the source's formulas that SQL evaluates identically into a condition on rows. The source
 * evaluates all other formulas.
 *
 * R1. A formula is translated only if every row gets the same result as in the source, or is unknown. Behavior that is
 *     not known for sure (how blanks compare with 0, how text sorts, how names fold) is not translated.
 */
import { type FormulaNode, type FormulaOperator, FormulaSyntaxError, parseFormula } from "../../formula";
import type { ColumnSpec, Condition } from "../../replica";
import type { FieldType } from "../../source";
import { isMoment, isNumber, isText } from "./cells";
import { type Argument, concatenation, translatedFunctions } from "./formula-functions";
import {
  type ComparisonOperator,
  compareValues,
  truth,
  Untranslatable,
  type Use,
  type Value,
} from "./formula-values";

/**
 * In characters, and in parts to translate: no formula has more of these, unless functions repeat theirs, which grows
 * exponentially when they are nested. Others are left to the source.
 */
const LONGEST_FORMULA = 10_000;
/** Texts and names of fields whose meaning is known: other escapes, and bare names of other letters, are not translated. */
const KNOWN_TEXT = /^(?:"(?:[^"\\]|\\["'\\])*"|'(?:[^'\\]|\\["'\\])*'|\d+(?:\.\d+)?)$/;
const KNOWN_WORD = /^[A-Za-z_]\w*$/;
const KNOWN_FIELD = /^\{(?:[^{}\\]|\\[{}\\])*\}$/;

interface TranslatedFormula {
  condition: Condition;
  /** SQL names of the columns that it reads. */
  columns: string[];
}

/** @returns undefined for a formula that cannot be translated exactly */
export function translateFormula(
  formula: string,
  columns: readonly ColumnSpec[],
): TranslatedFormula | undefined {
  if (formula.length > LONGEST_FORMULA) return undefined;
  try {
    const translator = new Translator(columns);
    const value = translator.value(parseFormula(formula), { isPositive: true, isInOr: false });
    return { condition: truth(value), columns: [...translator.read] };
  } catch (error) {
    // RangeError: a date is out of range.
    const isKnown = [Untranslatable, FormulaSyntaxError, RangeError].some((one) => error instanceof one);
    if (isKnown) return undefined;
    throw error;
  }
}

class Translator {
  readonly #columns: readonly ColumnSpec[];
  readonly read = new Set<string>();
  #parts = 0;

  constructor(columns: readonly ColumnSpec[]) {
    this.#columns = columns;
  }

  value(node: FormulaNode, use: Use): Value {
    if (++this.#parts > LONGEST_FORMULA) throw new Untranslatable();
    switch (node.kind) {
      case "field":
        if (!KNOWN_FIELD.test(node.text) && !KNOWN_WORD.test(node.text)) throw new Untranslatable();
        return this.#field(node.name);
      case "literal":
        if (!KNOWN_TEXT.test(node.text)) throw new Untranslatable();
        return constantOf(node.value);
      case "negate":
        if (node.operand.kind !== "literal" || typeof node.operand.value !== "number")
          throw new Untranslatable();
        return constantOf(-node.operand.value);
      case "call": {
        const name = node.name.toUpperCase();
        if (!KNOWN_WORD.test(node.name) || !Object.hasOwn(translatedFunctions, name))
          throw new Untranslatable();
        return translatedFunctions[name]!.translate(node.args.map(this.#argument), use);
      }
      case "chain":
        return this.#chain(node.first, node.rest, use);
    }
  }

  #chain(
    first: FormulaNode,
    rest: readonly { operator: FormulaOperator; right: FormulaNode }[],
    use: Use,
  ): Value {
    if (rest.every(({ operator }) => operator === "&"))
      return concatenation([first, ...rest.map(({ right }) => right)].map(this.#argument), use);
    const [{ operator, right }] = rest as [(typeof rest)[number]];
    // `a = b = c` is left to the source, and so is arithmetic.
    if (rest.length > 1 || !isComparison(operator)) throw new Untranslatable();
    // The comparison may negate an operand.
    const part = { ...use, isPositive: false };
    const condition = compareValues(this.value(first, part), operator, this.value(right, part));
    return { kind: "condition", condition };
  }

  readonly #argument =
    (node: FormulaNode): Argument =>
    (use = { isPositive: false, isInOr: false }) =>
      this.value(node, use);

  /** Finds a column by its exact name or id: it is unknown how the source folds names. */
  #field(name: string): Value {
    const found = this.#columns.filter((column) => column.sourceName === name || column.fieldId === name);
    if (found.length !== 1) throw new Untranslatable();
    const [column] = found as [ColumnSpec];
    this.read.add(column.name);
    return fieldValue(column);
  }
}

function constantOf(value: string | number): Value {
  return typeof value === "string"
    ? { kind: "text", text: { kind: "constant", value } }
    : { kind: "number", number: { kind: "constant", value } };
}

function isComparison(operator: FormulaOperator): operator is ComparisonOperator {
  return !["&", "+", "-", "*", "/"].includes(operator);
}

function fieldValue({ name, type, columnType, result }: ColumnSpec): Value {
  if (type === "checkbox") return { kind: "checkbox", column: name };
  if (isPlainText(type)) return { kind: "text", text: { kind: "column", column: name } };
  if (isNumber(type)) return { kind: "number", number: { kind: "column", column: name, isText: false } };
  if (type === "date" || type === "date_time" || isMoment(type, result))
    return { kind: "date", date: { kind: "column", column: name } };
  if (type === "multiple_select" && columnType === "text[]") return { kind: "list", column: name };
  if (type === "lookup" && columnType === "text[]" && isPlainText(result))
    return { kind: "list", column: name, isLookup: true };
  if (type === "rollup" && columnType === "numeric" && isNumber(result))
    return { kind: "number", number: { kind: "column", column: name, isText: false } };
  if (type === "formula" && columnType === "text") {
    if (isPlainText(result)) return { kind: "text", text: { kind: "column", column: name } };
    if (isNumber(result)) return { kind: "number", number: { kind: "column", column: name, isText: true } };
  }
  throw new Untranslatable();
}

/** It is unknown what a formula sees of rich text. */
function isPlainText(type: FieldType | undefined): boolean {
  return isText(type) && type !== "rich_text";
}

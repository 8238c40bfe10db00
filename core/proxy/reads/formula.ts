/**
 * Translates the subset of the source's formulas that SQL evaluates identically into a condition on rows. The source
 * evaluates all other formulas.
 *
 * R1. A formula is translated only if every row gets the same result as in the source, or is unknown. Behavior that is
 *     not known for sure (how blanks compare with 0, how text sorts, how names fold) is not translated.
 */
import type { ColumnSpec, Condition } from "../../replica";
import type { FieldType } from "../../source";
import { isNumber, isText } from "./cells";
import { type Argument, concatenation, translatedFunctions } from "./formula-functions";
import { type FormulaTree, parseFormula, Untranslatable } from "./formula-syntax";
import { compareValues, truth, type Use, type Value } from "./formula-values";

export interface TranslatedFormula {
  condition: Condition;
  /** SQL names of the columns that it reads. */
  columns: string[];
}

/** @returns undefined for a formula that cannot be translated exactly */
export function translateFormula(
  formula: string,
  columns: readonly ColumnSpec[],
): TranslatedFormula | undefined {
  try {
    const translator = new Translator(columns);
    const value = translator.value(parseFormula(formula), { isPositive: true, isInOr: false });
    return { condition: truth(value), columns: [...translator.read] };
  } catch (error) {
    // RangeError: the nesting exhausted the stack, or a date is out of range.
    if (error instanceof Untranslatable || error instanceof RangeError) return undefined;
    throw error;
  }
}

class Translator {
  readonly #columns: readonly ColumnSpec[];
  readonly read = new Set<string>();

  constructor(columns: readonly ColumnSpec[]) {
    this.#columns = columns;
  }

  value(node: FormulaTree, use: Use): Value {
    switch (node.kind) {
      case "field":
        return this.#field(node.name);
      case "text":
        return { kind: "text", text: { kind: "constant", value: node.value } };
      case "number":
        return { kind: "number", number: { kind: "constant", value: node.value } };
      case "call": {
        if (!Object.hasOwn(translatedFunctions, node.name)) throw new Untranslatable();
        return translatedFunctions[node.name]!.translate(node.args.map(this.#argument), use);
      }
      case "join":
        return concatenation(node.parts.map(this.#argument), use);
      case "compare": {
        // The comparison may negate an operand.
        const part = { ...use, isPositive: false };
        const condition = compareValues(
          this.value(node.left, part),
          node.operator,
          this.value(node.right, part),
        );
        return { kind: "condition", condition };
      }
    }
  }

  readonly #argument =
    (node: FormulaTree): Argument =>
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

function fieldValue({ name, type, columnType, result }: ColumnSpec): Value {
  if (type === "checkbox") return { kind: "checkbox", column: name };
  if (isPlainText(type)) return { kind: "text", text: { kind: "column", column: name } };
  if (isNumber(type)) return { kind: "number", number: { kind: "column", column: name, isText: false } };
  if (type === "date" || type === "date_time" || isTime(type))
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

function isTime(type: FieldType): boolean {
  return type === "created_time" || type === "last_modified_time";
}

/** It is unknown what a formula sees of rich text. */
function isPlainText(type: FieldType | undefined): boolean {
  return isText(type) && type !== "rich_text";
}

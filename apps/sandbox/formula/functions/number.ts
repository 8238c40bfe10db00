/**
 * Numbers. Overflow and division by zero give the infinities and NaN, which are values, not errors.
 */
import { ERROR, FormulaError, type FormulaValue } from "../types";
import { toNumber, toText } from "../values";
import { type FunctionSpec, strictFunction, variadic } from "./spec";

export const numberFunctions: Record<string, FunctionSpec> = {
  ABS: strictFunction(["number"], Math.abs),
  INT: strictFunction(["number"], Math.floor),
  /** The remainder has the sign of the first argument. */
  MOD: strictFunction(["number", "number"], (value, divisor) => value % divisor),
  ROUND: strictFunction(["number"], round, ["number"]),
  MAX: overNumbers((a, b) => Math.max(a, b)),
  MIN: overNumbers((a, b) => Math.min(a, b)),
  SUM: overNumbers((a, b) => a + b),
  VALUE: strictFunction(["value"], readNumber),
};

/** Rounds half away from zero. The decimal point is shifted in text, as 1.005 times 100 is not 100.5. */
function round(value: number, places = 0): number {
  const precision = Math.trunc(places);
  const shifted = Number(`${Math.abs(value)}e${precision}`);
  const result = Number(`${Math.round(shifted)}e${-precision}`);
  // Numbers that print with an exponent have no digits there to round, or none left.
  if (!Number.isFinite(result)) return value;
  return value < 0 ? -result : result;
}

/** Folds the numbers of all arguments, with lists flattened and blanks left out; 0 if none is left. */
function overNumbers(combine: (a: number, b: number) => number): FunctionSpec {
  return variadic((values) => {
    let result: number | undefined;
    for (const value of values.flatMap(elementsOf)) {
      if (value === null || value === "") continue;
      const number = toNumber(value);
      if (number instanceof FormulaError) return number;
      result = result === undefined ? number : combine(result, number);
    }
    return result ?? 0;
  });
}

function elementsOf(value: FormulaValue): FormulaValue[] {
  return Array.isArray(value) ? value.flatMap(elementsOf) : [value];
}

/** The number in a text, without currency signs and thousands separators; blank for blank. */
function readNumber(value: FormulaValue): FormulaValue {
  if (typeof value === "number") return value;
  const text = toText(value);
  if (text instanceof FormulaError) return text;
  const bare = text.replace(/[\s,\p{Sc}]/gu, "");
  if (bare === "") return null;
  return /^[-+]?(\d+\.?\d*|\.\d+)$/.test(bare) ? Number(bare) : ERROR;
}

/**
 * The binary operators. Errors propagate: the left one first.
 */
import type { FormulaOperator } from "../../../core/formula";
import { FormulaError, type FormulaValue } from "./types";
import { areEqual, compare, joinTexts, toNumber } from "./values";

type Operation = (left: FormulaValue, right: FormulaValue) => FormulaValue;

export const operations: Record<FormulaOperator, Operation> = {
  "=": (left, right) => truth(areEqual(left, right)),
  "!=": (left, right) => truth(negated(areEqual(left, right))),
  "<": ordering((difference) => difference < 0),
  ">": ordering((difference) => difference > 0),
  "<=": ordering((difference) => difference <= 0),
  ">=": ordering((difference) => difference >= 0),
  "&": (left, right) => joinTexts([left, right], ""),
  "+": arithmetic((left, right) => left + right),
  "-": arithmetic((left, right) => left - right),
  "*": arithmetic((left, right) => left * right),
  "/": arithmetic((left, right) => left / right),
};

export function negate(value: FormulaValue): FormulaValue {
  const number = toNumber(value);
  return number instanceof FormulaError ? number : -number;
}

function arithmetic(apply: (left: number, right: number) => number): Operation {
  return (left, right) => {
    const leftNumber = toNumber(left);
    if (leftNumber instanceof FormulaError) return leftNumber;
    const rightNumber = toNumber(right);
    return rightNumber instanceof FormulaError ? rightNumber : apply(leftNumber, rightNumber);
  };
}

function ordering(holds: (difference: number) => boolean): Operation {
  return (left, right) => {
    const difference = compare(left, right);
    return typeof difference === "number" ? truth(holds(difference)) : difference;
  };
}

function negated(value: boolean | FormulaError): boolean | FormulaError {
  return typeof value === "boolean" ? !value : value;
}

function truth(value: boolean | FormulaError): FormulaValue {
  return typeof value === "boolean" ? Number(value) : value;
}

/**
 * Logic and conditionals. Truth is the number 1 or 0, as in the source.
 */
import { FormulaError, type FormulaValue } from "../types";
import { areEqual, isTruthy } from "../values";
import { type Compiled, type Evaluator, type FunctionSpec, strictFunction, variadic } from "./spec";

export const logicFunctions: Record<string, FunctionSpec> = {
  TRUE: strictFunction([], () => 1),
  FALSE: strictFunction([], () => 0),
  BLANK: strictFunction([], () => null),
  NOT: strictFunction(["value"], (value) => (isTruthy(value) ? 0 : 1)),
  AND: { minArgs: 1, maxArgs: Number.POSITIVE_INFINITY, compile: (args) => decide(args, false) },
  OR: { minArgs: 1, maxArgs: Number.POSITIVE_INFINITY, compile: (args) => decide(args, true) },
  XOR: variadic((values) => values.filter(isTruthy).length % 2),
  IF: { minArgs: 2, maxArgs: 3, compile: compileIf },
  SWITCH: { minArgs: 3, maxArgs: Number.POSITIVE_INFINITY, compile: compileSwitch },
};

/**
 * AND and OR: the result is `decisive` if one argument is.
 *
 * Every argument is still evaluated, so that an error in any of them shows.
 */
function decide(args: readonly Compiled[], decisive: boolean): Evaluator {
  const runs = args.map((arg) => arg.run);
  return (row) => {
    let isDecided = false;
    for (let at = 0; at < runs.length; at++) {
      const value = (runs[at] as Evaluator)(row);
      // Nearly all values are the numbers of comparisons.
      const isTrue = typeof value === "number" ? value !== 0 && !Number.isNaN(value) : isTruthy(value);
      if (value instanceof FormulaError) return value;
      if (isTrue === decisive) isDecided = true;
    }
    return isDecided === decisive ? 1 : 0;
  };
}

/** Only the chosen branch is computed, so that IF can guard against an error. */
function compileIf(args: readonly Compiled[]): Evaluator {
  const [condition, whenTrue, whenFalse] = args as [Compiled, Compiled, Compiled?];
  return (row) => {
    const value = condition.run(row);
    if (value instanceof FormulaError) return value;
    if (isTruthy(value)) return whenTrue.run(row);
    return whenFalse === undefined ? null : whenFalse.run(row);
  };
}

/** `SWITCH(value, pattern, result, …, default)`: only the chosen result is computed. */
function compileSwitch(args: readonly Compiled[]): Evaluator {
  const [subject, ...rest] = args as [Compiled, ...Compiled[]];
  const fallback = rest.length % 2 === 1 ? rest.at(-1) : undefined;
  const lastPattern = rest.length - (fallback === undefined ? 0 : 1);
  return (row): FormulaValue => {
    const value = subject.run(row);
    if (value instanceof FormulaError) return value;
    for (let at = 0; at < lastPattern; at += 2) {
      const isMatch = areEqual(value, (rest[at] as Compiled).run(row));
      if (isMatch instanceof FormulaError) return isMatch;
      if (isMatch) return (rest[at + 1] as Compiled).run(row);
    }
    return fallback === undefined ? null : fallback.run(row);
  };
}

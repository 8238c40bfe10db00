/**
 * Declares a function of the language: the number and kinds of its arguments, and its implementation.
 */
import { type Unit, unitOf } from "../dates";
import { ERROR, type FormulaDate, FormulaError, type FormulaValue, type RowContext } from "../types";
import { toDate, toNumber, toText } from "../values";

export type Evaluator = (row: RowContext) => FormulaValue;

/** A part of a formula, ready to run. */
export interface Compiled {
  run: Evaluator;
  /** Its value, if that is the same for every record. */
  constant?: FormulaValue;
  /** Its field, if it is only a field's name. */
  fieldId?: string;
}

export interface FunctionSpec {
  minArgs: number;
  maxArgs: number;
  /** The result depends on the record or the clock, whatever the arguments are. */
  readsRow?: boolean;
  /** @throws FormulaSyntaxError if an argument must have a certain form */
  compile(args: readonly Compiled[]): Evaluator;
}

/** The kinds to which arguments are converted. `date` rejects blank. */
interface Kinds {
  value: FormulaValue;
  text: string;
  number: number;
  date: FormulaDate;
  dateOrBlank: FormulaDate | null;
  unit: Unit;
  pattern: RegExp;
}

type Kind = keyof Kinds;
type Values<K extends readonly Kind[]> = { [I in keyof K]: Kinds[K[I]] };

const COERCE: { [K in Kind]: (value: FormulaValue) => Kinds[K] | FormulaError } = {
  value: (value) => value,
  text: toText,
  number: toNumber,
  date: (value) => toDate(value) ?? ERROR,
  dateOrBlank: toDate,
  unit: (value) => (typeof value === "string" ? unitOf(value) : undefined) ?? ERROR,
  pattern: toPattern,
};

/** A function with fixed arguments. An error among them is its result; `apply` is called only without errors. */
export function strictFunction<const R extends readonly Kind[], const O extends readonly Kind[] = []>(
  required: R,
  apply: (...values: [...Values<R>, ...Partial<Values<O>>]) => FormulaValue,
  optional?: O,
): FunctionSpec {
  const kinds: readonly Kind[] = [...required, ...(optional ?? [])];
  return {
    minArgs: required.length,
    maxArgs: kinds.length,
    compile(args) {
      const readers = args.map((arg, index) => reader(arg, kinds[index] as Kind));
      return (row) => {
        const values: unknown[] = [];
        for (const read of readers) {
          const value = read(row);
          if (value instanceof FormulaError) return value;
          values.push(value);
        }
        return apply(...(values as [...Values<R>, ...Partial<Values<O>>]));
      };
    },
  };
}

/** A function of any number of values. An error among them is its result. */
export function variadic(apply: (values: FormulaValue[]) => FormulaValue): FunctionSpec {
  return {
    minArgs: 1,
    maxArgs: Number.POSITIVE_INFINITY,
    compile(args) {
      const runs = args.map((arg) => arg.run);
      return (row) => {
        const values: FormulaValue[] = [];
        for (const run of runs) {
          const value = run(row);
          if (value instanceof FormulaError) return value;
          values.push(value);
        }
        return apply(values);
      };
    },
  };
}

/** A function without arguments that reads the record or the clock. */
export function fromRow(run: Evaluator): FunctionSpec {
  return { minArgs: 0, maxArgs: 0, readsRow: true, compile: () => run };
}

/** Constants are converted once: a date in text is parsed at compile time, not for each record. */
function reader<K extends Kind>(arg: Compiled, kind: K): (row: RowContext) => Kinds[K] | FormulaError {
  const coerce = COERCE[kind];
  if (arg.constant !== undefined) {
    const value = coerce(arg.constant);
    return () => value;
  }
  return (row) => coerce(arg.run(row));
}

/** The source's patterns are RE2's: flags such as `(?i)` come first, and a character is a code point. */
function toPattern(value: FormulaValue): RegExp | FormulaError {
  const text = toText(value);
  if (text instanceof FormulaError) return text;
  const [, flags = "", body = ""] = /^(?:\(\?([ims]+)\))?(.*)$/s.exec(text) ?? [];
  const flagSet = [...new Set(flags)].join("");
  return regExpOf(body, `${flagSet}u`) ?? regExpOf(body, flagSet) ?? ERROR;
}

function regExpOf(body: string, flags: string): RegExp | undefined {
  try {
    return new RegExp(body, flags);
  } catch {
    return undefined;
  }
}

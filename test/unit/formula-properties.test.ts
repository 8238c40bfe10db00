import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type CompiledFormula,
  compileFormula,
  FormulaDate,
  FormulaError,
  FormulaSyntaxError,
  type FormulaValue,
  formulaResultToCell,
  type RowContext,
} from "../../apps/sandbox/formula";

const row: RowContext = {
  recordId: "recAAAAAAAAAAAAAA",
  createdTime: 0,
  lastModifiedTime: () => null,
  cell: () => null,
  now: () => 0,
};

function evaluate(text: string): FormulaValue {
  return compileFormula(text, () => undefined).evaluate(row);
}

type Operator = "+" | "-" | "*" | "/";
type Sum = { number: number } | { minus: Sum } | { left: Sum; operator: Operator; right: Sum };

const { sum } = fc.letrec<{ sum: Sum }>((tie) => ({
  sum: fc.oneof(
    { depthSize: "medium" },
    fc.record({ number: fc.integer({ min: 0, max: 10_000 }).map((n) => n / 100) }),
    fc.record({ minus: tie("sum") }),
    fc.record({
      left: tie("sum"),
      operator: fc.constantFrom<Operator>("+", "-", "*", "/"),
      right: tie("sum"),
    }),
  ),
}));

const POWER: Record<Operator, number> = { "+": 1, "-": 1, "*": 2, "/": 2 };

/** Prints with only the necessary parentheses, so that precedence and order are tested. */
function print(node: Sum, minPower = 0): string {
  if ("number" in node) return String(node.number);
  if ("minus" in node) return `- ${print(node.minus, 3)}`;
  const power = POWER[node.operator];
  const text = `${print(node.left, power)} ${node.operator} ${print(node.right, power + 1)}`;
  return power < minPower ? `(${text})` : text;
}

function valueOfSum(node: Sum): number {
  if ("number" in node) return node.number;
  if ("minus" in node) return -valueOfSum(node.minus);
  const left = valueOfSum(node.left);
  const right = valueOfSum(node.right);
  return { "+": left + right, "-": left - right, "*": left * right, "/": left / right }[node.operator];
}

/** Pieces that form texts which can often be parsed. */
const PIECES = [
  ..."+-*/&=<>(),'\"{}\\. 10",
  "!=",
  "{a}",
  "a",
  "''",
  "'2024-01-31'",
  "'days'",
  "'M'",
  "'('",
  "99999999999999999999",
  ...["AND(", "IF(", "SWITCH(", "FIND(", "MID(", "RIGHT(", "SUBSTITUTE(", "ARRAYJOIN(", "REGEX_MATCH("],
  ...[
    "ROUND(",
    "MOD(",
    "VALUE(",
    "SUM(",
    "DATETIME_PARSE(",
    "DATETIME_FORMAT(",
    "DATEADD(",
    "DATETIME_DIFF(",
  ],
  ...["IS_SAME(", "IS_AFTER(", "LAST_MODIFIED_TIME(", "NOW()", "CREATED_TIME()", "BLANK()", "NOPE("],
];

const anyText = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.array(fc.constantFrom(...PIECES), { maxLength: 30 }).map((pieces) => pieces.join("")),
);

const scalar: fc.Arbitrary<FormulaValue> = fc.oneof(
  fc.constantFrom<FormulaValue>(null, true, false, "", "2024-01-31", "M", "days", new FormulaError("#X!")),
  fc.string(),
  fc.double(),
  fc.oneof(fc.double(), fc.date({ noInvalidDate: false }).map(Number)).map((ms) => new FormulaDate(ms)),
);
const anyValue: fc.Arbitrary<FormulaValue> = fc.oneof(scalar, fc.array(scalar, { maxLength: 3 }));

/** Each function with as many arguments as it accepts, and each operator; the arguments are fields. */
const ARITIES: [string, number, number][] = [
  ...["TRUE", "FALSE", "BLANK", "NOW", "TODAY", "RECORD_ID", "CREATED_TIME"].map(
    (name) => [name, 0, 0] as [string, number, number],
  ),
  ...["NOT", "LOWER", "UPPER", "LEN", "TRIM", "ABS", "INT", "VALUE"].map(
    (name) => [name, 1, 1] as [string, number, number],
  ),
  ...["AND", "OR", "XOR", "CONCATENATE", "MAX", "MIN", "SUM"].map(
    (name) => [name, 1, 4] as [string, number, number],
  ),
  ...["ARRAYJOIN", "ROUND", "DATETIME_PARSE", "DATETIME_FORMAT"].map(
    (name) => [name, 1, 2] as [string, number, number],
  ),
  ...["LEFT", "RIGHT", "REGEX_MATCH", "MOD", "IS_AFTER", "IS_BEFORE"].map(
    (name) => [name, 2, 2] as [string, number, number],
  ),
  ...["IF", "FIND", "SEARCH", "DATETIME_DIFF", "IS_SAME"].map(
    (name) => [name, 2, 3] as [string, number, number],
  ),
  ["MID", 3, 3],
  ["DATEADD", 3, 3],
  ["SUBSTITUTE", 3, 4],
  ["SWITCH", 3, 6],
  ["LAST_MODIFIED_TIME", 0, 2],
];

const callText = fc.constantFrom(...ARITIES).chain(([name, min, max]) =>
  fc.integer({ min, max }).map((count) => {
    const names = Array.from({ length: count }, (_, index) => `{f${index}}`);
    return `${name}(${names.join(", ")})`;
  }),
);
const operatorText = fc
  .constantFrom("=", "!=", "<", ">", "<=", ">=", "&", "+", "-", "*", "/")
  .map((operator) => `{f0} ${operator} -{f1} ${operator} {f2}`);

describe("for any text", () => {
  test("compiling throws nothing but FormulaSyntaxError, and compiled formulas evaluate", () => {
    fc.assert(
      fc.property(anyText, fc.boolean(), (text, knowsFields) => {
        let formula: CompiledFormula | undefined;
        try {
          formula = compileFormula(text, (name) => (knowsFields ? `fld${name}` : undefined));
        } catch (error) {
          expect(error).toBeInstanceOf(FormulaSyntaxError);
        }
        if (formula !== undefined) formulaResultToCell(formula.evaluate(row));
      }),
      { numRuns: 20_000 },
    );
  });

  test("a string literal, escaped, is that text", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.constantFrom("'", '"'), (text, quote) => {
        const escaped = text.replaceAll("\\", "\\\\").replaceAll(quote, `\\${quote}`);
        expect(evaluate(quote + escaped + quote)).toBe(text);
      }),
    );
  });

  test("a field's name in braces, escaped, is looked up unchanged", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (name) => {
        const asked: string[] = [];
        compileFormula(`{${name.replace(/[\\{}]/g, "\\$&")}}`, (asking) => {
          asked.push(asking);
          return "fld1";
        });
        expect(asked).toEqual([name]);
      }),
    );
  });
});

test("arithmetic printed and parsed agrees with JavaScript", () => {
  fc.assert(
    fc.property(sum, (node) => {
      expect(evaluate(print(node))).toBe(valueOfSum(node));
    }),
    { numRuns: 2000 },
  );
});

test("no cell makes a function or an operator throw, and each result can be written as JSON", () => {
  fc.assert(
    fc.property(
      fc.oneof(callText, operatorText),
      fc.array(anyValue, { minLength: 6, maxLength: 6 }),
      (text, cells) => {
        const formula = compileFormula(text, (name) => name);
        const context: RowContext = { ...row, cell: (fieldId) => cells[Number(fieldId.slice(1))] ?? null };
        const cell = formulaResultToCell(formula.evaluate(context));
        expect(JSON.parse(JSON.stringify([cell]))).toBeDefined();
        formula.isTrue(context);
      },
    ),
    {
      numRuns: 20_000,
      examples: [
        ["DATETIME_FORMAT({f0}, {f1})", [new FormulaDate(8.64e15 + 1), ["ll"], null, null, null, null]],
      ],
    },
  );
});

test("I1: a formula may be of any length, but not of any depth", () => {
  const terms = Array.from({ length: 50_000 }, () => "1");
  expect(evaluate(terms.join("+"))).toBe(50_000);
  expect(evaluate(`SUM(${terms.join(",")})`)).toBe(50_000);
  expect(evaluate(`${"(".repeat(150)}1${")".repeat(150)}`)).toBe(1);
});

test("adding and subtracting months agree, for days that every month has", () => {
  fc.assert(
    fc.property(
      fc.date({ min: new Date("1900-01-01"), max: new Date("2100-01-01"), noInvalidDate: true }),
      fc.integer({ min: -500, max: 500 }),
      (date, months) => {
        date.setUTCDate(Math.min(date.getUTCDate(), 28));
        const from = date.toISOString();
        expect(evaluate(`DATETIME_DIFF(DATEADD('${from}', ${months}, 'months'), '${from}', 'M')`)).toBe(
          months,
        );
      },
    ),
  );
});

test("a date formatted and parsed by the same format is the same date", () => {
  const formats = [
    "YYYY-MM-DD HH:mm:ss.SSS",
    "MMMM D, YYYY h:mm:ss.SSS A Z",
    "[on] D/M/YYYY [at] H:m:s.SSS",
    "x",
  ];
  fc.assert(
    fc.property(
      fc.date({ min: new Date("1000-01-01"), max: new Date("9999-12-31"), noInvalidDate: true }),
      fc.constantFrom(...formats),
      (date, format) => {
        const text = `DATETIME_PARSE(DATETIME_FORMAT('${date.toISOString()}', '${format}'), '${format}')`;
        expect(formulaResultToCell(evaluate(text))).toBe(date.toISOString());
      },
    ),
  );
});

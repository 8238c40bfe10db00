import { describe, expect, test } from "vitest";
import {
  type CompiledFormula,
  cellToFormulaValue,
  compileFormula,
  FormulaDate,
  FormulaError,
  FormulaSyntaxError,
  type FormulaValue,
  formulaResultToCell,
  type RowContext,
} from "../../apps/sandbox/formula";

const FIELD_IDS: Record<string, string> = {
  name: "fldName",
  count: "fldCount",
  "empty number": "fldEmpty",
  done: "fldDone",
  due: "fldDue",
  noted: "fldNoted",
  link: "fldLink",
  links: "fldLinks",
  "no links": "fldNoLinks",
  broken: "fldBroken",
  "odd } name": "fldOdd",
  größe: "fldSize",
};

const CELLS: Record<string, FormulaValue> = {
  fldName: "Ada's Café",
  fldCount: 7,
  fldDone: true,
  fldDue: new FormulaDate(Date.parse("2024-02-29"), false),
  fldNoted: new FormulaDate(Date.parse("2024-05-01T12:34:56.789Z")),
  fldLink: ["Ada"],
  fldLinks: ["Ada", "Grace, Hopper"],
  fldNoLinks: [],
  fldBroken: new FormulaError(),
  fldOdd: "odd",
  fldSize: 3,
};

const CREATED = Date.parse("2024-01-02T03:04:05.000Z");
const NOW = Date.parse("2024-05-02T10:00:00.000Z");

const row: RowContext = {
  recordId: "recAAAAAAAAAAAAAA",
  createdTime: CREATED,
  lastModifiedTime: (fieldIds) => {
    if (fieldIds === undefined) return NOW;
    return fieldIds.includes("fldName") ? CREATED + 1000 : null;
  },
  cell: (fieldId) => CELLS[fieldId] ?? null,
  now: () => NOW,
};

/** The sandbox's own way to find a field: by name in any case, or by id. */
function resolve(nameOrId: string): string | undefined {
  return nameOrId.startsWith("fld") ? nameOrId : FIELD_IDS[nameOrId.toLowerCase()];
}

function compile(text: string): CompiledFormula {
  return compileFormula(text, resolve);
}

/** The value as its cell in the API, blank as undefined. */
function cellOf(text: string): unknown {
  return formulaResultToCell(compile(text).evaluate(row));
}

const INVALID = new FormulaSyntaxError("Invalid formula. Please check your formula text.");
const ERROR_CELL = { error: "#ERROR!" };

describe("formulas return what the source returns", () => {
  test.each<[string, unknown]>([
    // Literals and references
    ["'it\\'s'", "it's"],
    ['"a\\"b\\\\c\\nd"', 'a"b\\c\nd'],
    ["'\\d'", "\\d"],
    [".5 + 1.25", 1.75],
    ["{Name}", "Ada's Café"],
    ["name", "Ada's Café"],
    ["{fldCount}", 7],
    ["{odd \\} name}", "odd"],
    ["Größe", 3],
    ["{Done}", 1],
    ["{Links}", ["Ada", "Grace, Hopper"]],
    // Operators
    ["1 + 2 * 3 - 4 / 2", 5],
    ["10 - 3 - 2", 5],
    ["-(2 + 3) * -2", 10],
    ["1 + 1 & '=' & 2", "2=2"],
    ["'a' & 1 = 'a1'", 1],
    ["2 > 1 > 0", 1],
    ["1 / 0", { specialValue: "Infinity" }],
    ["-1 / 0", { specialValue: "-Infinity" }],
    ["0 / 0", { specialValue: "NaN" }],
    ["'3' * 2", 6],
    ["'x' + 1", ERROR_CELL],
    ["{Due} + 1", ERROR_CELL],
    ["{Broken} & 'x'", ERROR_CELL],
    ["{Link} & {Links}", "AdaAda, Grace, Hopper"],
    ["{Due} & ''", "2024-02-29T00:00:00.000Z"],
    // Blank
    ["BLANK()", undefined],
    ["BLANK() = ''", 1],
    ["{Empty number} = 0", 1],
    ["{Empty number} + 1", 1],
    ["{No links} = BLANK()", 1],
    ["{Count} = BLANK()", 0],
    ["'' = 0", 0],
    // Comparisons
    ["'a' = 'A'", 0],
    ["7 = '7'", 0],
    ["{Done} = 1", 1],
    ["{Link} = 'Ada'", 1],
    ["'a' < 'b'", 1],
    ["1 < 'b'", ERROR_CELL],
    ["{Due} = '2024-02-29'", 1],
    ["{Due} = '2024-02-29T02:00+02:00'", 1],
    ["{Due} != 'soon'", 1],
    ["{Due} > 'soon'", ERROR_CELL],
    ["{Due} > BLANK()", 0],
    ["{Noted} >= '2024-05-01T12:34:56.789Z'", 1],
    ["{Noted} > '2024-05-01T12:34:56.789'", 0],
    // Logic
    ["AND(1, 'x', {Link})", 1],
    ["AND(1, {No links})", 0],
    ["OR(0, '', BLANK(), 0/0)", 0],
    ["OR(1, {Broken})", ERROR_CELL],
    ["AND({Broken}, 0)", ERROR_CELL],
    ["XOR(1, 1, 1)", 1],
    ["NOT({Done})", 0],
    ["TRUE() & FALSE()", "10"],
    ["IF({Count} > 5, 'many', {Broken})", "many"],
    ["IF(0, 1)", undefined],
    ["if(0, 1, If(1, 2))", 2],
    ["SWITCH({Count}, 6, 'six', 7, 'seven')", "seven"],
    ["SWITCH({Count}, 1, 'one', 'other')", "other"],
    ["SWITCH({Count}, 1, 'one', 2, 'two')", undefined],
    // Text
    ["FIND('a', {Name})", 3],
    ["FIND('a', {Name}, 4)", 8],
    ["FIND('a', {Name}, 9)", 0],
    ["FIND('recX', {Links})", 0],
    ["FIND('Grace', {Links})", 6],
    ["SEARCH('CAFÉ', {Name})", 7],
    ["SEARCH('zzz', {Name})", undefined],
    ["LOWER('ÀB') & UPPER('ç')", "àbÇ"],
    ["LEN(TRIM('  ab '))", 2],
    ["LEFT('abc', 2) & RIGHT('abc', 2)", "abbc"],
    ["LEFT('abc', -1) & RIGHT('abc', 0)", undefined],
    ["RIGHT('abc', 9)", "abc"],
    ["MID('abcdef', 2, 3)", "bcd"],
    ["SUBSTITUTE('a-b-c', '-', '+')", "a+b+c"],
    ["SUBSTITUTE('a-b-c', '-', '+', 2)", "a-b+c"],
    ["SUBSTITUTE('a-b-c', '-', '+', 3)", "a-b-c"],
    ["CONCATENATE('a', 1, BLANK(), {Link})", "a1Ada"],
    ["ARRAYJOIN({Links}, '; ')", "Ada; Grace, Hopper"],
    ["ARRAYJOIN({Links})", "Ada, Grace, Hopper"],
    ["REGEX_MATCH({Name}, '^Ada.s')", 1],
    ["REGEX_MATCH('a1', '^\\w\\\\d$')", 1],
    ["REGEX_MATCH({Name}, '(?i)ADA')", 1],
    ["REGEX_MATCH('🙂', '^.$')", 1],
    ["REGEX_MATCH({Name}, '(')", ERROR_CELL],
    // Numbers
    ["ABS(-3) + INT(-1.5)", 1],
    ["MOD(7, 3)", 1],
    ["ROUND(1.005, 2)", 1.01],
    ["ROUND(-2.5)", -3],
    ["ROUND(1234, -2)", 1200],
    ["MAX(1, {Count}, BLANK())", 7],
    ["MIN(5, {Count})", 5],
    ["SUM(1, '2', {Empty number})", 3],
    ["SUM('x')", ERROR_CELL],
    ["VALUE('$1,234.50')", 1234.5],
    ["VALUE('twelve')", ERROR_CELL],
    // Records
    ["RECORD_ID()", "recAAAAAAAAAAAAAA"],
    ["CREATED_TIME()", "2024-01-02T03:04:05.000Z"],
    ["LAST_MODIFIED_TIME()", "2024-05-02T10:00:00.000Z"],
    ["LAST_MODIFIED_TIME({Name}, Count)", "2024-01-02T03:04:06.000Z"],
    ["LAST_MODIFIED_TIME({Count})", undefined],
    // Dates
    ["{Due}", "2024-02-29"],
    ["NOW()", "2024-05-02T10:00:00.000Z"],
    ["TODAY()", "2024-05-02"],
    ["DATETIME_PARSE('2024-05-01T12:34:56.789Z')", "2024-05-01T12:34:56.789Z"],
    ["DATETIME_PARSE('2024-05-01 12:34')", "2024-05-01T12:34:00.000Z"],
    ["DATETIME_PARSE('2024-05-01')", "2024-05-01T00:00:00.000Z"],
    ["DATETIME_PARSE('2024-02-30')", ERROR_CELL],
    ["DATETIME_PARSE('1/2/24 3:04 pm', 'D/M/YY h:mm a')", "2024-02-01T15:04:00.000Z"],
    ["DATETIME_PARSE('4 May 2024', 'D MMM YYYY')", "2024-05-04T00:00:00.000Z"],
    ["DATETIME_PARSE('1714566896', 'X')", "2024-05-01T12:34:56.000Z"],
    ["DATETIME_PARSE('x', 'YYYY')", ERROR_CELL],
    ["DATETIME_FORMAT({Noted})", "2024-05-01T12:34:56+00:00"],
    ["DATETIME_FORMAT({Noted}, 'YYYY-MM-DD HH:mm:ss.SSS')", "2024-05-01 12:34:56.789"],
    ["DATETIME_FORMAT({Noted}, 'dddd, MMMM Do [at] h:mm A')", "Wednesday, May 1st at 12:34 PM"],
    ["DATETIME_FORMAT({Due}, 'ddd D/M/YY, DDD, [Q]Q, W, LL')", "Thu 29/2/24, 60, Q1, 9, February 29, 2024"],
    ["DATETIME_FORMAT({Noted}, 'X x Z')", "1714566896 1714566896789 +00:00"],
    ["DATETIME_FORMAT({Empty number}, 'YYYY')", ERROR_CELL],
    ["DATEADD({Due}, 1, 'year')", "2025-02-28"],
    ["DATEADD('2024-01-31', 1, 'months')", "2024-02-29"],
    ["DATEADD({Due}, -1, 'days')", "2024-02-28"],
    ["DATEADD({Due}, 90, 'minutes')", "2024-02-29T01:30:00.000Z"],
    ["DATEADD({Due}, 1, 'M')", "2024-03-29"],
    ["DATEADD({Due}, 1, 'fortnights')", ERROR_CELL],
    ["DATEADD({Due}, 9999999999, 'years')", ERROR_CELL],
    ["DATETIME_DIFF({Noted}, {Due}, 'days')", 62],
    ["DATETIME_DIFF({Due}, {Noted}, 'months')", -2],
    ["DATETIME_DIFF('2024-03-31', '2024-02-29', 'months')", 1],
    ["DATETIME_DIFF({Noted}, '2024-05-01T12:34:50Z')", 6],
    ["DATETIME_DIFF({Noted}, '2024-05-01T12:34:56Z', 'milliseconds')", 789],
    ["IS_AFTER({Noted}, '2024-05-01T12:34:56.788Z')", 1],
    ["IS_AFTER({Noted}, '2024-05-01T12:34:56.789Z')", 0],
    ["IS_BEFORE(CREATED_TIME(), NOW())", 1],
    ["IS_AFTER(LAST_MODIFIED_TIME({Count}), '2000-01-01')", 0],
    ["IS_AFTER({Noted}, 'yesterday')", ERROR_CELL],
    ["IS_SAME({Noted}, '2024-05-01', 'day')", 1],
    ["IS_SAME({Noted}, '2024-05-01')", 0],
    ["IS_SAME({Noted}, '2024-06-30', 'quarter')", 1],
    ["IS_SAME('2024-05-04', '2024-04-28', 'week')", 1],
    ["IS_SAME('2024-05-04', '2024-05-05', 'week')", 0],
  ])("%s", (text, expected) => {
    expect(cellOf(text)).toEqual(expected);
  });
});

describe("an invalid formula is refused with the API's text", () => {
  test.each([
    "",
    " ",
    "1 +",
    "(1",
    "1)",
    "1 2",
    "'open",
    "{open",
    "{Name",
    "1 == 2",
    "1 <> 2",
    "+1",
    "1.2.3",
    "12abc",
    "AND()",
    "LEFT('a')",
    "NOW(1)",
    "IF(1,,2)",
    "LAST_MODIFIED_TIME('Name')",
    "$",
    "1e9",
  ])("%j", (text) => {
    expect(() => compile(text)).toThrow(INVALID);
  });

  test.each(["(", "-", "NOT("])("100,000 times %s", (opening) => {
    expect(() => compile(opening.repeat(100_000))).toThrow(INVALID);
  });

  test("JSON is read as a formula too: an object is the name of a field", () => {
    expect(() => compile('{"json": 1}')).toThrow(new FormulaSyntaxError('Unknown field names: "json": 1'));
  });

  test("unknown fields are all named, once, in lower case, before unknown functions", () => {
    expect(() => compile("BAD({Date Added} & Other & {OTHER} & LAST_MODIFIED_TIME(Gone))")).toThrow(
      new FormulaSyntaxError("Unknown field names: date added, other, gone"),
    );
  });

  test("unknown functions are named, whatever their name", () => {
    expect(() => compile("Bad(1) & constructor() & __proto__()")).toThrow(
      new FormulaSyntaxError("Unknown function names: bad, constructor, __proto__"),
    );
  });

  test("TRUE without parentheses is the name of a field", () => {
    expect(() => compile("TRUE")).toThrow(new FormulaSyntaxError("Unknown field names: true"));
  });
});

describe("a filter", () => {
  test.each<[string, boolean]>([
    ["1", true],
    ["-0.5", true],
    ["'0'", true],
    ["{Links}", true],
    ["NOW()", true],
    ["0", false],
    ["''", false],
    ["BLANK()", false],
    ["0/0", false],
    ["{No links}", false],
    ["{Broken}", false],
  ])("on %s keeps a record: %s", (text, kept) => {
    expect(compile(text).isTrue(row)).toBe(kept);
  });
});

test("a formula lists the fields it refers to, once each", () => {
  expect(compile("{Count} + {fldCount} & LAST_MODIFIED_TIME(Name)").referencedFieldIds).toEqual([
    "fldCount",
    "fldName",
  ]);
});

describe("the records that a filter selects by id are known without reading rows", () => {
  test.each<[string, string[] | null]>([
    ["RECORD_ID()='rec1'", ["rec1"]],
    ["OR(RECORD_ID()='rec2', 'rec1' = record_id(), or(RECORD_ID()=\"rec2\"))", ["rec2", "rec1"]],
    ["OR(RECORD_ID()='rec1', {Count}=1)", null],
    ["OR(RECORD_ID()='rec1', RECORD_ID()!='rec2')", null],
    ["AND(RECORD_ID()='rec1')", null],
    ["RECORD_ID()='rec1'='rec2'", null],
    ["RECORD_ID()={Name}", null],
  ])("%s", (text, recordIds) => {
    expect(compile(text).recordIds).toEqual(recordIds);
  });
});

test("constants do not use the time of compiling", () => {
  let now = 0;
  const formula = compileFormula("DATETIME_DIFF(NOW(), '1970-01-01')", resolve);
  const read = () => formula.evaluate({ ...row, now: () => now });
  expect(read()).toBe(0);
  now = 5000;
  expect(read()).toBe(5);
});

test("a text that would grow without bound is an error, and fails fast", () => {
  let text = "'aaaaaaaaaaaaaaaaaaaa'";
  for (let level = 0; level < 60; level++) text = `SUBSTITUTE(${text}, 'a', 'aaaaaaaaaaaaaaaaaaaa')`;
  expect(cellOf(text)).toEqual(ERROR_CELL);
});

describe("cells become values", () => {
  test.each<[unknown, string, FormulaValue]>([
    [undefined, "checkbox", false],
    [undefined, "number", null],
    ["2024-02-29", "date", new FormulaDate(Date.parse("2024-02-29"), false)],
    ["2024-02-29T01:02:03.004Z", "dateTime", new FormulaDate(Date.parse("2024-02-29T01:02:03.004Z"), true)],
    ["2024-02-29", "singleLineText", "2024-02-29"],
    [{ id: "usr1", email: "ada@example.com", name: "Ada" }, "singleCollaborator", "Ada"],
    [[{ id: "att1", url: "http://x", filename: "a.png" }], "multipleAttachments", ["a.png"]],
    [{ text: "0123", type: "upce" }, "barcode", "0123"],
    [{ label: "Open", url: null }, "button", "Open"],
    [{ state: "generated", isStale: false, value: "text" }, "aiText", "text"],
    [{ state: "empty", isStale: false, value: null }, "aiText", null],
    [{ specialValue: "-Infinity" }, "formula", Number.NEGATIVE_INFINITY],
    [[1, null, { error: "#ERROR!" }], "number", [1, null, new FormulaError()]],
  ])("%j of %s", (cell, fieldType, value) => {
    expect(cellToFormulaValue(cell, fieldType)).toEqual(value);
  });
});

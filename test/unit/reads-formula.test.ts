/** Formulas as conditions on rows: a translated formula matches the same records as the source's formula engine. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { translateFormula } from "../../core/proxy/reads/formula";
import type { ColumnSpec } from "../../core/replica";

const columns = [
  ["fldName", "Name", "text", "text"],
  ["fldAge", "Age", "number", "numeric"],
  ["fldDone", "Done", "checkbox", "bool"],
  ["fldTags", "Tags", "multiple_select", "text[]"],
  ["fldBio", "Bio", "rich_text", "text"],
  ["fldOdd", "Odd {name}", "text", "text"],
  ["fldBorn", "Born", "date", "date"],
  ["fldTowns", "Towns", "lookup", "text[]", "text"],
  ["fldSize", "Größe", "text", "text"],
  ["fldQuoted", "Odd \\'name\\'", "text", "text"],
  ["fldMade", "Made", "created_time", "timestamp", "date_time"],
  ["fldDay", "Day", "created_time", "timestamp", "date"],
].map(([fieldId, sourceName, type, columnType, result]) => {
  return {
    result,
    fieldId,
    sourceName,
    name: fieldId!.toLowerCase(),
    type,
    columnType,
    sourceType: type,
  } as ColumnSpec;
});

const translated = (formula: string) => translateFormula(formula, columns)?.condition;
const nameText = { kind: "column", column: "fldname" };
const name = (value: string) => ({ kind: "same_text", left: nameText, right: { kind: "constant", value } });
const age = (operator: string, value: number) => ({
  kind: "number",
  left: { kind: "column", column: "fldage", isText: false },
  operator,
  right: { kind: "constant", value },
});

/** A SWITCH of twenty patterns over another one, and so on. */
function switches(deep: number): string {
  const pairs = Array.from({ length: 20 }, (_, at) => `'${at}', 'b'`).join(", ");
  return deep === 0 ? "{Name}" : `SWITCH(${switches(deep - 1)}, ${pairs})`;
}

describe("translated", () => {
  test.each<[string, unknown]>([
    ["{Name} = 'Ada'", name("Ada")],
    ['Name="Ada"', name("Ada")],
    ["{fldName}='it\\'s'", name("it's")],
    ["'Ada' = {Name}", expect.objectContaining({ kind: "same_text" })],
    ["{Name} != ''", { kind: "not", of: name("") }],
    ["{Name} = BLANK()", name("")],
    ["{Name}", { kind: "not", of: name("") }],
    ["{Done}", { kind: "checked", column: "flddone" }],
    ["{Done} = 0", { kind: "not", of: { kind: "checked", column: "flddone" } }],
    ["NOT({Done})", { kind: "not", of: { kind: "checked", column: "flddone" } }],
    ["Done = TRUE()", { kind: "checked", column: "flddone" }],
    ["{Age} > 30", { ...age(">", 30), blank: false }],
    ["30 < {Age}", { ...age(">", 30), blank: false }],
    ["(({Age}) > (30)) = 1", { ...age(">", 30), blank: false }],
    ["{Age} < -1.5", { ...age("<", -1.5), blank: false }],
    ["{Age} < 30", { ...age("<", 30), blank: null }],
    ["{Tags} = 'red'", { kind: "list_is", column: "fldtags", text: "red" }],
    ["FIND('x', ARRAYJOIN({Towns}))", { kind: "list_contains", column: "fldtowns", text: "x" }],
    [
      "RECORD_ID() = 'rec1'",
      { kind: "same_text", left: { kind: "record_id" }, right: { kind: "constant", value: "rec1" } },
    ],
    ["AND({Name}='a', OR({Done}, Age>1))", expect.objectContaining({ kind: "and" })],
    ["IS_AFTER({Made}, '2026-01-01')", expect.objectContaining({ kind: "date" })],
    [`${switches(2)} = 'b'`, expect.objectContaining({ kind: "if" })],
    ["1", { kind: "constant", value: true }],
  ])("%s", (formula, condition) => expect(translated(formula)).toEqual(condition));
});

describe("left to the source", () => {
  test.each([
    ["names fold in a way that is not known", "{name} = 'Ada'"],
    ["text may sort otherwise", "{Name} > 'A'"],
    ["several values, which may be joined by a comma", "{Tags} = 'red, blue'"],
    ["a search, which may or may not ignore case", "SEARCH('red', {Name})"],
    ["a search in several values", "SEARCH('red', {Tags})"],
    ["a lookup that may not be text", "FIND('x', {Towns})"],
    ["what may be two values", "FIND('a;b', ARRAYJOIN({Tags}, ';'))"],
    ["the end of one value and the start of another", "FIND('a-', ARRAYJOIN({Tags}, '-+-'))"],
    ["what it searches for is in the record", "FIND({Name}, 'Ada')"],
    ["the position in a text", "FIND('a', {Name}) > 2"],
    ["a start", "FIND('a', {Name}, 2)"],
    ["dates as text", "{Born} >= '2026-01-01'"],
    ["a time of which SQL has only the date", "IS_AFTER({Day}, '2026-01-01')"],
    ["what repeats its parts exponentially", `${switches(40)} = 'b'`],
    ["a date in another format", "IS_AFTER({Born}, '1/2/2026')"],
    ["a day that is none", "IS_AFTER({Born}, '2026-02-30')"],
    ["weeks", "IS_SAME({Born}, TODAY(), 'week')"],
    ["a blank date that fails", "IS_AFTER(DATEADD({Born}, 1, 'day'), TODAY())"],
    ["an error that would decide", "OR({Done}, DATETIME_DIFF({Born}, TODAY()) > 1)"],
    [
      "an error that would decide, in a text",
      "OR({Done}, LEFT(DATETIME_FORMAT({Born}, 'MM-DD') & 'x', 2) = '02')",
    ],
    ["a date's format that is not known", "DATETIME_FORMAT({Born}, 'MMM D') = 'Feb 3'"],
    ["a date's default format", "DATETIME_FORMAT({Born}) = '1990-02-03'"],
    ["text that may become too long", "SUBSTITUTE({Name}, 'a', 'aa') = 'x'"],
    ["one of several occurrences", "SUBSTITUTE({Name}, 'a', 'b', 1) = 'x'"],
    ["a format that the text does not have", "IS_AFTER({Born}, DATETIME_PARSE('03.02.1990', 'DD.MM.YYYY'))"],
    ["another first day of the week", "WEEKDAY({Born}, 'Monday') = 0"],
    ["an error that would decide, in an AND", "NOT(AND({Done}, DATETIME_DIFF({Born}, TODAY()) > 1))"],
    ["an error that would decide, in a condition", "IF(AND({Done}, YEAR({Born}) > 1), {Done}, {Name})"],
    ["an error that would decide, in a comparison", "AND({Done}, MONTH({Born}) = 1) = 0"],
    ["numbers as text", "{Age} & '' = '5'"],
    ["too many arguments", "NOT({Done}, {Done})"],
    ["what is in every object", "CONSTRUCTOR({Done})"],
    ["rich text", "{Bio} = 'x'"],
    ["types that differ", "{Age} = '5'"],
    ["an unknown field", "{Nobody} = 'x'"],
    ["a function that is not here", "REGEX_MATCH({Name}, 'a')"],
    ["arithmetic", "{Age} + 1 > 5"],
    ["two comparisons", "{Age} > 1 > 0"],
    ["an escape that is not known", "{Name} = '\\n'"],
    ["an escape that a text may keep", "{Name} = '\\{'"],
    ["an escape that a name may keep", "{Odd \\'name\\'} = 'x'"],
    ["a number without digits before its point", "{Age} = .5"],
    ["a bare name of other letters", "Größe = 'x'"],
    ["a function whose name folds to ours", "ıF({Done}, 1, 0)"],
    ["a chain of comparisons", "{Age} = {Age} = 1"],
    ["arithmetic", "{Age} + 1 > 2"],
    ["what is no formula", "{Name = 'x'"],
    ["what goes on", "{Name} = 'x')"],
    ["nothing", ""],
  ])("%s: %s", (_why, formula) => expect(translated(formula)).toBeUndefined());

  test.each([
    ["text functions", `${"LEFT(".repeat(1000)}Name${", 9)".repeat(1000)} = 'x'`],
    ["joined texts", `${"LOWER(Name & ".repeat(500)}'x'${")".repeat(500)} = 'x'`],
    ["choices on both sides", "IF({Done}, Name, 'x') = IF({Done}, 'y', Name)"],
  ])("what SQL would have to repeat: %s", (_what, formula) => {
    expect(translated(formula)).toBeUndefined();
  });

  test("extreme nesting", () => {
    expect(translated(`${"NOT(".repeat(2400)}{Done}${")".repeat(2400)}`)).toBeUndefined();
  });
});

test("any input ends without an error", () => {
  const pieces = fc.constantFrom(
    ..."{Name} {Age} {Done} 'x' \"y\" 5 = != < >= ( ) , AND( OR( NOT( BLANK() TRUE() - \\ { } RECORD_ID() & FIND( LOWER( IF( {Born} IS_AFTER( TODAY()".split(
      " ",
    ),
  );
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.array(pieces).map((all) => all.join(" ")),
      ),
      (formula) => {
        translated(formula);
      },
    ),
  );
});

test("only two letters beyond ASCII have ASCII in their lower case", () => {
  const found: string[] = [];
  for (let code = 128; code <= 0x10ffff; code++) {
    const letter = String.fromCodePoint(code);
    if (/[ -~]/.test(letter.toLowerCase())) found.push(letter);
  }
  expect(found).toEqual(["\u0130", "\u212a"]);
});

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
].map(([fieldId, sourceName, type, columnType]) => {
  return {
    fieldId,
    sourceName,
    name: fieldId!.toLowerCase(),
    type,
    columnType,
    sourceType: type,
  } as ColumnSpec;
});

const translated = (formula: string) => translateFormula(formula, columns);
const name = (equals: string) => ({ kind: "text", column: "fldname", equals });

describe("translated", () => {
  test.each<[string, unknown]>([
    ["{Name} = 'Ada'", name("Ada")],
    ['Name="Ada"', name("Ada")],
    ["{fldName}='it\\'s'", name("it's")],
    ["'Ada' = {Name}", name("Ada")],
    ["{Name} != ''", { kind: "not", of: name("") }],
    ["{Name} = BLANK()", name("")],
    ["{Name}", { kind: "not", of: name("") }],
    ["{Done}", { kind: "checked", column: "flddone" }],
    ["{Done} = 0", { kind: "not", of: { kind: "checked", column: "flddone" } }],
    ["NOT({Done})", { kind: "not", of: { kind: "checked", column: "flddone" } }],
    ["Done = TRUE()", { kind: "checked", column: "flddone" }],
    ["{Age} > 30", { kind: "number", column: "fldage", operator: ">", value: 30 }],
    ["30 < {Age}", { kind: "number", column: "fldage", operator: ">", value: 30 }],
    ["{Age} < -1.5", { kind: "number", column: "fldage", operator: "<", value: -1.5 }],
    ["RECORD_ID() = 'rec1'", { kind: "id", equals: "rec1" }],
    ["AND({Name}='a', OR({Done}, Age>1))", expect.objectContaining({ kind: "and" })],
    ["1", { kind: "constant", value: true }],
  ])("%s", (formula, condition) => expect(translated(formula)).toEqual(condition));
});

describe("left to the source", () => {
  test.each([
    ["a blank may count as 0", "{Age} = 0"],
    ["a blank may count as 0", "{Age} < 5"],
    ["a blank may count as 0", "{Age} >= 0"],
    ["a blank may count as 0", "{Age} != 0"],
    ["names fold in a way that is not known", "{name} = 'Ada'"],
    ["text may sort otherwise", "{Name} > 'A'"],
    ["several values", "{Tags} = 'red'"],
    ["rich text", "{Bio} = 'x'"],
    ["types that differ", "{Age} = '5'"],
    ["an unknown field", "{Nobody} = 'x'"],
    ["a function that is not here", "FIND('a', {Name})"],
    ["arithmetic", "{Age} + 1 > 5"],
    ["two comparisons", "{Age} > 1 > 0"],
    ["an escape that is not known", "{Name} = '\\n'"],
    ["what is no formula", "{Name = 'x'"],
    ["what goes on", "{Name} = 'x')"],
    ["nothing", ""],
  ])("%s: %s", (_why, formula) => expect(translated(formula)).toBeUndefined());

  test("extreme nesting", () => {
    expect(translated(`${"NOT(".repeat(2400)}{Done}${")".repeat(2400)}`)).toBeUndefined();
  });
});

test("any input ends without an error", () => {
  const pieces = fc.constantFrom(
    ..."{Name} {Age} {Done} 'x' \"y\" 5 = != < >= ( ) , AND( OR( NOT( BLANK() TRUE() - \\ { } RECORD_ID()".split(
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

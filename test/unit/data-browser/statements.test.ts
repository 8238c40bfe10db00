/** The statements of the data browser, for any names and any values: always one SELECT of a fixed form. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { csvCell, csvLine } from "../../../core/csv";
import { OPERATORS_OF, readState, writeState } from "../../../core/data-browser";
import type { BrowsedColumn, BrowsedTable, ColumnKind } from "../../../core/data-browser/columns";
import { type Filter, filterProblem } from "../../../core/data-browser/filters";
import {
  type BrowseStatement,
  countStatement,
  linkedStatement,
  pageStatements,
  recordStatement,
} from "../../../core/data-browser/statements";
import { checkState } from "../../../core/data-browser/view-state";
import { anyText, fuzz } from "../../support/fuzz";

const KINDS: ColumnKind[] = ["text", "list", "number", "checkbox", "date", "time"];
const VALUES: Partial<Record<ColumnKind, fc.Arbitrary<string>>> = {
  number: fc.constantFrom("1", "-0.5", "12345678901234567890.5"),
  date: fc.constantFrom("2026-11-22", "0001-01-01"),
  time: fc.constantFrom("2026-11-22", "2026-11-22 14:30", "2026-11-22T14:30:05.123Z"),
};

/** What Postgres stores as a name: some text without NUL. */
const anyName = anyText.map((text) => text.replaceAll("\0", "").toWellFormed() || "x");

interface Case {
  names: string[];
  kinds: ColumnKind[];
  filters: { column: number; operator: number; value: string }[];
  sort: { column: number; isDescending: boolean };
  search: string;
  cursor: { id: string; isBefore: boolean; value?: string | null } | undefined;
}

const anyCase: fc.Arbitrary<Case> = fc
  .array(fc.constantFrom(...KINDS), { minLength: 1, maxLength: 5 })
  .chain((kinds) => {
    const column = fc.nat(kinds.length - 1);
    return fc.record({
      names: fc.array(anyName, { minLength: kinds.length + 3, maxLength: kinds.length + 3 }),
      kinds: fc.constant(kinds),
      filters: fc.array(
        column.chain((at) =>
          fc.record({ column: fc.constant(at), operator: fc.nat(20), value: VALUES[kinds[at]!] ?? anyText }),
        ),
        { maxLength: 3 },
      ),
      sort: fc.record({ column, isDescending: fc.boolean() }),
      search: fc.oneof(fc.constant(""), anyText),
      cursor: fc.option(
        fc.record(
          { id: anyText, isBefore: fc.boolean(), value: fc.option(anyText) },
          { requiredKeys: ["id", "isBefore"] },
        ),
        { nil: undefined },
      ),
    });
  });

/** All statements that the browser makes for a case. */
function statementsOf({ names, kinds, filters, sort, search, cursor }: Case): BrowseStatement[] {
  const [schema, name, linked] = names.slice(-3) as [string, string, string];
  const columns = kinds.map(
    (kind, index): BrowsedColumn => ({
      // A name occurs once in a table.
      name: `${index}${names[index]!}`,
      sourceName: names[index]!,
      fieldId: `fld${index}`,
      kind,
      shownAs: undefined,
      display: undefined,
      isIndexed: false,
      files: kind === "list" && index % 2 === 1 ? `files ${index}${names[index]!}` : undefined,
      link:
        kind === "list" && index % 2 === 0
          ? { tableId: "tbl", table: linked, primary: names[0]! }
          : undefined,
    }),
  );
  const table: BrowsedTable = {
    schema,
    name,
    sourceName: name,
    tableId: "tbl",
    columns,
    primary: columns[0]!,
  };
  const used = filters.map(({ column, operator, value }): Filter => {
    const { kind, name: named } = columns[column]!;
    return { column: named, operator: OPERATORS_OF[kind][operator % OPERATORS_OF[kind].length]!, value };
  });
  const selection = {
    filters: used,
    sort: { column: columns[sort.column]!.name, isDescending: sort.isDescending },
    search,
  };
  const page = (["grid", "whole"] as const).flatMap((form) =>
    pageStatements(table, columns, selection, { cursor, limit: 101, form }).map((make) => make(101)),
  );
  return [
    ...page,
    countStatement(table, selection),
    recordStatement(table, names[0]!),
    linkedStatement(schema, { table: linked, primary: names[0]! }, names),
  ];
}

/** The text without what is between the quotes of a name. */
const formOf = ({ text }: BrowseStatement) => text.replaceAll(/"(?:[^"]|"")*"/g, '""');

fuzz(
  "no name and no value changes the form of a statement",
  300,
  fc.property(anyCase, (given) => {
    const plain: Case = {
      ...given,
      names: given.names.map((_, index) => `plain_${index}`),
      filters: given.filters.map((filter) => ({
        ...filter,
        value: VALUES[given.kinds[filter.column]!] ? filter.value : "plain",
      })),
      search: given.search && "plain",
      cursor: given.cursor && {
        ...given.cursor,
        id: "recPlain",
        ...(typeof given.cursor.value === "string" ? { value: "plain" } : {}),
      },
    };
    const made = statementsOf(given);
    expect(made.map(formOf)).toEqual(statementsOf(plain).map(formOf));
    for (const statement of made) {
      const form = formOf(statement);
      expect(form).toMatch(/^select /);
      expect(form).not.toMatch(/;|--|\/\*/);
      // Every placeholder has its value, and every value is used.
      const placeholders = new Set([...form.matchAll(/\$(\d+)/g)].map(([, number]) => Number(number)));
      expect([...placeholders].sort((a, b) => a - b)).toEqual(statement.values.map((_, index) => index + 1));
      for (const value of statement.values) expect(value).not.toContain("\0");
    }
  }),
);

const COLUMN = { sourceName: "Price", kind: "number" } as BrowsedColumn;
test("a filter's value is checked before it reaches the database, and the reason says what fits", () => {
  const problem = (kind: ColumnKind, operator: Filter["operator"], value: string) =>
    filterProblem({ column: "x", operator, value }, { ...COLUMN, kind });
  expect(problem("number", "gt", "-12.5")).toBeUndefined();
  expect(problem("number", "gt", "1e999")).toContain("is not a number");
  expect(problem("number", "gt", "")).toContain("Enter a value");
  expect(problem("number", "empty", "")).toBeUndefined();
  expect(problem("date", "on", "2026-02-29")).toContain("is not a date");
  expect(problem("date", "on", "2028-02-29")).toBeUndefined();
  expect(problem("date", "on", "0000-01-01")).toContain("is not a date");
  expect(problem("time", "after", "2026-02-28T23:59Z")).toBeUndefined();
  expect(problem("time", "after", "2026-02-28 24:00")).toContain("is not a date");
  expect(problem("checkbox", "contains", "x")).toContain("Choose one of: is checked, is not checked");
  expect(problem("text", "contains", "x".repeat(501))).toContain("longer than 500");
});

fuzz(
  "any URL is read, and the state that was read is written and read again unchanged",
  200,
  fc.property(
    fc.array(
      fc.tuple(fc.constantFrom("f", "o", "v", "q", "sort", "dir", "col", "after", "before", "n"), anyText),
    ),
    (pairs) => {
      const state = readState(new URLSearchParams(pairs));
      expect(readState(new URLSearchParams(writeState(state)))).toEqual(state);
      const columns: BrowsedColumn[] = KINDS.map((kind) => ({ ...COLUMN, kind, name: kind }));
      const table = { columns, primary: columns[0]! } as BrowsedTable;
      const checked = checkState(state, table, undefined);
      expect(columns.map(({ name }) => name)).toContain(
        checked.sort.column === "id" ? "text" : checked.sort.column,
      );
      for (const { column } of checked.filters) expect(KINDS).toContain(column);
    },
  ),
);

fuzz(
  "a text in CSV is no formula, and can be read back",
  200,
  fc.property(fc.array(anyText, { minLength: 1, maxLength: 4 }), (texts) => {
    const cells = texts.map((text) => csvCell(text, "text"));
    for (const [index, cell] of cells.entries()) {
      expect(cell).not.toMatch(/^[=+\-@\t\r\n]/);
      expect([texts[index], `'${texts[index]}`]).toContain(cell);
    }
    expect(parseLine(csvLine(cells))).toEqual(cells);
  }),
);

test("numbers, dates and check marks in CSV stay what they are", () => {
  expect(csvCell("-12.50", "number")).toBe("-12.50");
  expect(csvCell(true, "checkbox")).toBe("true");
  expect(csvCell(null, "text")).toBe("");
  expect(csvCell(["=x", "y"], "list")).toBe("'=x, y");
});

/** A line of RFC 4180. */
function parseLine(line: string): string[] {
  const cells: string[] = [];
  let rest = line.slice(0, -2);
  for (;;) {
    const [whole, quoted, plain] = /^(?:"((?:[^"]|"")*)"|([^",\r\n]*))(?=,|$)/.exec(rest)!;
    cells.push(quoted?.replaceAll('""', '"') ?? plain!);
    rest = rest.slice(whole.length);
    if (rest === "") return cells;
    rest = rest.slice(1);
  }
}

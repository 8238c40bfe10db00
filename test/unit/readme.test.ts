import { expect, test } from "vitest";
import { type ErrorCode, errorCodes } from "../../core/errors";
import { causeAndRemedy, pagesWithTables, withTables } from "../support/readme-tables";

test.for(Object.entries(pagesWithTables))(
  "the tables of %s are up to date (`bun run readme` writes them)",
  ([page, tables]) => {
    const { before, after } = withTables(page);
    for (const table of tables) expect(before).toContain(`<!-- table:${table} -->`);
    expect(before).toBe(after);
  },
);

test("every error has a cause and a remedy", () => {
  const without = (Object.keys(errorCodes) as ErrorCode[]).filter((code) => causeAndRemedy(code)[1] === "");
  expect(without).toEqual([]);
});

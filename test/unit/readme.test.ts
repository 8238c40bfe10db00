import { expect, test } from "vitest";
import { pagesWithTables, withTables } from "../support/readme-tables";

test.for(Object.entries(pagesWithTables))(
  "the tables of %s are up to date (`bun run readme` writes them)",
  ([page, tables]) => {
    const { before, after } = withTables(page);
    for (const table of tables) expect(before).toContain(`<!-- table:${table} -->`);
    expect(before).toBe(after);
  },
);

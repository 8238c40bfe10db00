import { expect, test } from "vitest";
import { readmeWithTables } from "../support/readme-tables";

test("the README's tables are as the code has them (`bun run readme` writes them)", () => {
  const { before, after } = readmeWithTables();
  expect(before).toContain("<!-- table:types -->");
  expect(before).toContain("<!-- table:configuration -->");
  expect(before).toBe(after);
});

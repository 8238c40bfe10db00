import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { repoRoot } from "../support/source-files";

test("no cell of docs/compatibility.md fails (`bun run matrix` writes it)", () => {
  const rows = readFileSync(join(repoRoot, "docs/compatibility.md"), "utf8")
    .split("\n")
    .filter((line) => line.startsWith("|"));
  expect(rows.length).toBeGreaterThan(10);
  expect(rows.filter((row) => row.includes("**fails**"))).toEqual([]);
});

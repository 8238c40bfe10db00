import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { repoRoot } from "../support/source-files";

test("SQL that processes keep is ASCII: one other character doubles the memory of a text", () => {
  const all = [...new Bun.Glob("sql/**/*.sql").scanSync({ cwd: repoRoot })];
  const files = all.filter((file) => !file.startsWith("sql/control/migrations/"));
  expect(files.length).toBeGreaterThan(20);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the range of ASCII begins with one
  const others = files.filter((file) => /[^\u0000-\u007f]/.test(readFileSync(join(repoRoot, file), "utf8")));
  expect(others).toEqual([]);
});

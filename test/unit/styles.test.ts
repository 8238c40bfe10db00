/** All stylesheets are one file for the browser, so a class must not mean two things. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { repoRoot } from "../support/source-files";

const FOLDER = join(repoRoot, "apps/console/assets/style");
/** Classes that two files style on purpose: the same thing, or an element that the other's properties do not affect. */
const SHARED = ["tabs", "bar"];

test("a class has its own rule in one stylesheet only", () => {
  const files = new Map<string, string[]>();
  for (const file of readdirSync(FOLDER)) {
    const text = readFileSync(join(FOLDER, file), "utf8");
    const classes = new Set([...text.matchAll(/^\.([\w-]+)(?: \{|,$)/gm)].map(([, name]) => name!));
    for (const name of classes) files.set(name, [...(files.get(name) ?? []), file]);
  }
  expect(files.size).toBeGreaterThan(100);
  expect([...files].filter(([name, in_]) => in_.length > 1 && !SHARED.includes(name))).toEqual([]);
});

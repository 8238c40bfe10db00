/** Holds the patches for upstream: they apply to the released driver, and with `patches/kept.diff` they are our patch. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { repoRoot } from "../support/source-files";
import {
  appliedPatches,
  driverCopy,
  readUpstreamPatch,
  testsOf,
  upstreamPatches,
} from "../support/upstream-patches";

/** What a patch may change: nothing that upstream's build makes of it. */
const SOURCES = /^(?:src\/\w+\.js|types\/index\.d\.ts|README\.md|tests\/index\.js)$/;

test("each patch applies alone to the released driver", () => {
  using driver = driverCopy("released");
  const released = driver.sources();
  for (const name of upstreamPatches) {
    driver.apply(name, "--check");
    driver.apply(name);
    expect(driver.sources(), name).not.toEqual(released);
    driver.apply(name, "-R");
    expect(driver.sources(), name).toEqual(released);
  }
});

test("all patches apply together, and those of ours with what is kept are our patch", () => {
  using all = driverCopy("released");
  all.applyAll(upstreamPatches);
  using driver = driverCopy("released");
  using installed = driverCopy("installed");
  driver.applyAll(appliedPatches);
  driver.applyKept();
  // After a change of our patch, `bun test/support/upstream-patches.ts` writes what is kept.
  expect(driver.sources()).toEqual(installed.sources());
});

test("each patch has a subject, a reason, a test, no author, and changes only what upstream writes by hand", () => {
  expect(upstreamPatches.length).toBeGreaterThan(0);
  for (const [index, name] of upstreamPatches.entries()) {
    expect(name).toMatch(new RegExp(`^${String(index + 1).padStart(4, "0")}-[a-z-]+\\.patch$`));
    const text = readUpstreamPatch(name);
    const [message = ""] = text.split("\n---\n");
    expect(message, name).toMatch(/^From 0{40} .*\nSubject: \[PATCH\] .+\n(?: .+\n)*\n.{40}/);
    expect(message, name).not.toMatch(/^(?:From|Date|Signed-off-by|Co-authored-by):/im);
    expect(testsOf(name), name).toMatch(/^t\('.+', (?:\{.*\}, )?async\(\) => \{$/m);
    const changed = Array.from(text.matchAll(/^diff --git a\/(\S+) /gm), ([, path]) => path!);
    expect(
      changed.filter((path) => !SOURCES.test(path)),
      name,
    ).toEqual([]);
  }
});

test("the page of the patches lists each of them", () => {
  const page = readFileSync(join(repoRoot, "patches/README.md"), "utf8");
  expect(Array.from(page.matchAll(/^\| `(\d{4}-[\w-]+\.patch)` \|/gm), ([, name]) => name)).toEqual(
    upstreamPatches,
  );
});

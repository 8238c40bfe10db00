/** W1: every loop that may wait or try again without end is listed, with what ends it and where it shows. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { findWaits } from "../support/find-waits";
import { repoFiles, repoRoot } from "../support/source-files";
import { waits } from "../support/waits";

test("W1: every loop without an end of its own is listed, and the list has no other", () => {
  const files = ["core", "apps"]
    .flatMap((folder) => repoFiles(folder))
    .filter((path) => /\.tsx?$/.test(path));
  const found = files.flatMap((path) =>
    findWaits(path, readFileSync(join(repoRoot, path), "utf8")).map((name) => `${path} ${name}`),
  );
  const listed = waits.map(({ at }) => at);
  expect([...new Set(found)].toSorted(), "list it in test/support/waits.ts").toEqual(listed.toSorted());
  for (const { at, end, report } of waits) expect(`${end}${report}`.length, at).toBeGreaterThan(10);
});

test.each([
  ["for (;;) {}", 1],
  ["for (let tries = 1; ; tries++) await work();", 1],
  ["for (let tries = 1; tries < 9; tries++) await work();", 0],
  ["while (true) {}", 1],
  ["while (isBusy()) await work();", 1],
  ["do { await work(); } while (isBusy());", 1],
  ["while (at < end) at++;", 0],
  ["while (at < end) { at++; later(async () => { await work(); }); }", 0],
  ["const later = () => { setTimeout(() => later(), 9); };", 1],
  ["class A { #poll() { setTimeout(() => this.#poll(), 9); } }", 1],
  ["function once() { setTimeout(() => over(), 9); }", 0],
  ["setInterval(look, 9);", 1],
])("findWaits sees %s", (code, count) => {
  expect(findWaits("a.ts", `async function f() { ${code} }`)).toHaveLength(count);
});

/** Texts that are cut: never inside of a character, in any place. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { cutText } from "../../core/cut-text";
import { repoFiles, repoRoot } from "../support/source-files";

test("a text that is cut is its beginning, by whole characters", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), fc.nat(20), (text, most) => {
      const cut = cutText(text, most);
      expect([text.startsWith(cut), cut.isWellFormed(), cut.length <= most]).toEqual([true, true, true]);
      expect(cut.length).toBeGreaterThanOrEqual(Math.min(text.length, most) - 1);
    }),
  );
  expect([0, 1, 2, 3].map((most) => cutText("a🌳b", most))).toEqual(["", "a", "a", "a🌳"]);
});

test("no other code cuts a text that it shows", () => {
  const found = repoFiles()
    .filter((path) => /^(apps|core|views)\/.*\.tsx?$/.test(path) && !path.startsWith("apps/sandbox/"))
    .filter((path) =>
      /\.slice\(0, [^()]*\)(\}…|\.toWellFormed)/.test(readFileSync(join(repoRoot, path), "utf8")),
    );
  expect(found).toEqual([]);
});

import { expect, test } from "vitest";
import { constantsIn } from "../support/source-size";

test("numbers that a module has chosen are counted, and nothing else", () => {
  const chosen = [
    "const TRIES = 3;",
    "export const WINDOW_MS = 2 * MINUTE_MS;",
    "const SHARE: number = 0.5;",
    "const LIMIT = 64 * 1024 ** 2;",
    "const few = 1_000;",
  ];
  const others = [
    "  const inside = 3;",
    "const NAME = OTHER;",
    'const TEXT = "3";',
    "const made = make(3);",
    "let count = 0;",
    "// const TRIES = 3;",
  ];
  expect(chosen.map(constantsIn)).toEqual(chosen.map(() => 1));
  expect(others.map(constantsIn)).toEqual(others.map(() => 0));
  expect(constantsIn([...chosen, ...others].join("\n"))).toBe(chosen.length);
});

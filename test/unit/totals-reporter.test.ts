/** The last lines of a test run. */
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import type { TestModule } from "vitest/node";
import { scratchFolder } from "../support/scratch";
import TotalsReporter from "../support/totals-reporter";

function moduleOf(name: string, tests: { name: string; state: string; retryCount?: number }[]): TestModule {
  const all = tests.map(({ name: fullName, state, retryCount = 0 }) => ({
    fullName,
    result: () => ({ state, note: "no Docker" }),
    diagnostic: () => ({ retryCount }),
  }));
  return {
    relativeModuleId: name,
    errors: () => [],
    children: { allTests: () => all },
  } as unknown as TestModule;
}

test("tests that needed a second try are named before the totals, which are the last line", () => {
  const folder = scratchFolder("totals");
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "totals");
  vi.stubEnv("TOTALS_FILE", file);
  const printed = vi.spyOn(console, "log").mockImplementation(() => {});
  onTestFinished(() => {
    vi.unstubAllEnvs();
    printed.mockRestore();
  });
  const modules = [
    moduleOf("test/a.test.ts", [
      { name: "is quick", state: "passed" },
      { name: "was late once", state: "passed", retryCount: 1 },
    ]),
    moduleOf("test/b.test.ts", [
      { name: "fails", state: "failed", retryCount: 1 },
      { name: "needs Docker", state: "skipped" },
    ]),
  ];
  new TotalsReporter().onTestRunEnd(modules, []);
  const lines = [
    "needed a second try, passed: test/a.test.ts > was late once",
    "needed a second try, failed: test/b.test.ts > fails",
    "2 passed, 1 failed, 1 skipped",
  ];
  expect(readFileSync(file, "utf8")).toBe(`${lines.join("\n")}\n`);
  expect(printed.mock.lastCall).toEqual([lines.join("\n")]);
});

/** The last lines of a test run. */
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import type { TestModule } from "vitest/node";
import { scratchFolder } from "../support/scratch";
import TotalsReporter from "../support/totals-reporter";

interface FakeTest {
  name: string;
  state: string;
  retryCount?: number;
  errors?: { message: string; stacks: { file: string; line: number }[] }[];
}

function moduleOf(name: string, tests: FakeTest[]): TestModule {
  const all = tests.map(({ name: fullName, state, retryCount = 0, errors }) => ({
    fullName,
    result: () => ({ state, note: "no Docker", errors }),
    diagnostic: () => ({ retryCount }),
  }));
  return {
    relativeModuleId: name,
    errors: () => [],
    children: { allTests: () => all },
  } as unknown as TestModule;
}

const plain = (message: string) => ({ message, stacks: [] });
const stacks = ["support/poll.ts", "a.test.ts"].map((file, index) => ({ file, line: 7 + index }));

test("tests that needed a second try are named with the reasons before the totals, which are the last line", () => {
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
      { name: "was late once", state: "passed", retryCount: 1, errors: [{ message: "not\n yet", stacks }] },
    ]),
    moduleOf("test/b.test.ts", [
      { name: "fails", state: "failed", retryCount: 1, errors: ["one", "two"].map(plain) },
      { name: "needs Docker", state: "skipped" },
    ]),
  ];
  new TotalsReporter().onTestRunEnd(modules, []);
  const lines = [
    "needed a second try, passed: test/a.test.ts > was late once: not yet (line 8)",
    "needed a second try, failed: test/b.test.ts > fails: one; two",
    "2 passed, 1 failed, 1 skipped",
  ];
  expect(readFileSync(file, "utf8")).toBe(`${lines.join("\n")}\n`);
  expect(printed.mock.lastCall).toEqual([lines.join("\n")]);
});

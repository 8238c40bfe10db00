/**
 * Prints the summary of a test run: why each skipped test was skipped, which tests failed or needed a second try and why,
 * and the totals in one line. If TOTALS_FILE is set, failures, second tries and totals are also written there, for
 * `.ci/run`; what an earlier run has written there is included.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import type { Reporter, SerializedError, TestCase, TestModule } from "vitest/node";

const MAX_REASON_LENGTH = 300;
const TOTALS = /^(\d+) passed, (\d+) failed, (\d+) skipped$/;

export default class TotalsReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly SerializedError[]): void {
    summarize(modules, errors.length);
  }
}

/**
 * Prints and writes the summary.
 *
 * @param modules those that have ended
 * @param errors number of errors outside of tests, which count as failures
 * @param notes further lines
 */
export function summarize(modules: readonly TestModule[], errors: number, notes: string[] = []): void {
  const before = earlierRun();
  const totals = {
    passed: before.passed,
    failed: before.failed + errors,
    skipped: before.skipped,
    pending: 0,
  };
  const lines = [...before.lines, ...notes];
  for (const module of modules) {
    // A file that cannot be loaded has no test that could fail.
    totals.failed += module.errors().length;
    for (const test of module.children.allTests()) {
      const result = test.result();
      totals[result.state]++;
      const name = `${module.relativeModuleId} > ${test.fullName}`;
      if (result.state === "skipped") console.log(`skipped: ${name}: ${result.note ?? "no reason"}`);
      const retries = test.diagnostic()?.retryCount ?? 0;
      if (retries > 0) lines.push(`needed a second try, ${result.state}: ${name}: ${reasonOf(result)}`);
      else if (result.state === "failed") lines.push(`failed: ${name}: ${reasonOf(result)}`);
    }
  }
  lines.push(`${totals.passed} passed, ${totals.failed + totals.pending} failed, ${totals.skipped} skipped`);
  const text = lines.join("\n");
  if (process.env.TOTALS_FILE) writeFileSync(process.env.TOTALS_FILE, `${text}\n`);
  console.log(text);
}

/** Returns what an earlier run has written to TOTALS_FILE. */
function earlierRun(): { lines: string[]; passed: number; failed: number; skipped: number } {
  const file = process.env.TOTALS_FILE;
  const lines = file && existsSync(file) ? readFileSync(file, "utf8").trimEnd().split("\n") : [];
  const [, passed, failed, skipped] = TOTALS.exec(lines.pop() ?? "") ?? [];
  return { lines, passed: Number(passed ?? 0), failed: Number(failed ?? 0), skipped: Number(skipped ?? 0) };
}

/** The errors of all tries, each with the test's own line that threw it. */
function reasonOf({ errors }: ReturnType<TestCase["result"]>): string {
  return (errors ?? [])
    .map(({ message, stacks }) => {
      const at = stacks?.find(({ file }) => file.endsWith(".test.ts"));
      return `${message.slice(0, MAX_REASON_LENGTH)}${at ? ` (line ${at.line})` : ""}`;
    })
    .join("; ")
    .replaceAll(/\s+/g, " ");
}

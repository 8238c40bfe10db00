/**
 * Prints the summary of a test run: why each skipped test was skipped, which tests failed or needed a second try and why,
 * and the totals in one line. If TOTALS_FILE is set, failures, second tries and totals are also written there, for
 * `.ci/run`.
 */
import { writeFileSync } from "node:fs";
import type { Reporter, SerializedError, TestCase, TestModule } from "vitest/node";

const MAX_REASON_LENGTH = 300;

export default class TotalsReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly SerializedError[]): void {
    const totals = { passed: 0, failed: errors.length, skipped: 0, pending: 0 };
    const lines: string[] = [];
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
    lines.push(
      `${totals.passed} passed, ${totals.failed + totals.pending} failed, ${totals.skipped} skipped`,
    );
    const text = lines.join("\n");
    if (process.env.TOTALS_FILE) writeFileSync(process.env.TOTALS_FILE, `${text}\n`);
    console.log(text);
  }
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

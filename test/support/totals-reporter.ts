/**
 * The last word of a test run: why each skipped test was skipped, and the totals in one line. Where TOTALS_FILE is
 * set, the line goes there too, for `.ci/run`.
 */
import { writeFileSync } from "node:fs";
import type { Reporter, SerializedError, TestModule } from "vitest/node";

export default class TotalsReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly SerializedError[]): void {
    const totals = { passed: 0, failed: errors.length, skipped: 0, pending: 0 };
    for (const module of modules) {
      // A file that cannot be loaded has no test to fail.
      totals.failed += module.errors().length;
      for (const test of module.children.allTests()) {
        const result = test.result();
        totals[result.state]++;
        if (result.state === "skipped") {
          console.log(
            `skipped: ${module.relativeModuleId} > ${test.fullName}: ${result.note ?? "no reason"}`,
          );
        }
      }
    }
    const line = `${totals.passed} passed, ${totals.failed + totals.pending} failed, ${totals.skipped} skipped`;
    if (process.env.TOTALS_FILE) writeFileSync(process.env.TOTALS_FILE, `${line}\n`);
    console.log(line);
  }
}

/**
 * Prints the summary of a test run: why each skipped test was skipped, which tests failed or needed a second try and why,
 * and the totals in one line. If TOTALS_FILE is set, failures, second tries and totals are also written there, for
 * `.ci/run`; what an earlier run has written there is included.
 *
 * If AGAIN_FILES is set, and all failures are of tests that may run again, the paths of the files with failures are written
 * to the file that it names, one per line, and these files are left out of the totals: `.ci/run` runs them once more, one
 * after the other. On a slow machine, a test that passes alone may time out next to others.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import type { Reporter, SerializedError, TestModule } from "vitest/node";
import { describeMachine } from "./machine-speed.ts";

const MAX_REASON_LENGTH = 300;
const TOTALS = /^(\d+) passed, (\d+) failed, (\d+) skipped$/;
/** The tag of tests without a second try. */
export const ONCE = "once";

export default class TotalsReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly SerializedError[]): void {
    summarize(modules, errors);
  }
}

/**
 * Prints and writes the summary.
 *
 * @param modules those that have ended
 * @param uncaught errors outside of tests, which count as failures
 * @param hung paths of files that have not ended, if the run has hung
 */
export function summarize(
  modules: readonly TestModule[],
  uncaught: readonly SerializedError[],
  hung?: string[],
): void {
  const before = earlierRun();
  const unfinished = hung ?? [];
  const failed = modules.filter((module) => module.state() === "failed");
  const again = uncaught.length === 0 && failed.every(mayRunAgain) ? process.env.AGAIN_FILES : undefined;
  const totals = {
    passed: before.passed,
    failed: before.failed + (again ? 0 : uncaught.length + unfinished.length),
    skipped: before.skipped,
    pending: 0,
  };
  const lines = [...before.lines, ...unfinished.map((path) => `did not end: ${path}`)];
  for (const module of modules) {
    const counts = !again || !failed.includes(module);
    const problem = counts ? "failed" : "needed a second try";
    // Errors of loading a file and of hooks have no test that could fail.
    for (const suite of [module, ...module.children.allSuites()]) {
      for (const error of suite.errors()) {
        if (counts) totals.failed++;
        lines.push(`${problem}: ${module.relativeModuleId}: ${reasonOf([error])}`);
      }
    }
    for (const test of module.children.allTests()) {
      const result = test.result();
      if (counts) totals[result.state]++;
      const name = `${module.relativeModuleId} > ${test.fullName}`;
      if (result.state === "skipped") console.log(`skipped: ${name}: ${result.note ?? "no reason"}`);
      if (result.state === "failed") lines.push(`${problem}: ${name}: ${reasonOf(result.errors)}`);
    }
  }
  for (const error of uncaught) lines.push(`failed outside of a test: ${reasonOf([error])}`);
  if (before.lines.length === 0) lines.push(describeMachine());
  lines.push(`${totals.passed} passed, ${totals.failed + totals.pending} failed, ${totals.skipped} skipped`);
  const text = lines.join("\n");
  if (process.env.TOTALS_FILE) writeFileSync(process.env.TOTALS_FILE, `${text}\n`);
  console.log(text);
  const paths = [...failed.map((module) => module.relativeModuleId), ...unfinished];
  // Without any, the run has passed, or has failed for a reason that a second one would not change.
  if (again && (hung || paths.length > 0)) writeFileSync(again, paths.map((path) => `${path}\n`).join(""));
}

/** Returns whether nothing but tests has failed in a file, and these may run again. */
function mayRunAgain(module: TestModule): boolean {
  const { children } = module;
  if ([module, ...children.allSuites()].some((suite) => suite.errors().length > 0)) return false;
  return [...children.allTests("failed")].every(({ tags }) => !tags.includes(ONCE));
}

/** Returns what an earlier run has written to TOTALS_FILE. */
function earlierRun(): { lines: string[]; passed: number; failed: number; skipped: number } {
  const file = process.env.TOTALS_FILE;
  const lines = file && existsSync(file) ? readFileSync(file, "utf8").trimEnd().split("\n") : [];
  const [, passed, failed, skipped] = TOTALS.exec(lines.pop() ?? "") ?? [];
  return { lines, passed: Number(passed ?? 0), failed: Number(failed ?? 0), skipped: Number(skipped ?? 0) };
}

interface Failure {
  message: string;
  stacks?: { file: string; line: number }[];
  /** For a property, what failed: its own message begins with the counterexample. */
  cause?: unknown;
}

/** The errors, each with the test's own line that threw it, and their causes. */
function reasonOf(errors: readonly Failure[]): string {
  return errors.map(describe).join("; ").replaceAll(/\s+/g, " ");
}

function describe({ message, stacks, cause }: Failure): string {
  const at = stacks?.find(({ file }) => file.endsWith(".test.ts"));
  const text = `${message.slice(0, MAX_REASON_LENGTH)}${at ? ` (line ${at.line})` : ""}`;
  return cause ? `${text}: ${describe(cause as Failure)}` : text;
}

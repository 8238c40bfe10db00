/** How a test run ends, and what `.ci/run` runs once more. */
import { existsSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { scratchFolder } from "../support/scratch";
import { repoRoot } from "../support/source-files";

/** Longer than vitest needs to start on a busy machine. */
const HUNG_SECONDS = 10;
const LIMIT_MS = 120_000;

const config = `
export default {
  test: {
    globals: true,
    pool: "threads",
    maxWorkers: 2,
    tags: [{ name: "once" }],
    reporters: [
      "${repoRoot}/test/support/totals-reporter.ts",
      ["${repoRoot}/test/support/hang-watchdog.ts", { minutes: ${HUNG_SECONDS / 60} }],
    ],
  },
};`;

/**
 * Runs test files in a folder of their own, after a run that left totals.
 *
 * @param files text by name
 * @param options.isLast files are not to be run once more
 * @returns what was printed, the signal that ended the run, the lines of the totals, and the files to run once more
 */
async function runTests(files: Record<string, string>, { isLast = false } = {}) {
  const folder = scratchFolder("test-runs");
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const [name, text] of Object.entries({ "vitest.config.ts": config, ...files }))
    writeFileSync(join(folder, name), text);
  symlinkSync(join(repoRoot, "node_modules"), join(folder, "node_modules"));
  const [totals, again] = [join(folder, "totals"), join(folder, "again")];
  writeFileSync(totals, "needed a second try: earlier: reason\n2 passed, 0 failed, 0 skipped\n");
  const child = Bun.spawn([process.execPath, "--bun", "vitest", "run"], {
    cwd: folder,
    env: { ...process.env, TOTALS_FILE: totals, AGAIN_FILES: isLast ? undefined : again },
    stdout: "pipe",
    stderr: "pipe",
  });
  const [output, errors] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  await child.exited;
  return {
    output,
    errors,
    signal: child.signalCode,
    totals: readFileSync(totals, "utf8").trim().split("\n"),
    again: existsSync(again) ? readFileSync(again, "utf8").trim().split("\n") : undefined,
  };
}

const passes = "test('passes', () => {});";
const fails = `${passes} test('fails', () => { throw new Error('late'); });`;
const hangs = `${passes} test('hangs', () => { Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0); }, 100);`;

test(
  "files that have failed are to be run once more, and do not count",
  async () => {
    const run = await runTests({
      "passes.test.ts": passes,
      "fails.test.ts": fails,
      "throws.test.ts": "test('throws', () => { throw new Error('late'); });",
    });
    expect(run.again?.toSorted()).toEqual(["fails.test.ts", "throws.test.ts"]);
    expect(run.totals.toSorted()).toEqual(
      [
        "needed a second try: earlier: reason",
        "needed a second try: fails.test.ts > fails: late (line 1)",
        "needed a second try: throws.test.ts > throws: late (line 1)",
        "3 passed, 0 failed, 0 skipped",
      ].toSorted(),
    );
  },
  LIMIT_MS,
);

test(
  "a run with a blocked thread ends, and its file is to be run once more, too",
  async () => {
    const run = await runTests({ "passes.test.ts": passes, "fails.test.ts": fails, "hangs.test.ts": hangs });
    expect(run.signal).toBe("SIGKILL");
    expect(run.errors).toContain("the test run has hung");
    expect(run.again?.toSorted()).toEqual(["fails.test.ts", "hangs.test.ts"]);
    expect(run.totals).toContain("did not end: hangs.test.ts");
    expect(run.totals.at(-1)).toBe("3 passed, 0 failed, 0 skipped");
  },
  LIMIT_MS,
);

test.for([
  {
    name: "a test without a second try fails",
    text: "test('rare', { tags: 'once' }, () => { expect(1).toBe(2); });",
  },
  {
    name: "a hook fails",
    text: "describe('all', () => { beforeAll(() => { throw new Error('late'); }); test('is skipped', () => {}); });",
  },
  { name: "a file cannot be loaded", text: "throw new Error('late');" },
  {
    name: "an error is not caught",
    text: "test('loose', () => { void Promise.reject(new Error('loose')); });",
    line: "failed outside of a test: loose",
  },
])(
  "if $name, the run has failed, and nothing is run once more",
  { timeout: LIMIT_MS },
  async ({ text, line }) => {
    const run = await runTests({ "fails.test.ts": fails, "last.test.ts": text });
    expect(run.again).toBeUndefined();
    expect(run.totals.at(-1)).toMatch(/^\d passed, 2 failed, \d skipped$/);
    if (line) expect(run.totals).toContain(line);
  },
);

test(
  "what fails in the last run counts, and the reasons are named before the totals, which are the last line",
  async () => {
    const skips = "test('skips', ({ skip }) => { skip('no Docker'); });";
    const throws = "test('throws', () => { throw new Error('not\\n yet'); });";
    const run = await runTests({ "a.test.ts": `${skips} ${fails}`, "b.test.ts": throws }, { isLast: true });
    expect(run.totals.toSorted()).toEqual(
      [
        "needed a second try: earlier: reason",
        "failed: a.test.ts > fails: late (line 1)",
        "failed: b.test.ts > throws: not yet (line 1)",
        "3 passed, 2 failed, 1 skipped",
      ].toSorted(),
    );
    expect(run.output).toContain("skipped: a.test.ts > skips: no Docker\n");
    expect(run.output.trimEnd().split("\n").at(-1)).toBe(run.totals.at(-1));
  },
  LIMIT_MS,
);

test(
  "a run in which nothing has failed leaves nothing to run once more, whatever its exit code",
  async () => {
    const run = await runTests({ "passes.test.ts": passes });
    expect(run.again).toBeUndefined();
    expect(run.totals.at(-1)).toBe("3 passed, 0 failed, 0 skipped");
  },
  LIMIT_MS,
);

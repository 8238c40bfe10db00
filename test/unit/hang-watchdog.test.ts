/** A test run in which the thread of a file is blocked. */
import { existsSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { scratchFolder } from "../support/scratch";
import { repoRoot } from "../support/source-files";

/** Longer than vitest needs to start on a busy machine. */
const HUNG_SECONDS = 10;

const config = `
export default {
  test: {
    globals: true,
    pool: "threads",
    maxWorkers: 2,
    reporters: [["${repoRoot}/test/support/hang-watchdog.ts", { minutes: ${HUNG_SECONDS / 60} }]],
  },
};`;
const FILES = {
  "vitest.config.ts": config,
  "ends.test.ts": "test('ends', () => { void Promise.reject(new Error('unhandled')); });",
  "hangs.test.ts": `
test('ends, too', () => {});
test('hangs', () => { Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0); }, 100);`,
};

test("a run with a blocked thread ends, with the totals and the unhandled errors of the other files", async () => {
  const folder = scratchFolder("hang-watchdog");
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const [name, text] of Object.entries(FILES)) writeFileSync(join(folder, name), text);
  symlinkSync(join(repoRoot, "node_modules"), join(folder, "node_modules"));
  const [totals, hung] = [join(folder, "totals"), join(folder, "hung")];
  writeFileSync(totals, "failed: earlier: reason\n2 passed, 1 failed, 0 skipped\n");
  const child = Bun.spawn([process.execPath, "--bun", "vitest", "run"], {
    cwd: folder,
    env: { ...process.env, TOTALS_FILE: totals, HUNG_FILES: hung },
    stdout: "ignore",
    stderr: "pipe",
  });
  const said = await new Response(child.stderr).text();
  await child.exited;
  expect(child.signalCode).toBe("SIGKILL");
  expect(said).toContain("the test run has hung");
  expect(existsSync(hung) && readFileSync(hung, "utf8")).toBe("hangs.test.ts\n");
  expect(readFileSync(totals, "utf8").trim().split("\n")).toEqual([
    "failed: earlier: reason",
    "did not end: hangs.test.ts",
    "3 passed, 2 failed, 0 skipped",
  ]);
}, 120_000);

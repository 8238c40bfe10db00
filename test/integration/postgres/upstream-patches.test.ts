/** The tests of `patches/upstream/`, in the style of postgres.js: each fails without its patch and passes with it. */
import { expect, inject, test } from "vitest";
import { startProgram } from "../../support/program";
import { appliedPatches, type DriverCopy, driverCopy, upstreamPatches } from "../../support/upstream-patches";

/** The time of one test on a busy machine. */
const LIMIT_MS = 30_000;
/** Enough for a test that must not pass: it may fail for any reason. */
const SHORT_LIMIT_MS = 1_500;

/** Runs the tests of these patches with a copy of the driver, up to the first failure. */
async function result(driver: DriverCopy, names: string[], limitMs = LIMIT_MS): Promise<string> {
  const words = [inject("postgresUrl"), String(limitMs)];
  await using program = startProgram(driver.addTests(names), words);
  await program.says("\n", 2 * LIMIT_MS);
  return program.output().trim();
}

test.each(upstreamPatches)(
  "%s passes its test, and the released driver does not",
  { timeout: 90_000 },
  async (name) => {
    using released = driverCopy("released");
    using fixed = driverCopy("released");
    fixed.apply(name);
    const [before, after] = await Promise.all([
      result(released, [name], SHORT_LIMIT_MS),
      result(fixed, [name]),
    ]);
    expect(after).toBe("passed");
    expect(before).not.toBe("passed");
  },
);

test("all patches together pass all tests, and our patch passes those of its own", {
  timeout: 90_000,
}, async () => {
  using together = driverCopy("released");
  using installed = driverCopy("installed");
  together.applyAll(upstreamPatches);
  const results = await Promise.all([result(together, upstreamPatches), result(installed, appliedPatches)]);
  expect(results).toEqual(["passed", "passed"]);
});

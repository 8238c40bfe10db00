import { defineConfig } from "vitest/config";
import LongestFirst from "./test/support/sequencer.ts";

export default defineConfig({
  test: {
    include: ["test/{unit,integration,browser,chaos,security,matrix}/**/*.test.ts"],
    globalSetup: ["test/support/global-setup.ts"],
    // The default pool communicates with its child processes in a way that Bun does not support.
    pool: "threads",
    // Four workers keep two cores busy: most tests mostly wait, for example for a lease.
    maxWorkers: 4,
    sequence: { sequencer: LongestFirst },
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // Many tests share two cores with Postgres and Chromium: a test that only a stalled machine fails gets a second try.
    retry: process.env.CI ? 1 : 0,
    reporters: ["default", "./test/support/totals-reporter.ts"],
  },
});

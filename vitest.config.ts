import { defineConfig } from "vitest/config";
import LongestFirst from "./test/support/sequencer.ts";

export default defineConfig({
  test: {
    include: ["test/{unit,integration,browser,chaos,security,matrix}/**/*.test.ts"],
    globalSetup: ["test/support/global-setup.ts"],
    // The default pool talks to its children in a way that Bun has not.
    pool: "threads",
    // Two cores are busy with four: most tests wait for what takes its time, as a lease does.
    maxWorkers: 4,
    sequence: { sequencer: LongestFirst },
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // Many tests share two cores with Postgres and Chromium: what only a stalled machine fails gets a second try.
    retry: process.env.CI ? 1 : 0,
    reporters: ["default", "./test/support/totals-reporter.ts"],
  },
});

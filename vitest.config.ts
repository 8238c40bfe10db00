import { defineConfig } from "vitest/config";
import { measureSlowness } from "./test/support/machine-speed.ts";
import DealtEvenly, { SHARED_WORKERS } from "./test/support/sequencer.ts";
import { ONCE } from "./test/support/totals-reporter.ts";

/** Replaces a module, which only Vite's module runner can. All other files are loaded by Bun itself, for half the cost. */
const LOADED_BY_VITE = ["test/integration/console/add-setting.test.ts"];
/**
 * Files that share a worker, and the modules that it has loaded and compiled: that is a third of their cost. They leave
 * nothing running, and change nothing of the process. Fleets, browsers and attacks do.
 */
const SHARED = ["test/unit/**/*.test.ts", "test/integration/!(fleet)/**/!(add-setting).test.ts"];
const ALL = ["test/{unit,integration,browser,chaos,security,matrix,timelapse}/**/*.test.ts"];
const LOADED_BY_BUN = { viteModuleRunner: false, nodeLoader: false };

/**
 * Five workers keep two cores busy: a file uses a third of a core, because many tests wait, for example for a lease or for
 * the limit of a source. With seven, or on a slow machine, tests that pass alone time out next to the others.
 */
const MOST_WORKERS = 5;
const LEAST_WORKERS = 3;
/**
 * Tests of a file that run at the same time if it marks them as concurrent: these mostly wait. `vi.setConfig` in the first file of a
 * worker lowers it for all files of that worker.
 */
const MOST_CONCURRENT = 30;
const slowness = await measureSlowness();

export default defineConfig({
  test: {
    projects: [
      {
        extends: true,
        test: {
          name: "own-worker",
          include: ALL,
          exclude: [...SHARED, ...LOADED_BY_VITE],
          experimental: LOADED_BY_BUN,
        },
      },
      {
        extends: true,
        test: { name: SHARED_WORKERS, include: SHARED, isolate: false, experimental: LOADED_BY_BUN },
      },
      { extends: true, test: { name: "loaded-by-vite", include: LOADED_BY_VITE } },
    ],
    globalSetup: ["test/support/global-setup.ts"],
    // The default pool communicates with its child processes in a way that Bun does not support.
    pool: "threads",
    maxWorkers: Math.max(LEAST_WORKERS, Math.min(MOST_WORKERS, Math.round(MOST_WORKERS / slowness))),
    maxConcurrency: MOST_CONCURRENT,
    sequence: { sequencer: DealtEvenly },
    testTimeout: 30_000 * slowness,
    hookTimeout: 60_000 * slowness,
    tags: [
      { name: ONCE, description: "A rare violation is a violation: .ci/run does not try such a test again." },
    ],
    reporters: [
      "default",
      "./test/support/totals-reporter.ts",
      "./test/support/hang-watchdog.ts",
      ...(process.env.TOOLS ? ["./test/support/tools/table-reporter.ts"] : []),
    ],
  },
});

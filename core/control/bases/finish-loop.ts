/**
 * Finishes, in the background, what earlier processes left unfinished, so that no start depends on it or on a
 * customer's server. One process at a time does this, one task after the other.
 */

import { withTimeout } from "../../async";
import { asOnly } from "../../postgres";
import type { Running } from "../../process";
import { listBases, type ManagementContext } from "./bases";
import { finishDeletions } from "./delete-base";

const EVERY_MS = 60_000;
/** Longest time that a stopping process waits for its current task. Another process resumes it. */
const STOP_MS = 5000;

export function startFinishing(ctx: ManagementContext): Running {
  let running: Promise<unknown> | undefined;
  const run = () => {
    running ??= asOnly(ctx.db, "finish deletions", () => finishDeletions(ctx, () => listBases(ctx.db)))
      .catch((error: unknown) => ctx.log.warn({ error }, "finishing deletions failed"))
      .finally(() => {
        running = undefined;
      });
  };
  run();
  const timer = setInterval(run, EVERY_MS);
  return {
    async stop() {
      clearInterval(timer);
      await withTimeout(STOP_MS, () => {}, running);
    },
  };
}

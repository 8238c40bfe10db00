/**
 * Finishes, in the background, what earlier processes left unfinished, so that no start depends on it or on a
 * customer's server. One process at a time does this, one task after the other.
 */

import { repeat, withTimeout } from "../../async";
import { asOnly } from "../../postgres";
import type { Running } from "../../process";
import { MINUTE_MS } from "../../time-units";
import { listBases, type ManagementContext } from "./bases";
import { finishDeletions } from "./delete-base";
import { finishSqlWrites } from "./restore-writes";

/** Longest time that a stopping process waits for its current task. Another process resumes it. */
const STOP_MS = 5000;

export function startFinishing(ctx: ManagementContext): Running {
  const finishing = repeat(
    MINUTE_MS,
    () =>
      asOnly(ctx.db, "finish deletions", async () => {
        await finishDeletions(ctx, () => listBases(ctx.db));
        await finishSqlWrites(ctx);
      }),
    (error) => ctx.log.warn({ error }, "finishing deletions and moves failed"),
  );
  void finishing.now();
  return { stop: () => withTimeout(STOP_MS, () => {}, finishing.stop()) };
}

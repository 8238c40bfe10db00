/** Waiting for what a base's owner sees: a failed run, a base that needs attention, one that is well again. */
import { expect } from "vitest";
import { type Base, getBase, listRuns, type SyncRun } from "../../core/control/bases";
import { indicatorOf } from "../../core/control/status";
import type { ErrorCode } from "../../core/errors";
import type { Fleet } from "./fleet";
import { until } from "./poll";

/** Five tries of a request, with the pauses between them: 4 to 12 s, and a failed sync's own pause on top. */
const FAILURE_TIMEOUT_MS = 60_000;

/** The base, once it is in need of attention. */
export function needingAttention(fleet: Fleet, baseId: string): Promise<Base> {
  return until(
    async () => {
      const base = await getBase(fleet.ctx.db, baseId);
      return base.state === "needs_attention" && base;
    },
    { what: `${baseId} needs attention`, timeoutMs: FAILURE_TIMEOUT_MS },
  );
}

/** The run that failed with `code`, once there is one. */
export function failedRun(fleet: Fleet, baseId: string, code: ErrorCode): Promise<SyncRun> {
  return until(
    async () => (await listRuns(fleet.ctx.db, baseId, 20)).find((run) => run.error_code === code),
    { what: `a run of ${baseId} has failed with ${code}`, timeoutMs: FAILURE_TIMEOUT_MS, intervalMs: 50 },
  );
}

/** Expects a base that its owner need not think about. */
export function expectWell(base: Base): void {
  expect(base).toMatchObject({ state: "active", error: null });
  expect(indicatorOf(base, new Date())).toMatchObject({ color: "green" });
}

/** Waits for states of a base that its owner sees: a failed run, a base that needs attention, a healthy base. */
import { expect } from "vitest";
import { type Base, getBase, listRuns, type SyncRun } from "../../core/control/bases";
import { indicatorOf } from "../../core/control/status";
import type { ErrorCode } from "../../core/errors";
import type { Fleet } from "./fleet";
import { until } from "./poll";

/** A request is tried five times with pauses of 4 to 12 s in total, and a failed sync adds its own pause. */
const FAILURE_TIMEOUT_MS = 60_000;

/** Resolves with the base once it needs attention. */
export function needingAttention(fleet: Fleet, baseId: string): Promise<Base> {
  return until(
    async () => {
      const base = await getBase(fleet.ctx.db, baseId);
      return base.state === "needs_attention" && base;
    },
    { what: `${baseId} needs attention`, timeoutMs: FAILURE_TIMEOUT_MS },
  );
}

/** Resolves with the run that failed with `code`. */
export function failedRun(fleet: Fleet, baseId: string, code: ErrorCode): Promise<SyncRun> {
  return until(
    async () => (await listRuns(fleet.ctx.db, baseId, 20)).find((run) => run.error_code === code),
    { what: `a run of ${baseId} has failed with ${code}`, timeoutMs: FAILURE_TIMEOUT_MS, intervalMs: 50 },
  );
}

/** Expects a base with no problem to report. Its last sync may have been slow: so may the machine. */
export function expectWell(base: Base): void {
  expect(base).toMatchObject({ state: "active", error: null });
  const { color, cause, reason } = indicatorOf(base, new Date());
  if (cause !== "slow") expect(color, reason).toBe("green");
}

/** The pause after a failure. */
import { expect, test } from "vitest";
import { BasetideError } from "../../core/errors";
import { failurePauseMs, itemPauseMs } from "../../core/sync/pacing";
import { BaseCache, restore } from "../../core/sync/state";

const SOURCE = new BasetideError("source_unavailable");
const base = (error: BasetideError | null) =>
  ({
    id: "bas_1",
    database: { id: "dbs_1" },
    error,
    problems: [],
    failingTables: [],
    schemaError: null,
  }) as unknown as Parameters<typeof restore>[1];

test("the pauses of our own outage are a small part of it, those of a failing base double", () => {
  for (const error of [
    new BasetideError("control_unavailable"),
    new BasetideError("replica_unavailable"),
    Object.assign(new Error("read"), { code: "ECONNRESET" }),
  ]) {
    let awayMs = 0;
    let longest = 0;
    for (let failures = 1; awayMs < 60_000; failures++) {
      longest = failurePauseMs(failures, error);
      awayMs += longest;
    }
    expect(longest).toBeLessThan(8000);
  }
  expect(failurePauseMs(5, SOURCE)).toBeGreaterThanOrEqual(16_000);
  expect(failurePauseMs(20, SOURCE)).toBeLessThanOrEqual(90_000);
});

test("a table that stays locked is tried less and less often, and within 20 s of the end of the lock", () => {
  const locked = new BasetideError("replica_busy");
  expect(itemPauseMs(1, locked)).toBeLessThanOrEqual(3000);
  expect(itemPauseMs(4, locked)).toBeGreaterThanOrEqual(8000);
  expect(itemPauseMs(20, locked)).toBe(20_000);
  // Others of the base do not wait for it.
  expect(failurePauseMs(20, locked)).toBeLessThanOrEqual(3000);
});

/** A lease that begins with this epoch. */
const lease = (epoch: number, isContinued = true) => ({ epoch, previousEpoch: epoch - 1, isContinued });

test("the record of a base's failures outlives its cache, until the base is synced", () => {
  const known = { ...new BaseCache(3), databaseId: "dbs_1", failures: 4, failedWith: SOURCE };
  expect(restore(known, base(SOURCE), lease(4))).toMatchObject({ epoch: 4, failures: 4, failedWith: SOURCE });
  // Another worker had it meanwhile, and failed as well.
  const anew = restore(known, base(SOURCE), lease(6));
  expect(anew).not.toBe(known);
  expect(anew).toMatchObject({ epoch: 6, failures: 4 });
  expect(restore(undefined, base(SOURCE), lease(1))).toMatchObject({ failures: 1 });
  expect(restore(known, base(null), lease(7))).toMatchObject({ failures: 0, failedWith: null });
});

test("the cache continues with the epoch that follows it, however much greater that is", () => {
  const known = { ...new BaseCache(3), databaseId: "dbs_1" };
  const next = { epoch: 1_000_004, previousEpoch: 3, isContinued: true };
  expect(restore(known, base(null), next)).toBe(known);
  expect(known.epoch).toBe(1_000_004);
});

test("the cache of a replica that may have lost commits is dropped, and the next sweep is due at once", () => {
  const known = { ...new BaseCache(3), databaseId: "dbs_1", failures: 4, scanStartedAt: 1 };
  const forgetful = restore(known, base(SOURCE), lease(4, false));
  expect(forgetful).not.toBe(known);
  expect(forgetful).toMatchObject({ epoch: 4, failures: 4, scanStartedAt: Number.NEGATIVE_INFINITY });
});

/** A worker that gets many bases at once starts a limited number of leases at the same time. */
import { expect, test } from "vitest";
import { BasetideError } from "../../../core/errors";
import type { holdLease } from "../../../core/sync/lease";
import { BaseCache } from "../../../core/sync/state";
import { startFleet } from "../../support/fleet";
import { insertBases } from "../../support/fleet-bases";
import { until } from "../../support/poll";

const MOST = 50;
/** Longer than a worker takes to look for more bases, and than leases that are slow used to count. */
const WATCHED_MS = 7000;

test("fifty leases start at the same time, and those that failed make room", {
  timeout: 60_000,
}, async () => {
  await using fleet = await startFleet({ workers: 0, leavesBases: true });
  await insertBases(fleet.ctx, MOST + 10);
  const bases = new Set<string>();
  const fails: (() => void)[] = [];
  /** Never starts; fails when it is told to, or when the worker stops. */
  const lease: typeof holdLease = (_ctx, baseId, _caches, { stop }) => {
    bases.add(baseId);
    return new Promise((_, reject) => {
      const fail = () => reject(new BasetideError("replica_unavailable"));
      fails.push(fail);
      stop.addEventListener("abort", fail);
    });
  };
  await fleet.addWorker(lease);
  const begun = (count: number, timeoutMs: number) =>
    until(() => bases.size >= count, { what: `${count} leases have begun`, timeoutMs });
  await begun(MOST, 20_000);
  await expect(begun(MOST + 1, WATCHED_MS)).rejects.toThrow();
  for (const fail of fails.slice(0, 5)) fail();
  await begun(MOST + 5, 8000);
  expect(bases.size).toBe(MOST + 5);
});

test("leases that have started make room at once", { timeout: 60_000 }, async () => {
  await using fleet = await startFleet({ workers: 0, leavesBases: true });
  await insertBases(fleet.ctx, MOST + 10);
  const started = new Set<string>();
  const lease: typeof holdLease = (_ctx, baseId, caches, { stop }) => {
    caches.set(baseId, new BaseCache(1));
    started.add(baseId);
    return new Promise((resolve) => stop.addEventListener("abort", () => resolve(0)));
  };
  await fleet.addWorker(lease);
  await until(() => started.size === MOST + 10, { what: "all have started", timeoutMs: 12_000 });
});

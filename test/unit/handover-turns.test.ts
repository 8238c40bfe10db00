/** How many bases hand over at once when a worker stops, and how long a slow server delays its end. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createLogger } from "../../core/log";
import type { Replica } from "../../core/replica";
import { handOverRows } from "../../core/sync/lease/handover";
import { type BaseCache, Fingerprints } from "../../core/sync/state";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const log = createLogger("fatal", "test");
const LONGEST_MS = 20_000;

/** @param store called with what is sent to the server */
function startBases(count: number, server: string, store: () => Promise<void>) {
  const sql = Object.assign(store, { unsafe: () => "" });
  const replica = { sql, swap: "", server, isConnected: () => true } as unknown as Replica;
  return Array.from({ length: count }, () => {
    const fingerprints = new Fingerprints();
    fingerprints.learn("rec1", 1n);
    const table = {
      fingerprints,
      isComplete: true,
      hasLastingUrls: true,
      live: {},
      loggedUpTo: 0,
      comparedAt: 0,
    };
    const schema = { tables: [{ id: "tbl1", fields: [] }] };
    const cache = { schema, tables: new Map([["tbl1", table]]) } as unknown as BaseCache;
    return handOverRows({ replica, epoch: 1, cache }, log);
  });
}

test("all bases hand over, and few of a server at once", async () => {
  let [running, most, stored] = [0, 0, 0];
  const bases = startBases(100, "fast", async () => {
    most = Math.max(most, ++running);
    await new Promise((resolve) => setTimeout(resolve, 10));
    running--;
    stored++;
  });
  await vi.advanceTimersByTimeAsync(1000);
  await Promise.all(bases);
  expect([stored, most]).toEqual([100, 32]);
});

test("a server that fails or does not answer delays a worker's end for a limited time, and no other server", async () => {
  let ended = 0;
  const never = () => new Promise<void>(() => {});
  const slow = startBases(200, "slow", never).map((base) => base.then(() => ended++));
  let stored = 0;
  const others = startBases(20, "fast", async () => void stored++);
  const failing = startBases(20, "failing", () => Promise.reject(new Error("away")));
  await vi.advanceTimersByTimeAsync(0);
  await Promise.all([...others, ...failing]);
  expect([stored, ended]).toEqual([20, 0]);
  await vi.advanceTimersByTimeAsync(LONGEST_MS);
  expect(ended).toBe(200);
  await Promise.all(slow);
});

/** When calls of many keys share a statement, and when one goes at once, with a control plane that grants everything. */
import { expect, test } from "vitest";
import type { Db } from "../../core/context";
import type { Priority } from "../../core/limiter/backend";
import { controlPlane } from "../../core/limiter/control-plane";
import { VirtualClock } from "../support/quota-simulation";

const MARGIN = { delayMs: 0, spreadMs: 0, dropMs: 0 };

/** Calls of keys at these times, each as late as can be; returns the calls in each statement, by its time. */
async function statementsOf(calls: { at: number; kind: Priority }[]): Promise<[at: number, calls: number][]> {
  const clock = new VirtualClock();
  const statements: [number, number][] = [];
  const db = (async (_: TemplateStringsArray, ...parameters: unknown[]) => {
    const keys = String(parameters[4] ?? "").match(/airtable:/g);
    if (!keys) return [{ now: clock.now(), is_promoted: false, is_read_only: false }];
    statements.push([clock.now(), keys.length]);
    return keys.map(() => ({
      asked_at: clock.now(),
      reservations: [clock.now() + 20],
      next_at: 0,
      margin: 20,
    }));
  }) as unknown as Db;
  const control = controlPlane(db, clock, 1000, () => {});
  await control.reach();
  const granted: Promise<unknown>[] = [];
  for (const [index, { at, kind }] of calls.entries()) {
    const backend = control.backend(`airtable:app${index}`, kind, 3);
    clock.at(at, () => granted.push(backend.acquire([30], [], MARGIN, { latestAt: clock.now() })));
  }
  await clock.run(1000);
  await Promise.all(granted);
  return statements;
}

const every = (ms: number, count: number, kind: Priority = "sync") =>
  Array.from({ length: count }, (_, index) => ({ at: index * ms, kind }));

test("calls of sync whose time is past share a statement every 25 ms, and a single one goes at once", async () => {
  expect(await statementsOf(every(5, 20))).toEqual([
    [0, 1],
    [25, 5],
    [50, 5],
    [75, 5],
    [100, 4],
  ]);
  expect(await statementsOf(every(100, 3))).toEqual([
    [0, 1],
    [100, 1],
    [200, 1],
  ]);
});

test("a call for a change that someone waits to see goes at once, and takes with it those that wait", async () => {
  const calls = [...every(5, 4), { at: 17, kind: "live" as const }, { at: 20, kind: "sync" as const }];
  expect(await statementsOf(calls)).toEqual([
    [0, 1],
    [17, 4],
    [42, 1],
  ]);
});

test("a client's call goes at once, whatever others wait", async () => {
  expect(await statementsOf([...every(1, 3), { at: 3, kind: "client" }])).toEqual([
    [0, 1],
    [3, 1],
    [25, 2],
  ]);
});

test("the standing reservations after requests to many bases share a statement every 25 ms", async () => {
  const clock = new VirtualClock();
  const statements: [at: number, keys: number][] = [];
  const db = (async (_: TemplateStringsArray, ...parameters: unknown[]) => {
    const keys = String(parameters[2] ?? "").match(/airtable:/g);
    if (!keys) return [{ now: clock.now(), is_promoted: false, is_read_only: false }];
    statements.push([clock.now(), keys.length]);
    return keys.map(() => ({ asked_at: clock.now(), standing: clock.now() + 620, margin: 20 }));
  }) as unknown as Db;
  const control = controlPlane(db, clock, 1000, () => {});
  await control.reach();
  const made: unknown[] = [];
  for (const [index, { at }] of every(5, 12, "client").entries()) {
    const standing = control.backend(`airtable:app${index}`, "client", 5).standing!;
    clock.at(at, () => {
      standing.soon(() => void standing.renew([], true, MARGIN).then((one) => made.push(one)));
    });
  }
  await clock.run(1000);
  expect(statements).toEqual([
    [25, 6],
    [55, 6],
  ]);
  expect(made).toHaveLength(12);
});

/** What is due for a base: each item with a failure of its own, and places that those that fail or wait leave to others. */
import { expect, test, vi } from "vitest";
import { Notifier } from "../../core/async";
import { BasetideError } from "../../core/errors";
import { type DueItem, Scheduler, type WorkKind } from "../../core/sync/pacing";

/** A scheduler that runs until the end of the test. `end` collects errors of the whole base. */
function started(kinds: WorkKind[], tickMs = 1) {
  const over = new AbortController();
  const ended: unknown[] = [];
  const wake = new Notifier();
  const end = (error: unknown) => void ended.push(error);
  const scheduler = new Scheduler({ stop: over.signal, wake, end, tickMs }, kinds);
  const running = scheduler.run().catch(() => {});
  const stop = async () => {
    over.abort();
    await running;
  };
  return { scheduler, ended, wake, [Symbol.asyncDispose]: stop };
}

const kindOf = (items: () => DueItem[], most = Infinity): WorkKind => ({ items, most });
const timeout = () => new BasetideError("source_timeout");

test("an item that fails is tried again after its own pause, and delays no other", async () => {
  const ran: Record<string, number> = { a: 0, b: 0 };
  const pauses: number[] = [];
  const kind: WorkKind = {
    ...kindOf(
      () =>
        ["a", "b"].map((id) => ({
          id,
          run: async () => {
            ran[id]!++;
            if (id === "a") throw timeout();
          },
        })),
      1,
    ),
    onFailure: (id, _, pauseMs) => void (id === "a" && pauses.push(pauseMs)),
  };
  await using _ = started([kind]);
  await vi.waitUntil(() => ran.b! > 20);
  expect(ran.a).toBe(1);
  expect(pauses).toHaveLength(1);
  expect(pauses[0]).toBeGreaterThan(500);
});

test("an item that could not be done yet is tried again later; another one of its kind is not delayed", async () => {
  const ran: string[] = [];
  let wanted: string | undefined = "one";
  const items = () => (wanted === undefined ? [] : [{ id: wanted, run: () => run(wanted!) }]);
  async function run(id: string): Promise<boolean> {
    ran.push(id);
    if (id === "two") wanted = undefined;
    return id === "two";
  }
  await using _ = started([kindOf(items)]);
  await vi.waitUntil(() => ran.length === 1);
  wanted = "two";
  await vi.waitUntil(() => wanted === undefined);
  expect(ran).toEqual(["one", "two"]);
});

test("no more items run than there are places, but for those that stand aside", async () => {
  const running = new Set<string>();
  const aside = new Set<string>();
  const ended = new Set<string>();
  let most = 0;
  const done = Promise.withResolvers<void>();
  const items = ["a", "b", "c", "d"].map((id) => ({
    id,
    async run() {
      running.add(id);
      most = Math.max(most, [...running].filter((one) => !aside.has(one)).length);
      await done.promise;
      ended.add(id);
    },
  }));
  const waiting = () => items.filter(({ id }) => !ended.has(id));
  await using scene = started([{ items: waiting, most: 2, isAside: (id) => aside.has(id) }]);
  await vi.waitUntil(() => running.size === 2);
  aside.add("a");
  await vi.waitUntil(() => running.size === 3);
  expect(running).toEqual(new Set(["a", "b", "c"]));
  expect(most).toBe(2);
  done.resolve();
  await vi.waitUntil(() => running.size === 4);
  expect(scene.ended).toEqual([]);
});

test("a table's failure is recorded with the table, which is not tried again before its time", async () => {
  let dueInMs = 0;
  let ran = 0;
  const read: string[] = [];
  const failing = {
    has: () => dueInMs > 0,
    dueInMs: () => dueInMs,
    read: (id: string) => void read.push(id),
  };
  const kind: WorkKind = {
    most: 1,
    items: () => [
      {
        id: "tbl1",
        async run() {
          if (++ran === 1) throw timeout();
        },
      },
    ],
    tables: {
      failing,
      begin: () => async (caught) => {
        dueInMs = 60_000;
        return caught as BasetideError;
      },
    },
  };
  await using scene = started([kind]);
  await vi.waitUntil(() => ran === 1 && scene.scheduler.running(kind).length === 0);
  for (let turn = 0; turn < 5; turn++) scene.wake.notify();
  expect([ran, read]).toEqual([1, []]);
});

test("an error of the whole base ends all, and one without a schema of its own is no failure", async () => {
  const lost = new BasetideError("lease_lost");
  let isOvertaken = false;
  let ran = 0;
  const overtaken: WorkKind = {
    most: 1,
    items: () => (ran < 2 ? [{ id: "tbl1", run: async () => Promise.reject(++ran) }] : []),
    tables: {
      failing: { has: () => false, dueInMs: () => 0, read: () => {} },
      begin: () => async () => {
        isOvertaken = true;
        return undefined;
      },
    },
  };
  await using scene = started([
    overtaken,
    kindOf(() =>
      ran === 2 && scene.ended.length === 0 ? [{ id: "", run: () => Promise.reject(lost) }] : [],
    ),
  ]);
  await vi.waitUntil(() => scene.ended.length === 1);
  expect([scene.ended, isOvertaken]).toEqual([[lost], true]);
});

test("without a tick and without an item that is due, it waits without a timer", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout"] });
  try {
    await using scene = started([kindOf(() => [])], Infinity);
    await Promise.resolve();
    expect([vi.getTimerCount(), scene.ended]).toEqual([0, []]);
  } finally {
    vi.useRealTimers();
  }
});

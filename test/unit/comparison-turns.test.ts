/** How many bases of a server compare their tables at once. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { openReplica } from "../../core/replica";
import { inComparisonTurn } from "../../core/sync/engine/comparison-turns";
import { TURN_MS } from "../../core/sync/pacing";

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterEach(() => void vi.useRealTimers());

const NEVER = new AbortController().signal;

/** Starts to compare a table of the base, until it is told to end. */
function compare(base: { server: string }, stop: AbortSignal = NEVER) {
  const over = Promise.withResolvers<void>();
  const state = { isRunning: false };
  const result = inComparisonTurn(base, stop, async () => {
    state.isRunning = true;
    await over.promise;
    state.isRunning = false;
  });
  result.catch(() => {});
  return { state, end: over.resolve, fail: over.reject, result };
}

const basesOf = (server: string, count: number) => Array.from({ length: count }, () => ({ server }));
const begun = () => new Promise(setImmediate);
const running = (comparisons: { state: { isRunning: boolean } }[]) =>
  comparisons.filter(({ state }) => state.isRunning).length;

async function endAll(comparisons: ReturnType<typeof compare>[]): Promise<void> {
  for (const { end } of comparisons) end();
  await Promise.all(comparisons.map(({ result }) => result));
}

test("a hundred bases of a server compare at once, the others follow in order, and those of another server do not wait", async () => {
  const many = basesOf("many:5432", 150).map((base) => compare(base));
  const other = compare({ server: "other:5432" });
  await begun();
  expect([running(many), other.state.isRunning]).toEqual([100, true]);
  for (const { end } of many.slice(0, 20)) end();
  await begun();
  expect(many.map(({ state }) => state.isRunning)).toEqual(many.map((_, at) => at >= 20 && at < 120));
  await endAll([...many, other]);
});

test("bases compare at once only as far as the server's connections go", async () => {
  // Ten, until the first connection has told the server's own limit.
  const url = "postgres://owner:secret@few:5432/base";
  const replica = openReplica({ url, schema: "public" });
  expect(replica.sql).toBeDefined();
  const comparisons = basesOf(replica.server, 12).map((base) => compare(base));
  await begun();
  expect(running(comparisons)).toBe(10);
  await endAll(comparisons);
});

test("all tables of a base share its turn, also those that begin later, until the last one ends", async () => {
  const filling = basesOf("tables:5432", 99).map((base) => compare(base));
  const base = { server: "tables:5432" };
  const tables = [compare(base), compare(base)];
  const waiting = compare({ server: "tables:5432" });
  await begun();
  expect([running(tables), running([waiting])]).toEqual([2, 0]);
  tables[0]!.end();
  await begun();
  tables.push(compare(base));
  tables[1]!.end();
  await begun();
  expect([running(tables), running([waiting])]).toEqual([1, 0]);
  tables[2]!.end();
  await begun();
  expect(waiting.state.isRunning).toBe(true);
  await endAll([...filling, ...tables, waiting]);
});

test("a base that takes longer than its turn continues, and no longer counts", async () => {
  const slow = basesOf("slow:5432", 100).map((base) => compare(base));
  const next = compare({ server: "slow:5432" });
  await begun();
  await vi.advanceTimersByTimeAsync(TURN_MS - 1);
  expect(next.state.isRunning).toBe(false);
  await vi.advanceTimersByTimeAsync(1);
  await begun();
  expect([running(slow), next.state.isRunning]).toEqual([100, true]);
  await endAll([...slow, next]);
});

test("a sync that is stopped leaves the queue at once, and a comparison that fails gives its turn to the next", async () => {
  const filling = basesOf("stopped:5432", 100).map((base) => compare(base));
  const stop = new AbortController();
  const base = { server: "stopped:5432" };
  const stopped = compare(base, stop.signal);
  const next = compare({ server: "stopped:5432" });
  stop.abort();
  await expect(stopped.result).rejects.toMatchObject({ code: "sync_stopped" });
  await expect(compare(base, stop.signal).result).rejects.toMatchObject({ code: "sync_stopped" });
  expect(next.state.isRunning).toBe(false);
  filling[0]!.fail(new Error("full"));
  await expect(filling[0]!.result).rejects.toThrow("full");
  await begun();
  expect([stopped.state.isRunning, next.state.isRunning]).toEqual([false, true]);
  await endAll([...filling.slice(1), next]);
});

/** Settings that users change during a sync, long before it would end. */
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import type { LogEntry } from "../../../apps/sandbox/request-log";
import { type Base, getBase, listRuns, requestResync, updateSettings } from "../../../core/control/bases";
import { type Fleet, startFleet } from "../../support/fleet";
import { until } from "../../support/poll";

vi.setConfig({ testTimeout: 90_000 });

/** Pages of the one table: a sweep at 3 requests a second takes 20 s. */
const PAGES = 60;
/** Settings are read once a second; requests in progress then are completed. */
const SOON_MS = 2500;
/** What counts as soon on a busy machine. Most of a sweep is still to come. */
const BUSY_MS = 30_000;

let fleet: Fleet;

beforeAll(async () => {
  fleet = await startFleet({ sandbox: { settings: { rateLimitOff: true } } });
});
afterAll(() => fleet?.[Symbol.asyncDispose]());

interface Sweeping {
  base: Base;
  /** Requests for lists of the table since `from` (performance.now()). */
  lists(from: number): LogEntry[];
}

/** A base whose sweep (with 3 requests a second) has just begun. */
async function sweeping(settings: Partial<Base["settings"]> = {}, apiKey?: string): Promise<Sweeping> {
  const { control, key } = fleet.sandbox;
  const sourceId = control.createBase({
    name: "Settings",
    tables: [
      {
        name: "Things",
        fields: [
          { name: "Name", type: "singleLineText" },
          { name: "Next", type: "multipleRecordLinks", options: { linkedTableId: "Things" } },
        ],
        // Old ones: a first schema check reads a table again that was created just before.
        records: Array.from({ length: PAGES * 100 }, (_, index) => ({
          createdTime: "2024-05-01T12:34:56.000Z",
          fields: { Name: `Thing ${index}` },
        })),
      },
    ],
  });
  const connected = await fleet.connect(sourceId, { turbo: true, ...settings });
  await until(async () => (await getBase(fleet.ctx.db, connected.id)).sync !== null, {
    what: "the first sync completes",
    timeoutMs: 60_000,
  });
  let base = await updateSettings(fleet.ctx, connected, { turbo: false });
  if (apiKey && apiKey !== key) base = await updateSettings(fleet.ctx, base, { apiKey });
  const lists = (from: number) =>
    control.log(sourceId).filter((entry) => entry.arrivalMs >= from && !entry.path.includes("/meta/"));
  const from = performance.now() + SOON_MS;
  await until(() => lists(from).length >= 3, { what: "a sweep is running", timeoutMs: 30_000 });
  return { base, lists };
}

/** Including first pages: a read that starts again. */
const beginnings = (entries: LogEntry[]) => entries.filter((entry) => !entry.path.includes("offset"));

/** Pages before the first restart, which must exist. */
function pagesBefore(entries: LogEntry[]): number {
  const [first] = beginnings(entries);
  expect(first).toBeDefined();
  return entries.indexOf(first!);
}

test.concurrent("turbo applies to the next requests, and ends with those after it is disabled", async () => {
  const { base, lists } = await sweeping();
  /** Three seconds in a row, all of them after a change. */
  const isRate = (changed: number, isIt: (perSecond: number) => boolean) => () => {
    const from = performance.now() - 3000;
    return from > changed && isIt(lists(from).length / 3);
  };
  let changed = performance.now();
  await updateSettings(fleet.ctx, base, { turbo: true });
  await until(
    isRate(changed, (rate) => rate > 4),
    { what: "more than four requests a second", timeoutMs: BUSY_MS },
  );
  changed = performance.now();
  await updateSettings(fleet.ctx, base, { turbo: false });
  await until(
    isRate(changed, (rate) => rate < 4),
    { what: "fewer again", timeoutMs: BUSY_MS },
  );
});

test.concurrent("a pause ends the sync and releases the base", async () => {
  const { base, lists } = await sweeping();
  const paused = performance.now();
  await updateSettings(fleet.ctx, base, { paused: true });
  const jobs = async () => {
    const rows = await fleet.ctx.db`
      select from pgboss.job where singleton_key = ${base.id} and state in ('created', 'active')`;
    return rows.length;
  };
  await until(async () => (await jobs()) === 0, { what: "the base is released", timeoutMs: BUSY_MS });
  // It did not continue to its end.
  expect(lists(paused).length).toBeLessThan(PAGES / 2);
  expect(await getBase(fleet.ctx.db, base.id)).toMatchObject({ state: "paused", error: null });
  await updateSettings(fleet.ctx, base, { paused: false });
  const resumed = performance.now();
  await until(() => lists(resumed).length > 0, { what: "the base is swept again", timeoutMs: BUSY_MS });
});

test.concurrent("a change of column types ends the sweep and rebuilds the affected tables", async () => {
  const { base, lists } = await sweeping();
  const changed = performance.now();
  await updateSettings(fleet.ctx, base, { linkedRecordsAsText: true });
  const reader = await fleet.reader(base);
  await until(
    async () => {
      const [column] = await reader`
        select data_type from information_schema.columns where table_name = 'things' and column_name = 'next'`;
      return column!.data_type === "text";
    },
    { what: "links are text", timeoutMs: 60_000, intervalMs: 100 },
  );
  // The sweep was not read to its end before.
  expect(pagesBefore(lists(changed))).toBeLessThan(PAGES / 2);
});

test.concurrent("rapid mode begins at once", async () => {
  const { base, lists } = await sweeping();
  const changed = performance.now();
  await updateSettings(fleet.ctx, base, { rapid: true });
  await until(async () => (await getBase(fleet.ctx.db, base.id)).sync?.kind === "rapid", {
    what: "a cycle completes",
    timeoutMs: BUSY_MS,
  });
  // A sweep's pause was not waited for.
  expect(lists(changed).length).toBeLessThan(PAGES);
});

test.concurrent("a new key is used from the next request on, in the same sweep", async () => {
  const { control } = fleet.sandbox;
  const old = control.createKey();
  const { base, lists } = await sweeping({}, old);
  const changed = performance.now();
  const fresh = control.createKey();
  await updateSettings(fleet.ctx, base, { apiKey: fresh });
  const tokenOf = (key: string) => key.split(".")[0];
  await until(() => lists(changed).some((entry) => entry.tokenId === tokenOf(fresh)), {
    what: "the new key is used",
    timeoutMs: BUSY_MS,
  });
  control.revokeKey(old);
  const [begun] = beginnings(lists(changed));
  expect(begun).toBeUndefined();
  await until(() => lists(changed).length > 9, { what: "the sweep continues", timeoutMs: BUSY_MS });
  const runs = await listRuns(fleet.ctx.db, base.id, 10);
  expect(runs.filter((run) => run.error_code)).toEqual([]);
});

test.concurrent("a requested sync does not wait for the running sweep", async () => {
  const { base, lists } = await sweeping();
  const asked = performance.now();
  await requestResync(fleet.ctx, base);
  await until(() => beginnings(lists(asked)).length > 0, {
    what: "the table is read again",
    timeoutMs: BUSY_MS,
  });
  expect(pagesBefore(lists(asked))).toBeLessThan(PAGES / 2);
  await until(async () => (await getBase(fleet.ctx.db, base.id)).progress?.kind === "rebuild", {
    what: "the rebuild shows its progress",
    timeoutMs: BUSY_MS,
  });
});

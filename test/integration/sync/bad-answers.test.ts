/**
 * A source with bad answers: the replica keeps its rows meanwhile, equals the source again afterwards, and the run
 * history reports what happened.
 *
 * All cases run at the same time, each with a base of its own, so that the file takes as long as its slowest.
 */
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import type { FaultKind, FaultOptions } from "../../../apps/sandbox/faults";
import { type Base, getBase, listRuns, requestResync } from "../../../core/control/bases";
import { expectWell, needingAttention } from "../../support/base-states";
import { expectEqualToSource } from "../../support/equal-to-source";
import { type Fleet, startFleet } from "../../support/fleet";
import { until } from "../../support/poll";

vi.setConfig({ testTimeout: 120_000 });

/** Three pages, the last one short. */
const RECORDS = 250;
/** Tables of a base: so many requests at once. */
const TABLES = 2;
/** Longest time of a request in this process after it was granted, ms. */
const SENT_LATE_MS = 5000;

let fleet: Fleet;

beforeAll(async () => {
  fleet = await startFleet({
    sandbox: { settings: { rateLimitOff: true } },
    env: { SCHEMA_POLL_SECONDS: "0.1", UPSTREAM_TIMEOUT_MS: "1000" },
  });
});
afterAll(() => fleet?.[Symbol.asyncDispose]());

interface Case {
  base: Base;
  /** Ids of the source's two tables. */
  things: string;
  others: string;
  addFault(options: Omit<FaultOptions, "base">): { id: number; played(): number };
}

/** A synced base of two tables: one of three pages, and a small one. */
async function connected(records = RECORDS): Promise<Case> {
  const { control } = fleet.sandbox;
  const fields = [
    { name: "Name", type: "singleLineText" },
    { name: "Size", type: "number" },
  ];
  const rows = (count: number) =>
    Array.from({ length: count }, (_, index) => ({ fields: { Name: `Thing ${index}`, Size: index } }));
  const sourceBaseId = control.createBase({
    name: "Answers",
    tables: [
      { name: "Things", fields, records: rows(records) },
      { name: "Others", fields, records: rows(3) },
    ],
  });
  // A user of its own: a base that is refused within its own limit was refused for its user.
  const user = { id: `usr${crypto.randomUUID()}`, email: "x@example.com" };
  const key = control.createKey({ bases: { [sourceBaseId]: "create" }, user });
  const base = await fleet.connect(sourceBaseId, { turbo: true }, key);
  const [things, others] = control.dump(sourceBaseId).tables;
  return {
    base: await fleet.synced(base.id),
    things: things!.id,
    others: others!.id,
    addFault(options) {
      const { id } = control.addFault({ base: sourceBaseId, ...options });
      return { id, played: () => control.faults().find((fault) => fault.id === id)!.played };
    },
  };
}

/** Edits both tables as a user would; nothing is deleted, so row counts only grow. */
function edit({ base: { sourceBaseId }, things, others }: Case): void {
  const { control } = fleet.sandbox;
  for (const table of [things, others]) {
    const [first] = control.dump(sourceBaseId).tables.find(({ id }) => id === table)!.records;
    control.updateRecords(sourceBaseId, table, [{ id: first!.id, fields: { Name: "Edited" } }]);
    control.createRecords(sourceBaseId, table, [{ fields: { Name: "New" } }]);
  }
}

/** Counts the rows of `things` in a loop until it is disposed. */
async function watchCount(base: Base) {
  const reader = await fleet.reader(base);
  const watch = { least: Number.POSITIVE_INFINITY, looks: 0 };
  let isOver = false;
  const watching = (async () => {
    while (!isOver) {
      const [row] = await reader<{ count: number }[]>`select count(*)::int as count from things`;
      watch.least = Math.min(watch.least, row!.count);
      watch.looks++;
      await Bun.sleep(5);
    }
  })();
  return Object.assign(watch, {
    async [Symbol.asyncDispose]() {
      isOver = true;
      await watching;
    },
  });
}

function failedRuns(base: Base) {
  return listRuns(fleet.ctx.db, base.id, 100).then((runs) => runs.filter((run) => run.error_code !== null));
}

/** Resolves with the base once a sync has completed after which all its tables can be read: a fault's effect may be noted late. */
function recovered({ id }: Base): Promise<Base> {
  const base = async () => {
    const synced = await fleet.synced(id);
    return synced.failingTables.length === 0 && synced;
  };
  return until(base, { what: "no table fails after a sync", timeoutMs: 60_000 });
}

test.concurrent("occasional bad answers cost another attempt, and fail no sync", async () => {
  const made = await connected();
  const kinds: FaultKind[] = ["status_500", "broken_json", "reset", "html_200", "truncated", "status_503"];
  const faults = kinds.map((kind, index) =>
    made.addFault({ kind, count: 1, path: index % 2 ? '"offset"' : '\\{(?!.*"offset")' }),
  );
  edit(made);
  await until(() => faults.every((fault) => fault.played() === 1), {
    what: "every fault has been injected",
    timeoutMs: 60_000,
  });
  expectWell(await recovered(made.base));
  await expectEqualToSource(fleet, made.base);
  // Several in a row may take so long that the others do not wait.
  expect((await failedRuns(made.base)).filter((run) => run.completed_at === null)).toEqual([]);
});

test.concurrent("a list whose iterator expires midway is read again from its start", async () => {
  const made = await connected();
  const fault = made.addFault({ kind: "iterator_lost", path: '"offset"', table: made.things, count: 2 });
  edit(made);
  expectWell(await fleet.synced(made.base.id));
  expect(fault.played()).toBe(2);
  await expectEqualToSource(fleet, made.base);
  expect(await failedRuns(made.base)).toEqual([]);
});

test.concurrent.for([RECORDS, 1200])(
  "no row of %i is deleted when a page arrives in another's place",
  async (records) => {
    const made = await connected(records);
    await using count = await watchCount(made.base);
    const fault = made.addFault({ kind: "repeat_page", path: '"offset"', table: made.things, count: 1 });
    edit(made);
    expectWell(await fleet.synced(made.base.id));
    expect(fault.played()).toBe(1);
    await expectEqualToSource(fleet, made.base);
    expect(count.least).toBe(records);
  },
);

test.concurrent("a table that is deleted between two schema checks is dropped, and the base stays healthy", async () => {
  // The source answers 403, as for a base that the key may not read.
  await using unhurried = await startFleet({ sandbox: { settings: { rateLimitOff: true } } });
  const { control } = unhurried.sandbox;
  const table = (name: string) => ({ name, fields: [{ name: "Name", type: "singleLineText" }] });
  const sourceBaseId = control.createBase({ tables: [table("Things"), table("Others")] });
  const base = await unhurried.connect(sourceBaseId, { turbo: true });
  await unhurried.synced(base.id);
  control.deleteTable(sourceBaseId, "Others");
  expectWell(await unhurried.synced(base.id));
  await expectEqualToSource(unhurried, base);
  const runs = await listRuns(unhurried.ctx.db, base.id, 10);
  expect(runs.map((run) => run.error_code)).toEqual(runs.map(() => null));
});

test.concurrent("rows do not disappear while a table answers that it has none", async () => {
  const made = await connected();
  await using count = await watchCount(made.base);
  const fault = made.addFault({ kind: "empty_list", table: made.things });
  edit(made);
  await until(() => fault.played() > 2, {
    what: "the table was read as empty repeatedly",
    timeoutMs: 60_000,
  });
  fleet.sandbox.control.clearFaults(fault.id);
  expectWell(await fleet.synced(made.base.id));
  await expectEqualToSource(fleet, made.base);
  expect(count.least).toBe(RECORDS);
  expect(await failedRuns(made.base)).toEqual([]);
});

test.concurrent("a table that was really emptied is empty in SQL within two syncs, and no sync has failed", async () => {
  const made = await connected(40);
  const { base, things } = made;
  const { control } = fleet.sandbox;
  const ids = control
    .dump(base.sourceBaseId)
    .tables.find(({ id }) => id === things)!
    .records.map(({ id }) => id);
  control.deleteRecords(base.sourceBaseId, things, ids);
  await fleet.synced(base.id);
  expectWell(await fleet.synced(base.id));
  const reader = await fleet.reader(base);
  expect(await reader`select from things`).toHaveLength(0);
  expect(await failedRuns(base)).toEqual([]);
});

test.concurrent.for(["rate_limited", "rate_limited_object"] satisfies FaultKind[])(
  "after a 429 (%s), no request is sent for the base until its pause ends, and no sync has failed",
  async (kind) => {
    const [made, other] = await Promise.all([connected(), connected()]);
    const { base } = made;
    const { db } = fleet.ctx;
    const key = `airtable:${base.sourceBaseId}`;
    const fault = made.addFault({ kind, table: made.things, count: 1 });
    edit(made);
    const block = await until(
      async () => {
        const [row] = await db<{ reason: string; untilMs: number }[]>`
          select reason, extract(epoch from blocked_until)::float8 * 1000 as "untilMs"
          from quota_blocks where key = ${key}`;
        return row;
      },
      { what: "the base is blocked in the quota ledger", timeoutMs: 60_000 },
    );
    expect(fault.played()).toBe(1);
    // Those that were in transit when the answer came.
    await until(() => requests(base).every((request) => request.status !== 0), {
      what: "all are answered",
      timeoutMs: 60_000,
    });
    const refusedMs = timeOf(requests(base).find(({ status }) => status === 429)!);
    expect(block.reason).toBe("rate_limited");
    expect(block.untilMs - refusedMs).toBeGreaterThan(25_000);
    const before = requests(base).length;
    await fleet.synced(other.base.id);
    await fleet.synced(other.base.id);
    // By their recorded times: on a busy machine the pause may be over by now.
    const since = requests(base).slice(before).map(timeOf);
    const inPause = since.filter((atMs) => atMs < block.untilMs);
    // Those that had been granted before, and that a busy process sent only then.
    const granted = inPause.filter((atMs) => atMs < refusedMs + SENT_LATE_MS);
    expect(granted.length).toBeLessThanOrEqual(TABLES);
    expect(inPause.slice(granted.length)).toEqual([]);
    expect(await getBase(db, base.id)).toMatchObject({ state: "active", error: null });

    await db`update quota_keys set blocked_until = 0 where key = ${key}`;
    await db`select quota_announce(${key})`;
    // The base is yellow until its pause ends.
    await db`update quota_blocks set blocked_until = now() where key = ${key}`;
    expectWell(await fleet.synced(base.id));
    await expectEqualToSource(fleet, base);
    expect(await failedRuns(base)).toEqual([]);
  },
);

function requests({ sourceBaseId }: Base) {
  return fleet.sandbox.control.log(sourceBaseId);
}

/** The arrival time of a request, on the machine's clock, ms. */
function timeOf({ arrivalMs }: { arrivalMs: number }): number {
  return performance.timeOrigin + arrivalMs;
}

test.concurrent("a spent monthly cap stops the base until a person resumes it", async () => {
  const made = await connected();
  const { base } = made;
  await using count = await watchCount(base);
  const fault = made.addFault({ kind: "billing_limit" });
  edit(made);
  const capped = await needingAttention(fleet, base.id);
  expect(capped.error).toMatchObject({
    code: "source_billing_limit",
    message: expect.stringMatching(/monthly maximum of API calls was reached/),
  });
  expect(await failedRuns(base)).toMatchObject([{ error_code: "source_billing_limit" }]);
  fleet.sandbox.control.clearFaults(fault.id);
  await requestResync(fleet.ctx, capped);
  expectWell(await fleet.synced(base.id));
  await expectEqualToSource(fleet, base);
  expect(count.least).toBe(RECORDS);
});

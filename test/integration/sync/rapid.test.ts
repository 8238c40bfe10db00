/** Rapid mode, end to end: a sandbox as the source, workers, Postgres. */
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import type { FaultOptions } from "../../../apps/sandbox/faults";
import { type Base, getBase, listRuns, type SyncRun, updateSettings } from "../../../core/control/bases";
import { expectWell, failedRun, needingAttention } from "../../support/base-states";
import { expectEqualToSource, untilSameShape } from "../../support/equal-to-source";
import { type Fleet, startFleet } from "../../support/fleet";
import { until } from "../../support/poll";

vi.setConfig({ testTimeout: 90_000 });

let fleet: Fleet;

beforeAll(async () => {
  fleet = await startFleet({
    sandbox: { settings: { rateLimitOff: true } },
    env: { SCHEMA_POLL_SECONDS: "1", UPSTREAM_TIMEOUT_MS: "1000" },
  });
});
afterAll(() => fleet?.[Symbol.asyncDispose]());

/** Pages of `things`. With the rest of the quota, a sweep takes more than a second for each. */
const PAGES = 6;

/** A base in rapid mode after its first cycle: `things` of some pages, small `others`. */
async function rapidBase(of: Fleet = fleet, apiKey?: string) {
  const { control } = of.sandbox;
  const fields = [
    { name: "Name", type: "singleLineText" },
    { name: "Told", type: "formula", options: { formula: "'told of ' & {Name}" } },
  ];
  const rows = (count: number) =>
    Array.from({ length: count }, (_, index) => ({ fields: { Name: `N${index}` } }));
  const sourceId = control.createBase({
    name: "Rapid",
    tables: [
      { name: "Things", fields, records: rows(PAGES * 100) },
      { name: "Others", fields, records: rows(3) },
    ],
  });
  const made = await of.connect(sourceId, { rapid: true, turbo: true });
  if (apiKey) await updateSettings(of.ctx, made, { apiKey });
  const base = await inRapidMode(of, made.id);
  const [things, others] = control.dump(sourceId).tables;
  const reader = await of.reader(base);
  return {
    base,
    sourceId,
    things: things!.id,
    others: others!.id,
    ids: things!.records.map(({ id }) => id),
    rename: (id: string, name: string) =>
      control.updateRecords(sourceId, things!.id, [{ id, fields: { Name: name } }]),
    /** Waits until the rows of `things` with this name are `count`. */
    named: (name: string, count = 1) =>
      until(async () => (await reader`select from things where name = ${name}`).length === count, {
        what: `${count} things are named ${name}`,
        timeoutMs: 30_000,
      }),
    addFault: (options: Omit<FaultOptions, "base">) => control.addFault({ base: sourceId, ...options }).id,
    runs: () => listRuns(of.ctx.db, base.id, 50),
  };
}

function inRapidMode(of: Fleet, baseId: string): Promise<Base> {
  const from = new Date();
  return until(
    async () => {
      const base = await getBase(of.ctx.db, baseId);
      return base.sync?.kind === "rapid" && base.sync.startedAt > from && base;
    },
    { what: `a cycle of ${baseId} completes`, timeoutMs: 30_000 },
  );
}

/** The total of changes made by runs of a kind. */
function sum(runs: SyncRun[], kind: SyncRun["kind"], what: "inserted" | "updated" | "deleted"): number {
  return runs.filter((run) => run.kind === kind).reduce((total, run) => total + run[what], 0);
}

test.concurrent("cycles find creates and changes; background sweeps find deletes and computed cells", async () => {
  const { base, sourceId, things, ids, rename, named, runs } = await rapidBase();
  const { control } = fleet.sandbox;
  for (const cycle of [1, 2, 3]) {
    rename(ids[cycle]!, `Renamed ${cycle}`);
    control.createRecords(sourceId, things, [{ fields: { Name: `Created ${cycle}` } }]);
    await named(`Renamed ${cycle}`);
    await named(`Created ${cycle}`);
  }
  // The background sweep may have been the first to find one of each.
  const polled = async (what: "inserted" | "updated") => sum(await runs(), "rapid", what) >= 2;
  await until(async () => (await polled("inserted")) && (await polled("updated")), {
    what: "the cycles that found them are recorded",
  });

  control.deleteRecords(sourceId, things, [ids[10]!, ids[1]!]);
  control.patchField(sourceId, things, "Told", { options: { formula: "'spoken of ' & {Name}" } });
  await named("N10", 0);
  const reader = await fleet.reader(base);
  await until(async () => (await reader`select from things where told !~ '^spoken' limit 1`).length === 0, {
    what: "every formula is computed again",
    timeoutMs: 30_000,
  });
  await expectEqualToSource(fleet, base);
  expect(sum(await runs(), "rapid", "deleted")).toBe(0);
  await until(async () => sum(await runs(), "sweep", "deleted") === 2, { what: "the sweep is over" });
  expect((await runs()).filter((run) => run.error_code)).toEqual([]);
  expectWell(await getBase(fleet.ctx.db, base.id));
});

test.concurrent("_sync_meta counts a cycle as a sync, and promises no more than the cycle read", async () => {
  const { base, ids, rename, named } = await rapidBase();
  const reader = await fleet.reader(base);
  rename(ids[0]!, "Early");
  const [edited] = await reader<{ now: Date }[]>`select clock_timestamp() as now`;
  const meta = await until(
    async () => {
      const [row] = await reader<{ started_at: Date; completed_at: Date; ms: number }[]>`
        select started_at, completed_at, extract(epoch from duration_last)::float8 * 1000 as ms from _sync_meta`;
      const began = row!.completed_at.getTime() - row!.ms;
      return began > edited!.now.getTime() && row;
    },
    { what: "a cycle that began after the edit has completed", timeoutMs: 20_000, intervalMs: 1 },
  );
  expect(await reader`select from things where name = 'Early'`).toHaveLength(1);
  expect(meta.ms).toBeLessThan(5000);
  await named("Early");
});

test.concurrent("the schema is kept up to date meanwhile, and cycles continue for the other tables", async () => {
  const { base, sourceId, things, others, rename, ids, named, runs } = await rapidBase();
  const { control } = fleet.sandbox;
  control.renameField(sourceId, others, "Name", "Title");
  control.addField(sourceId, things, { name: "Size", type: "number" });
  control.updateRecords(sourceId, things, [{ id: ids[3]!, fields: { Size: 5 } }]);
  control.addTable(sourceId, { name: "News", fields: [{ name: "Text", type: "singleLineText" }] });
  control.createRecords(sourceId, "News", [{ fields: { Text: "first" } }]);
  const reader = await fleet.reader(base);
  await until(
    async () => {
      const rows =
        await reader`select from news, things, others where things.size = 5 and others.title = 'N1'`;
      return rows.length === 1;
    },
    { what: "the new structure is in SQL", timeoutMs: 30_000, retryErrors: true },
  );
  rename(ids[4]!, "After");
  await named("After");
  control.deleteTable(sourceId, "News");
  await until(async () => (await reader`select to_regclass('news') as news`)[0]!.news === null, {
    what: "the dropped table is gone",
    timeoutMs: 30_000,
  });
  await inRapidMode(fleet, base.id);
  await expectEqualToSource(fleet, base);
  const kinds = (await runs()).map((run) => run.kind);
  expect(kinds).toContain("rebuild");
  expect((await runs()).filter((run) => run.error_code)).toEqual([]);
});

test.concurrent("a table whose polls fail does not stop the polls of the others, and the base reports it", async () => {
  const { base, sourceId, things, others, rename, ids, named, addFault } = await rapidBase();
  const { control } = fleet.sandbox;
  const reader = await fleet.reader(base);
  const fault = addFault({ kind: "status_500", table: things });
  rename(ids[5]!, "Hidden");
  expect(await failedRun(fleet, base.id, "source_unavailable")).toMatchObject({
    completed_at: expect.any(Date),
  });
  control.createRecords(sourceId, others, [{ fields: { Name: "Other" } }]);
  await until(async () => (await reader`select from others where name = 'Other'`).length === 1, {
    what: "the other table's record is in SQL",
  });
  expect(await getBase(fleet.ctx.db, base.id)).toMatchObject({
    error: null,
    failingTables: [{ table_id: things, name: "Things", code: "source_unavailable" }],
  });
  control.clearFaults(fault);
  await named("Hidden");
  await until(async () => (await getBase(fleet.ctx.db, base.id)).failingTables.length === 0, {
    what: "no table fails",
    timeoutMs: 90_000,
  });
  expectWell(await inRapidMode(fleet, base.id));
});

test.concurrent("rows do not disappear when the background sweep finds a table empty for a while", async () => {
  const { base, things, ids, rename, named, addFault, runs } = await rapidBase();
  addFault({ kind: "empty_list", table: things, durationMs: 4000 });
  const reader = await fleet.reader(base);
  const swept = (await getBase(fleet.ctx.db, base.id)).sweep?.startedAt ?? new Date(0);
  await until(
    async () => {
      const [row] = await reader<{ n: number }[]>`select count(*)::int as n from things`;
      expect(row!.n).toBe(PAGES * 100);
      const { sweep } = await getBase(fleet.ctx.db, base.id);
      return sweep !== null && sweep.startedAt > swept;
    },
    { what: "a sweep completes", timeoutMs: 60_000 },
  );
  rename(ids[6]!, "Still here");
  await named("Still here");
  expect(sum(await runs(), "sweep", "deleted")).toBe(0);
});

test.concurrent("a refused key stops cycles and sweeps, and a new key resumes them", async () => {
  const { control } = fleet.sandbox;
  const key = control.createKey();
  const { base, ids, rename, named } = await rapidBase(fleet, key);
  control.revokeKey(key);
  rename(ids[7]!, "Later");
  expect((await needingAttention(fleet, base.id)).error).toMatchObject({ code: "source_key_refused" });
  await updateSettings(fleet.ctx, base, { apiKey: control.createKey() });
  await named("Later");
  expectWell(await inRapidMode(fleet, base.id));
});

test.concurrent("rapid mode is disabled and enabled at the next cycle", async () => {
  const { base, sourceId, things, ids, rename, named } = await rapidBase();
  await updateSettings(fleet.ctx, base, { rapid: false });
  await until(async () => (await getBase(fleet.ctx.db, base.id)).sync?.kind === "sweep", {
    what: "a plain sweep completes",
    timeoutMs: 20_000,
  });
  fleet.sandbox.control.deleteRecords(sourceId, things, [ids[20]!]);
  await named("N20", 0);
  await updateSettings(fleet.ctx, base, { rapid: true });
  await inRapidMode(fleet, base.id);
  rename(ids[8]!, "Rapid again");
  await named("Rapid again");
});

test.concurrent.for([-3_600_000, 3_600_000])(
  "cycles use the source's clock, even if it differs from ours by %i ms, and cover a change of workers",
  async (clockOffsetMs) => {
    await using own = await startFleet({ sandbox: { settings: { rateLimitOff: true, clockOffsetMs } } });
    const { ids, rename, named, runs } = await rapidBase(own);
    rename(ids[0]!, "First");
    await named("First");
    await own.workers[0]!.stop();
    rename(ids.at(-1)!, "Nobody looks");
    const before = sum(await runs(), "rapid", "updated");
    await own.addWorker();
    await named("Nobody looks");
    await until(async () => sum(await runs(), "rapid", "updated") > before, { what: "a cycle has found it" });
  },
);

test.concurrent("long names are swapped while types change, and a table takes the name of a view over links", async () => {
  const { control } = fleet.sandbox;
  const fields = [{ name: "Name", type: "singleLineText" }];
  const records = [{ fields: { Name: "1" } }];
  const long = "Customer satisfaction survey responses of the fiscal year 2026/27";
  const [north, south] = [`${long}, North`, `${long}, South`];
  const boss = { name: "Boss", type: "multipleRecordLinks", options: { linkedTableId: "People" } };
  const sourceId = control.createBase({
    tables: [
      { name: north, fields, records },
      { name: south, fields, records },
      { name: "People", fields: [...fields, boss], records },
      { name: "Others", fields, records },
    ],
  });
  const { id } = await fleet.connect(sourceId, { rapid: true, turbo: true, linkViews: true });
  const base = await inRapidMode(fleet, id);
  const reader = await fleet.reader(base);
  const hasView = async () => (await reader`select to_regclass('people__boss') as view`)[0]!.view !== null;
  await until(hasView, { what: "the view over links exists", timeoutMs: 30_000 });
  const tables = control.dump(sourceId).tables;
  const rename = (nth: number, name: string) => control.renameTable(sourceId, tables[nth]!.id, name);
  rename(0, "Between");
  rename(1, north);
  rename(0, south);
  for (const { id: table } of tables.slice(0, 2)) control.retypeField(sourceId, table, "Name", "number");
  rename(3, "People__Boss");
  await untilSameShape(fleet, base, 60_000);
  await expectEqualToSource(fleet, base);
  control.renameTable(sourceId, tables[2]!.id, "Persons");
  await until(async () => (await reader`select to_regclass('persons') as name`)[0]!.name !== null, {
    what: "a table with a view is renamed",
    timeoutMs: 30_000,
  });
  await untilSameShape(fleet, base, 60_000);
  await expectEqualToSource(fleet, base);
  const runs = await listRuns(fleet.ctx.db, id, 100);
  expect(runs.filter((run) => run.error_code)).toEqual([]);
  await until(async () => (await getBase(fleet.ctx.db, id)).problems.length === 0, {
    what: "no table is outdated",
  });
  expectWell(await getBase(fleet.ctx.db, id));
});

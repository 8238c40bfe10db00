/** Live mode with a feed in memory: what arrives, in which order, and what is durable when. */
import { expect, onTestFinished, test, vi } from "vitest";
import { BasetideError } from "../../../core/errors";
import {
  applyRowImages,
  compileMapper,
  loadCatalog,
  mapRecords,
  takeReadVersion,
} from "../../../core/replica";
import { editor } from "../../support/fake-feed";
import { pageOf } from "../../support/fake-source";
import { type LiveEngine, liveEngine } from "../../support/live-engine";
import { liveTeams } from "../../support/live-teams";
import { until } from "../../support/poll";
import { sourceTable } from "../../support/source-records";
import { personRecord, recordOf, sourceField, teamRecord } from "../../support/teams";

vi.setConfig({ testTimeout: 30_000 });

const DAY_MS = 86_400_000;

/** Calls of the source, except reads of the feed. */
const calls = ({ source }: Pick<LiveEngine, "source">) => source.calls.filter((call) => call !== "payloads");

test("creates, updates and deletes arrive with one request per table, and without a sweep", async () => {
  const { engine, edit, equal, source, runs } = await liveTeams();
  edit.teams.put(teamRecord("recT3", "Green"), teamRecord("recT2", "Navy"));
  await engine.settled();
  await equal();
  expect(calls(engine)).toEqual(["ids tblT"]);
  edit.teams.destroy("recT3");
  await engine.settled();
  await equal();
  // A recently written record is verified before it is removed.
  expect(source.calls).toEqual(["ids tblT", "ids tblT"]);
  await until(() => runs.length === 2, { what: "both batches are recorded" });
  expect(runs[0]).toMatchObject({ kind: "live", seen: 2, inserted: 1, updated: 1, deleted: 0 });
  expect(runs[1]).toMatchObject({ kind: "live", inserted: 0, updated: 0, deleted: 1 });
});

interface Meta {
  started: Date;
  completed: Date;
}

async function metaOf({ replica }: Pick<Awaited<ReturnType<typeof liveTeams>>, "replica">): Promise<Meta> {
  const [meta] = await replica.replica.sql<Meta[]>`
    select started_at as started, completed_at as completed from public._sync_meta`;
  return meta!;
}

test("_sync_meta is a clock: a read of the feed without changes advances it, as a batch with changes does", async () => {
  const scene = await liveTeams();
  const { edit, replica, webhook, runs } = scene;
  const now = async () =>
    (await replica.replica.sql<{ now: Date }[]>`select clock_timestamp() as now`)[0]!.now.getTime();
  for (const change of [() => webhook.notifier.notify(), () => edit.teams.put(teamRecord("recT2", "Navy"))]) {
    const before = await now();
    // Once in five seconds is often enough.
    await until(
      async () => {
        change();
        return (await metaOf(scene)).started.getTime() >= before;
      },
      { what: "the clock moves on", timeoutMs: 15_000, intervalMs: 200 },
    );
    await until(async () => (await metaOf(scene)).completed >= (await metaOf(scene)).started, {
      what: "the reported changes are in SQL",
    });
    if (runs.length === 0) expect(scene.source.calls).toEqual([]);
  }
});

test("reads without changes are recorded in _sync_meta at most once in five seconds", async () => {
  const { engine, webhook, replica } = await liveTeams();
  engine.cadence.pollMs = 20;
  webhook.notifier.notify();
  await replica.replica.sql`create table public_swap.seen (at timestamptz)`;
  await replica.replica.sql`
    create rule seen as on update to public_swap._sync_meta do also insert into public_swap.seen values (now())`;
  const from = webhook.reads;
  await until(() => webhook.reads > from + 100, { what: "the feed is read" });
  const [row] = await replica.replica.sql`select count(*)::int as n from public_swap.seen`;
  expect(row!.n).toBeLessThanOrEqual(3);
});

test("R1: while changes are missing from the feed, _sync_meta does not advance; it does when a sweep has found them", async () => {
  const scene = await liveTeams();
  const { engine, webhook, edit, people } = scene;
  const held = Promise.withResolvers<void>();
  scene.source.before = (call) => (call.startsWith("page") ? held.promise : undefined);
  edit.people.silently(personRecord("recP1", "Anna"));
  webhook.payloads.push({});
  webhook.keptFrom = 2;
  webhook.gapSince = new Date();
  webhook.gapAt = performance.now();
  const before = await metaOf(scene);
  edit.teams.put(teamRecord("recT2", "Navy"));
  await until(async () => ((await engine.rows("teams")) as { name: string }[])[1]!.name === "Navy", {
    what: "the reported changes are in SQL",
  });
  expect(people.records.size).toBeGreaterThan(0);
  expect(await metaOf(scene)).toEqual(before);
  held.resolve();
  await until(async () => (await metaOf(scene)).completed > before.completed, {
    what: "the clock continues",
  });
  await scene.equal();
});

test("a failed read of records is retried without another notification", async () => {
  const { webhook, edit, equal, engine } = await liveTeams();
  let failures = 0;
  webhook.before = () => {
    webhook.notifier.clear();
    if (failures++ === 0) throw new BasetideError("source_bad_answer", "broken off");
  };
  edit.teams.put(teamRecord("recT2", "Navy"));
  await engine.settled();
  await equal();
  expect(failures).toBeGreaterThan(1);
});

test("_sync_meta does not promise more than the feed was read for", async () => {
  const { engine, edit, source, replica, runs, equal } = await liveTeams();
  const { sql } = replica.replica;
  const held = Promise.withResolvers<void>();
  source.before = (call) => (call === "ids tblT" ? held.promise : undefined);
  edit.teams.put(teamRecord("recT2", "Navy"));
  await until(() => source.calls.includes("ids tblT"), { what: "the first change is requested" });
  const { now } = (await sql<{ now: Date }[]>`select clock_timestamp() as now`)[0]!;
  edit.people.put(personRecord("recP2", "Bobby"));
  await until(async () => ((await engine.rows("people")) as { name: string }[])[1]!.name === "Bobby", {
    what: "the second change is in SQL",
  });
  source.before = () => {};
  held.resolve();
  await until(() => runs.length > 0, { what: "the first batch is recorded" });
  expect(runs[0]!.startedAt.getTime()).toBeLessThan(now.getTime());
  await until(() => runs.length === 2, { what: "the second one" });
  expect(runs[1]!.startedAt.getTime()).toBeGreaterThanOrEqual(now.getTime());
  const [meta] = await sql<{ started: Date; completed: Date }[]>`
    select started_at as started, completed_at as completed from public._sync_meta`;
  expect(meta!.started.getTime()).toBeGreaterThanOrEqual(now.getTime() - 1);
  expect(meta!.completed.getTime()).toBeGreaterThan(meta!.started.getTime());
  await equal();
});

test("cells that depend on a change in another table are read again in the same batch", async () => {
  const { engine, edit, equal, people: table, runs } = await liveTeams();
  // The source computes it; its feed does not report it.
  table.records.set("recP1", personRecord("recP1", "Ann", ["recT1"], ["Crimson"]));
  edit.teams.put(teamRecord("recT1", "Crimson", ["recP1"]));
  await engine.settled();
  await equal();
  await until(() => runs.length === 1, { what: "the batch is recorded" });
  expect(runs[0]).toMatchObject({ seen: 2, updated: 2 });
});

test("dependents are found by the old and the new links, also where links are stored as text", async () => {
  const settings = { linkedRecordsAsText: true };
  const { engine, edit, people: table, teams: of } = await liveTeams({ settings });
  // Ann leaves the team, Bob and Cid join; only the team's side is reported.
  table.records.set("recP1", personRecord("recP1", "Ann"));
  table.records.set("recP2", personRecord("recP2", "Bob", ["recT1"], ["Red"]));
  edit.people.put(personRecord("recP3", "Cid"));
  await engine.settled();
  table.records.set("recP3", personRecord("recP3", "Cid", ["recT1"], ["Red"]));
  edit.teams.put(teamRecord("recT1", "Red", ["recP2", "recP3"]));
  await engine.settled();
  const rows = (await engine.rows("people")) as { id: string; teams: string | null }[];
  expect(rows.map(({ id, teams: first }) => [id, first])).toEqual([
    ["recP1", null],
    ["recP2", "recT1"],
    ["recP3", "recT1"],
  ]);
  expect(of.records.size).toBe(2);
});

test("cells that depend on a deleted record are read again", async () => {
  const { engine, edit, equal, people: table } = await liveTeams();
  table.records.set("recP1", personRecord("recP1", "Ann"));
  edit.teams.destroy("recT1");
  await engine.settled();
  await equal();
});

test("payloads that are split, repeated or out of order cause no wrong row", async () => {
  const { engine, edit, equal, webhook } = await liveTeams();
  webhook.atOnce = 1;
  edit.teams.put(teamRecord("recT3", "Green"));
  edit.teams.put(teamRecord("recT3", "Lime"), teamRecord("recT4", "Grey"));
  edit.teams.destroy("recT4");
  webhook.tell(structuredClone(webhook.payloads[0]!));
  await engine.settled();
  await equal();
  // Deleted, and restored: the source has it.
  edit.teams.destroy("recT3");
  edit.teams.put(teamRecord("recT3", "Green again"));
  await engine.settled();
  await equal();
});

test("a deleted record that the source restores before it is verified stays", async () => {
  const { engine, edit, equal, webhook, teams: table } = await liveTeams();
  webhook.atOnce = 1;
  edit.teams.tell({ destroyedRecordIds: ["recT2"] });
  // The feed has more, so the deleted record is requested; it exists.
  edit.teams.put(teamRecord("recT1", "Crimson", ["recP1"]));
  await engine.settled();
  expect(table.records.has("recT2")).toBe(true);
  await equal();
});

test("I7: if a worker fails between a payload and its cursor, no row is wrong or missing", async () => {
  const { engine, edit, equal, webhook, source, running } = await liveTeams();
  const hold = Promise.withResolvers<void>();
  source.before = (call) => (call === "ids tblT" ? hold.promise : undefined);
  edit.teams.put(teamRecord("recT3", "Green"));
  edit.people.put(personRecord("recP2", "Bobby"));
  await until(() => source.calls.includes("ids tblT"), { what: "the team is requested" });
  await until(
    async () => ((await engine.rows("people")) as { name: string }[]).some((p) => p.name === "Bobby"),
    {
      what: "Bobby is in SQL",
    },
  );
  // The later change is durable; the cursor must not cover it.
  expect(webhook.saved).toBe(1);
  const stopping = running.stop();
  hold.resolve();
  source.before = () => {};
  await stopping;
  await engine.restart();
  engine.start();
  await engine.settled();
  await equal();
});

test("a failed read of records makes its table fail, does not advance the cursor, and is retried", async () => {
  const { engine, edit, equal, webhook, source, runs } = await liveTeams();
  let isFailing = true;
  source.before = (call) => {
    if (call === "ids tblT" && isFailing) throw new BasetideError("source_schema_changed");
  };
  edit.teams.put(teamRecord("recT3", "Green"));
  await until(() => engine.cache.failing.has("tblT"), { what: "the failure is recorded" });
  expect(webhook.saved).toBe(1);
  isFailing = false;
  await engine.settled();
  await equal();
  await until(() => runs.at(-1)?.completedAt, { what: "the batch is complete" });
});

test("a record that the source reports as missing is requested again before it is deleted", async () => {
  const { engine, edit, equal, source, webhook } = await liveTeams();
  let emptied = 0;
  source.onPage = (call, page) => (call.startsWith("ids") && emptied++ === 0 ? pageOf([]) : page);
  edit.teams.put(teamRecord("recT2", "Navy"));
  await until(() => emptied > 0, { what: "it did not exist" });
  expect(webhook.saved).toBe(1);
  await engine.settled();
  await equal();
});

test("a large number of changes is swept if that takes no more requests, together with what depends on it", async () => {
  const { engine, edit, equal, source, people: table } = await liveTeams({ teams: 350 });
  table.records.set("recP1", personRecord("recP1", "Ann", ["recT1"], ["Crimson"]));
  edit.teams.put(teamRecord("recT1", "Crimson", ["recP1"]));
  const records = Array.from({ length: 350 }, (_, index) =>
    teamRecord(`recM${String(index).padStart(5, "0")}`, `Renamed ${index}`),
  );
  edit.teams.put(...records);
  await engine.settled();
  await equal();
  const made = calls(engine);
  expect(made.filter((call) => call.startsWith("list tblT"))).toHaveLength(4);
  expect(made.filter((call) => call === "ids tblT")).toHaveLength(0);
  source.calls.length = 0;
  edit.teams.put(...records.slice(0, 150).map(({ id }) => teamRecord(id, "Once more")));
  await engine.settled();
  await equal();
  // This many changes at once may be those of a schema.
  expect(calls(engine)).toEqual(["ids tblT", "schema", "ids tblT"]);
});

test("a sweep that the feed requires is not preempted, and it preempts a sweep of the scan", async () => {
  const { engine, edit, equal, source, cadence, runs } = await liveTeams({ teams: 350 });
  const hold = Promise.withResolvers<void>();
  let isHeld = false;
  source.before = (call) => {
    if (call !== "list tblT 200" || isHeld) return;
    isHeld = true;
    return hold.promise;
  };
  cadence.sweepEveryMs = 0;
  await until(() => isHeld, { what: "the scan is in the middle of the table" });
  cadence.sweepEveryMs = 60_000;
  edit.teams.put(
    ...Array.from({ length: 350 }, (_, index) =>
      teamRecord(`recM${String(index).padStart(5, "0")}`, `New ${index}`),
    ),
  );
  await Bun.sleep(0);
  hold.resolve();
  await engine.settled();
  await equal();
  await until(() => runs.some((run) => run.isBackground), { what: "the scan is complete" });
});

test("a feed gap is closed by a scan that began after it", async () => {
  const { engine, edit, equal, webhook, runs } = await liveTeams();
  edit.teams.silently(teamRecord("recT2", "Navy"));
  webhook.tell({});
  webhook.tell({});
  webhook.keptFrom = 3;
  webhook.notifier.notify();
  await until(() => webhook.gapSince === null && runs.some((run) => run.isBackground), {
    what: "the gap is closed",
  });
  await engine.settled();
  await equal();
  // Known to be missing, and so not missed.
  expect(webhook.missed).toBe(0);
});

test("a schema change that is lost in a feed gap is looked for before the gap is closed", async () => {
  const { replica, source, teams, webhook } = await liveTeams();
  let isAnswered = false;
  source.before = async (call) => {
    if (call !== "schema") return;
    // The scan of so few records is over long before.
    await until(() => source.calls.filter((one) => one.startsWith("list")).length > 4, {
      what: "the records are read twice",
    });
    isAnswered = true;
  };
  teams.table.fields[1]!.name = "Members";
  webhook.tell({});
  webhook.keptFrom = 2;
  webhook.notifier.notify();
  await until(() => webhook.reads > 1 && webhook.gapSince === null, { what: "the gap is closed" });
  expect(isAnswered).toBe(true);
  const renamed = () => replica.replica.sql`
    select from information_schema.columns where table_name = 'teams' and column_name = 'members'`;
  await until(async () => (await renamed()).length === 1, { what: "the field is renamed" });
});

test("a renamed field is renamed as soon as the feed reports it", async () => {
  const { engine, edit, source, replica, teams } = await liveTeams();
  const [first] = source.tables;
  first!.table = {
    ...teams.table,
    fields: [{ ...teams.table.fields[0]!, name: "Title" }, teams.table.fields[1]!],
  };
  edit.teams.tell({ changedFieldsById: { fldTName: { current: { name: "Title" } } } });
  await until(
    async () =>
      (
        await replica.replica.sql`
        select from information_schema.columns where table_name = 'teams' and column_name = 'title'`
      ).length === 1,
    { what: "the column is renamed" },
  );
  edit.teams.put(teamRecord("recT2", "Navy"));
  await engine.settled();
  expect(await engine.rows("teams")).toContainEqual(expect.objectContaining({ id: "recT2", title: "Navy" }));
});

test("a new table is built, including records that the feed reports meanwhile", async () => {
  const { engine, source, webhook, runs } = await liveTeams();
  const added = source.add(
    { id: "tblN", name: "News", primaryFieldId: "fldN", fields: [sourceField("fldN", "Text", "text")] },
    [recordOf("recN1", { fldN: "one" })],
  );
  webhook.tell({ createdTablesById: { tblN: { fieldsById: {}, recordsById: { recN1: {} } } } });
  await engine.settled();
  await until(() => runs.some((run) => run.kind === "rebuild"), { what: "the rebuild is recorded" });
  const edit = editor(webhook, { source, table: added });
  edit.put(recordOf("recN2", { fldN: "two" }));
  await engine.settled();
  expect(((await engine.rows("news")) as { text: string }[]).map(({ text }) => text)).toEqual(["one", "two"]);
  source.tables.pop();
  edit.tell({ destroyedRecordIds: ["recN1"] });
  webhook.tell({ destroyedTableIds: ["tblN"] });
  await engine.settled();
});

test("events of a table that the schema never lists cost no schema call each", async () => {
  const { engine, source, webhook, edit, equal } = await liveTeams();
  source.calls.length = 0;
  for (let event = 0; event < 5; event++) {
    webhook.tell({ changedTablesById: { tblHidden: { changedRecordsById: { [`recH${event}`]: {} } } } });
    edit.teams.put(teamRecord("recT2", `Navy ${event}`));
    await engine.settled();
    await equal();
  }
  expect(source.calls.filter((call) => call === "schema").length).toBeLessThanOrEqual(1);
});

test("several tables are rebuilt at the same time, so that the rate limit bounds them and not the source's latency", async () => {
  const { source, webhook, replica } = await liveTeams();
  const ids = ["tblN1", "tblN2", "tblN3"];
  for (const id of ids) {
    const fields = [sourceField(`fld${id}`, "Text", "text")];
    source.add({ id, name: id, primaryFieldId: `fld${id}`, fields }, [
      recordOf(`rec${id}`, { [`fld${id}`]: id }),
    ]);
  }
  const held = Promise.withResolvers<void>();
  const asked = new Set<string>();
  source.before = (call) => {
    const id = ids.find((one) => call.includes(one));
    if (!id) return;
    asked.add(id);
    return held.promise;
  };
  webhook.tell({ createdTablesById: Object.fromEntries(ids.map((id) => [id, { fieldsById: {} }])) });
  await until(() => asked.size === 3, { what: "all are being read" });
  held.resolve();
  const built = async () => [...(await loadCatalog(replica.replica)).keys()];
  await until(async () => ids.every(Set.prototype.has, new Set(await built())), { what: "all exist" });
});

test("pending changes of a deleted table are dropped, and the cursor advances", async () => {
  const { engine, edit, webhook, source, replica } = await liveTeams();
  const held = Promise.withResolvers<void>();
  source.before = (call) => (call === "ids tblT" ? held.promise : undefined);
  edit.teams.put(teamRecord("recT3", "Green"));
  await until(() => source.calls.includes("ids tblT"), { what: "its records are being processed" });
  source.tables.splice(0, 1);
  webhook.tell({ destroyedTableIds: ["tblT"] });
  await until(async () => !(await loadCatalog(replica.replica)).has("tblT"), { what: "the table is gone" });
  source.before = () => {};
  held.resolve();
  await engine.settled();
});

test("a change that only the sweep finds counts as missed; one that the feed reports does not", async () => {
  const { engine, edit, equal, webhook, cadence, runs } = await liveTeams();
  // Time passes normally, and leaps where the test says so.
  const real = performance.now.bind(performance);
  let leapMs = 0;
  const clock = vi.spyOn(performance, "now").mockImplementation(() => real() + leapMs);
  onTestFinished(() => void clock.mockRestore());
  const passes = () => runs.filter((run) => run.isBackground).length;
  edit.teams.silently(teamRecord("recT2", "Navy"));
  cadence.sweepEveryMs = 0;
  await until(() => passes() >= 1, { what: "a scan is complete" });
  cadence.sweepEveryMs = DAY_MS;
  await equal();
  const reads = webhook.reads;
  webhook.notifier.notify();
  await until(() => webhook.reads > reads, { what: "the feed is read" });
  // It may still be reported.
  expect(webhook.missed).toBe(0);

  edit.teams.silently(teamRecord("recT1", "Crimson", ["recP1"]));
  const before = passes();
  leapMs += DAY_MS;
  await until(() => passes() > before, { what: "another scan is complete" });
  // Reported shortly after the sweep found it.
  edit.teams.tell({ changedRecordsById: { recT1: {} } });
  await engine.settled();
  leapMs += 30_000;
  webhook.notifier.notify();
  await until(() => webhook.missed === 1, { what: "one record was missed" });
});

test("I1: a change from elsewhere never overwrites an overlapping write through the proxy", async () => {
  const { engine, edit, equal, replica, teams: table } = await liveTeams();
  const of = replica.replica;
  const readVersion = await takeReadVersion(of);
  // The proxy's write is answered late; meanwhile a user has reverted the record, and live mode has read that.
  const written = teamRecord("recT2", "Written");
  edit.teams.put(teamRecord("recT2", "Blue"));
  await engine.settled();
  const catalog = (await loadCatalog(of)).get("tblT")!;
  const { lost } = await applyRowImages(of, catalog, {
    epoch: null,
    readVersion,
    rows: mapRecords(compileMapper(catalog.spec), [written], []),
    gone: [],
    issues: [],
    records: [written],
  });
  // It must request the record again before it answers its client.
  expect(lost).toEqual(["recT2"]);
  expect(table.records.get("recT2")).toEqual(teamRecord("recT2", "Blue"));
  await equal();
});

test("a lease can end between two batches, and the next one continues from the cache", async () => {
  const { engine, edit, equal, running } = await liveTeams();
  edit.teams.put(teamRecord("recT3", "Green"));
  await engine.settled();
  await running.over();
  expect(await running.ended).toBeUndefined();
  edit.teams.put(teamRecord("recT3", "Lime"));
  engine.start();
  await engine.settled();
  await equal();
});

test("I6: a field that is retyped and retyped back while a record is read keeps its value", async () => {
  const engine = await liveEngine();
  const { source, webhook } = engine;
  const things = sourceTable("tblT", "Things", { Name: "text", Count: "number" });
  const table = source.add(
    things,
    [1, 2, 3].map((n) => recordOf(`rec${n}`, { fld0: `Thing ${n}`, fld1: n })),
  );
  await engine.sync();
  await engine.replica.replica.sql`alter table public.things add constraint filled check (count is not null)`;
  engine.start({ schemaPollMs: 60_000 });
  await until(() => webhook.reads > 0, { what: "the feed is read" });
  const retype = (type: "text" | "number") => {
    things.fields[1] = sourceField("fld1", "Count", type);
    for (const { fields } of table.records.values()) {
      fields.fld1 = type === "text" ? `${fields.fld1} pieces` : Number.parseInt(String(fields.fld1), 10);
    }
  };
  const steps = [
    { call: "ids tblT", happens: () => retype("text") },
    { call: "schema", happens: () => retype("number") },
  ];
  source.before = (call) => {
    if (call === steps[0]?.call) steps.shift()!.happens();
  };
  source.calls.length = 0;
  editor(webhook, { source, table }).put(recordOf("rec2", { fld0: "Renamed", fld1: 2 }));
  await engine.settled();
  expect((await engine.rows("things"))[1]).toMatchObject({ name: "Renamed", count: 2 });
  expect(calls(engine)).toEqual(["ids tblT", "schema", "ids tblT"]);
  expect(engine.runs.filter(({ error }) => error)).toEqual([]);
});

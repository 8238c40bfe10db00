/** Live mode over a feed in memory: what arrives, in which order, and what is durable when. */
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
import type { LiveEngine } from "../../support/live-engine";
import { liveTeams } from "../../support/live-teams";
import { until } from "../../support/poll";
import { personRecord, recordOf, sourceField, teamRecord } from "../../support/teams";

vi.setConfig({ testTimeout: 30_000 });

const DAY_MS = 86_400_000;

/** Calls of the source but for reads of the feed. */
const calls = ({ source }: Pick<LiveEngine, "source">) => source.calls.filter((call) => call !== "payloads");

test("creates, updates and deletes arrive with one call for all of a table, and without a sweep", async () => {
  const { engine, edit, equal, source, runs } = await liveTeams();
  edit.teams.put(teamRecord("recT3", "Green"), teamRecord("recT2", "Navy"));
  await engine.settled();
  await equal();
  expect(calls(engine)).toEqual(["ids tblT"]);
  edit.teams.destroy("recT3");
  await engine.settled();
  await equal();
  // What was written a moment ago is looked for before it is removed.
  expect(source.calls).toEqual(["ids tblT", "ids tblT"]);
  await until(() => runs.length === 2, { what: "both rounds are on record" });
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

test("_sync_meta is a clock: a read of the feed that finds nothing moves it, as a round does that changes something", async () => {
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
      what: "what was told is there",
    });
    if (runs.length === 0) expect(scene.source.calls).toEqual([]);
  }
});

test("reads that find nothing are noted in _sync_meta once in five seconds at most", async () => {
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

test("R1: while changes are missing from the feed _sync_meta stands still, and moves when a sweep has found them", async () => {
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
    what: "what the feed tells of is there",
  });
  expect(people.records.size).toBeGreaterThan(0);
  expect(await metaOf(scene)).toEqual(before);
  held.resolve();
  await until(async () => (await metaOf(scene)).completed > before.completed, { what: "the clock goes on" });
  await scene.equal();
});

test("what a read was for that failed is asked for again, without another notification", async () => {
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

test("_sync_meta promises no more than the feed was asked for", async () => {
  const { engine, edit, source, replica, runs, equal } = await liveTeams();
  const { sql } = replica.replica;
  const held = Promise.withResolvers<void>();
  source.before = (call) => (call === "ids tblT" ? held.promise : undefined);
  edit.teams.put(teamRecord("recT2", "Navy"));
  await until(() => source.calls.includes("ids tblT"), { what: "the first change is asked for" });
  const { now } = (await sql<{ now: Date }[]>`select clock_timestamp() as now`)[0]!;
  edit.people.put(personRecord("recP2", "Bobby"));
  await until(async () => ((await engine.rows("people")) as { name: string }[])[1]!.name === "Bobby", {
    what: "the second change is there",
  });
  source.before = () => {};
  held.resolve();
  await until(() => runs.length > 0, { what: "the first round is on record" });
  expect(runs[0]!.startedAt.getTime()).toBeLessThan(now.getTime());
  await until(() => runs.length === 2, { what: "and the second one" });
  expect(runs[1]!.startedAt.getTime()).toBeGreaterThanOrEqual(now.getTime());
  const [meta] = await sql<{ started: Date; completed: Date }[]>`
    select started_at as started, completed_at as completed from public._sync_meta`;
  expect(meta!.started.getTime()).toBeGreaterThanOrEqual(now.getTime() - 1);
  expect(meta!.completed.getTime()).toBeGreaterThan(meta!.started.getTime());
  await equal();
});

test("what hangs on a change in another table is read again in the same round", async () => {
  const { engine, edit, equal, people: table, runs } = await liveTeams();
  // The source computes it; its feed does not tell.
  table.records.set("recP1", personRecord("recP1", "Ann", ["recT1"], ["Crimson"]));
  edit.teams.put(teamRecord("recT1", "Crimson", ["recP1"]));
  await engine.settled();
  await equal();
  await until(() => runs.length === 1, { what: "the round is on record" });
  expect(runs[0]).toMatchObject({ seen: 2, updated: 2 });
});

test("dependents are found by the links as they were and as they are, also where links are kept as text", async () => {
  const settings = { linkedRecordsAsText: true };
  const { engine, edit, people: table, teams: of } = await liveTeams({ settings });
  // Ann leaves the team, Bob and Cid join; only the team's side is told of.
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

test("what hangs on a record that is destroyed is read again", async () => {
  const { engine, edit, equal, people: table } = await liveTeams();
  table.records.set("recP1", personRecord("recP1", "Ann"));
  edit.teams.destroy("recT1");
  await engine.settled();
  await equal();
});

test("payloads that are split, repeated or out of order change nothing wrong", async () => {
  const { engine, edit, equal, webhook } = await liveTeams();
  webhook.atOnce = 1;
  edit.teams.put(teamRecord("recT3", "Green"));
  edit.teams.put(teamRecord("recT3", "Lime"), teamRecord("recT4", "Grey"));
  edit.teams.destroy("recT4");
  webhook.tell(structuredClone(webhook.payloads[0]!));
  await engine.settled();
  await equal();
  // Destroyed, and brought back: the source has it.
  edit.teams.destroy("recT3");
  edit.teams.put(teamRecord("recT3", "Green again"));
  await engine.settled();
  await equal();
});

test("a destroyed record that the source brings back before it is looked for stays", async () => {
  const { engine, edit, equal, webhook, teams: table } = await liveTeams();
  webhook.atOnce = 1;
  edit.teams.tell({ destroyedRecordIds: ["recT2"] });
  // There is more to read, so the destroyed one is asked for; it is there.
  edit.teams.put(teamRecord("recT1", "Crimson", ["recP1"]));
  await engine.settled();
  expect(table.records.has("recT2")).toBe(true);
  await equal();
});

test("I7: a worker that dies between a payload and its cursor leaves nothing wrong, and nothing out", async () => {
  const { engine, edit, equal, webhook, source, running } = await liveTeams();
  const hold = Promise.withResolvers<void>();
  source.before = (call) => (call === "ids tblT" ? hold.promise : undefined);
  edit.teams.put(teamRecord("recT3", "Green"));
  edit.people.put(personRecord("recP2", "Bobby"));
  await until(() => source.calls.includes("ids tblT"), { what: "the team is asked for" });
  await until(
    async () => ((await engine.rows("people")) as { name: string }[]).some((p) => p.name === "Bobby"),
    {
      what: "Bobby is there",
    },
  );
  // The later change is durable; the cursor may not say so.
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

test("a failing read of records is on record, holds the cursor, and is made again", async () => {
  const { engine, edit, equal, webhook, source, runs } = await liveTeams();
  let failures = 0;
  source.before = (call) => {
    if (call === "ids tblT" && failures++ < 1) throw new BasetideError("source_schema_changed");
  };
  edit.teams.put(teamRecord("recT3", "Green"));
  await until(() => runs.some((run) => run.error), { what: "the failure is on record" });
  expect(webhook.saved).toBe(1);
  await engine.settled();
  await equal();
  await until(() => runs.at(-1)?.completedAt, { what: "the round is complete" });
});

test("a record that the source says is not there is looked for again before that is believed", async () => {
  const { engine, edit, equal, source, webhook } = await liveTeams();
  let emptied = 0;
  source.onPage = (call, page) => (call.startsWith("ids") && emptied++ === 0 ? pageOf([]) : page);
  edit.teams.put(teamRecord("recT2", "Navy"));
  await until(() => emptied > 0, { what: "it was not there" });
  expect(webhook.saved).toBe(1);
  await engine.settled();
  await equal();
});

test("many changes at once are swept, where that takes no more calls, with what hangs on them", async () => {
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
  // So many changes at once may be those of a schema.
  expect(calls(engine)).toEqual(["ids tblT", "schema", "ids tblT"]);
});

test("a sweep by the feed's order gives way to none, and one for the pass gives way to it", async () => {
  const { engine, edit, equal, source, cadence, runs } = await liveTeams({ teams: 350 });
  const hold = Promise.withResolvers<void>();
  let isHeld = false;
  source.before = (call) => {
    if (call !== "list tblT 200" || isHeld) return;
    isHeld = true;
    return hold.promise;
  };
  cadence.sweepEveryMs = 0;
  await until(() => isHeld, { what: "the pass is in the middle of the table" });
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
  await until(() => runs.some((run) => run.isBackground), { what: "the pass is complete" });
});

test("a gap in the feed is closed by a pass that began after it", async () => {
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

test("a renamed field is renamed as soon as the feed tells", async () => {
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

test("a new table is built, and records that the feed names meanwhile are in it", async () => {
  const { engine, source, webhook, runs } = await liveTeams();
  const added = source.add(
    { id: "tblN", name: "News", primaryFieldId: "fldN", fields: [sourceField("fldN", "Text", "text")] },
    [recordOf("recN1", { fldN: "one" })],
  );
  webhook.tell({ createdTablesById: { tblN: { fieldsById: {}, recordsById: { recN1: {} } } } });
  await engine.settled();
  await until(() => runs.some((run) => run.kind === "rebuild"), { what: "the rebuild is on record" });
  const edit = editor(webhook, { source, table: added });
  edit.put(recordOf("recN2", { fldN: "two" }));
  await engine.settled();
  expect(((await engine.rows("news")) as { text: string }[]).map(({ text }) => text)).toEqual(["one", "two"]);
  source.tables.pop();
  edit.tell({ destroyedRecordIds: ["recN1"] });
  webhook.tell({ destroyedTableIds: ["tblN"] });
  await engine.settled();
});

test("tables are rebuilt at once, so that the rate is the limit and not what the source takes to answer", async () => {
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
  await until(async () => ids.every(Set.prototype.has, new Set(await built())), { what: "all are there" });
});

test("what is in hand of a table that goes is let go, and the cursor moves on", async () => {
  const { engine, edit, webhook, source, replica } = await liveTeams();
  const held = Promise.withResolvers<void>();
  source.before = (call) => (call === "ids tblT" ? held.promise : undefined);
  edit.teams.put(teamRecord("recT3", "Green"));
  await until(() => source.calls.includes("ids tblT"), { what: "its records are in hand" });
  source.tables.splice(0, 1);
  webhook.tell({ destroyedTableIds: ["tblT"] });
  await until(async () => !(await loadCatalog(replica.replica)).has("tblT"), { what: "the table is gone" });
  source.before = () => {};
  held.resolve();
  await engine.settled();
});

test("what only the sweep finds is missed; what the feed tells of is not", async () => {
  const { engine, edit, equal, webhook, cadence, runs } = await liveTeams();
  // Time goes on as ever, and leaps where the test says so.
  const real = performance.now.bind(performance);
  let leapMs = 0;
  const clock = vi.spyOn(performance, "now").mockImplementation(() => real() + leapMs);
  onTestFinished(() => void clock.mockRestore());
  const passes = () => runs.filter((run) => run.isBackground).length;
  edit.teams.silently(teamRecord("recT2", "Navy"));
  cadence.sweepEveryMs = 0;
  await until(() => passes() >= 1, { what: "a pass is complete" });
  cadence.sweepEveryMs = DAY_MS;
  await equal();
  const reads = webhook.reads;
  webhook.notifier.notify();
  await until(() => webhook.reads > reads, { what: "the feed is read" });
  // It may yet tell.
  expect(webhook.missed).toBe(0);

  edit.teams.silently(teamRecord("recT1", "Crimson", ["recP1"]));
  const before = passes();
  leapMs += DAY_MS;
  await until(() => passes() > before, { what: "another pass is complete" });
  // Told of a moment after the sweep found it.
  edit.teams.tell({ changedRecordsById: { recT1: {} } });
  await engine.settled();
  leapMs += 30_000;
  webhook.notifier.notify();
  await until(() => webhook.missed === 1, { what: "one record was missed" });
});

test("I1: a write through the proxy that overlaps with a change elsewhere is never put over it", async () => {
  const { engine, edit, equal, replica, teams: table } = await liveTeams();
  const of = replica.replica;
  const readVersion = await takeReadVersion(of);
  // The proxy's write is answered late; meanwhile somebody has changed the record back, and live mode has read that.
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
  // It has to ask for the record again before it answers its client.
  expect(lost).toEqual(["recT2"]);
  expect(table.records.get("recT2")).toEqual(teamRecord("recT2", "Blue"));
  await equal();
});

test("the lease ends between two rounds, and what is remembered goes on from there", async () => {
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

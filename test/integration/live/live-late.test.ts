/** Late reports of the feed: SQL shows, or a client was answered, something newer by then, and SQL must not go back. */
import { expect, test, vi } from "vitest";
import {
  applyRowImages,
  compileMapper,
  loadCatalog,
  mapRecords,
  takeReadVersion,
} from "../../../core/replica";
import type { SourceRecord } from "../../../core/source";
import { editor } from "../../support/fake-feed";
import { type LiveEngine, liveEngine } from "../../support/live-engine";
import { until } from "../../support/poll";
import { rowsOf, teamRecord, teamsAndPeople } from "../../support/teams";

const MINUTE_MS = 60_000;

vi.setConfig({ testTimeout: 30_000 });

async function live(more = 0) {
  const engine = await liveEngine();
  const { teams, people } = teamsAndPeople();
  const others = Array.from({ length: Math.max(0, more - 2) }, (_, at) =>
    teamRecord(`recM${at}`, `Team ${at}`),
  );
  const table = engine.source.add(teams, [
    teamRecord("recT1", "Red"),
    teamRecord("recT2", "Blue"),
    ...others,
  ]);
  engine.source.add(people, []);
  expect((await engine.sync()).error).toBeUndefined();
  engine.start({ schemaPollMs: 60_000 });
  await until(() => engine.webhook.reads > 0, { what: "the feed is read" });
  const equal = async () => expect(await engine.rows("teams")).toEqual(rowsOf.teams(table.records.values()));
  return { engine, table, equal, edit: editor(engine.webhook, { source: engine.source, table }) };
}

/** Nothing that was written before this call counts as written recently. */
async function rest({ cache, replica: { replica } }: LiveEngine): Promise<void> {
  cache.trimPoints.push({ at: performance.now() - MINUTE_MS, readVersion: await takeReadVersion(replica) });
}

/** Writes through the proxy: SQL shows it when this returns. */
async function write({ replica: { replica }, source }: LiveEngine, record: SourceRecord): Promise<void> {
  const readVersion = await takeReadVersion(replica);
  source.tables[0]!.records.set(record.id, record);
  const live = (await loadCatalog(replica)).get("tblT")!;
  const rows = mapRecords(compileMapper(live.spec), [record], []);
  const images = { epoch: null, readVersion, rows, gone: [], issues: [], records: [record] };
  expect((await applyRowImages(replica, live, images)).lost).toEqual([]);
}

/** Every committed state of the teams, in order, as the names by id. */
async function watched({ replica: { replica } }: LiveEngine) {
  await replica.sql.unsafe(`
    create schema watching;
    create table watching.states (at bigserial, names jsonb);
    create function watching.note() returns trigger language plpgsql as $$ begin
      insert into watching.states (names) select jsonb_object_agg(id, name) from public.teams;
      return null;
    end $$;
    create trigger watch after insert or update or delete on public.teams
      for each statement execute function watching.note()`);
  return async () =>
    (
      await replica.sql<{ names: Record<string, string> }[]>`select names from watching.states order by at`
    ).map(({ names }) => names);
}

test("I1: a record that was destroyed, restored and then written by a client stays when the feed reports its deletion", async () => {
  const { engine, edit, equal } = await live();
  const states = await watched(engine);
  await rest(engine);
  // A user deleted it and undid that, which has not been reported yet; then a client wrote to it.
  await write(engine, teamRecord("recT2", "Written"));
  edit.tell({ destroyedRecordIds: ["recT2"] });
  await engine.settled();
  await equal();
  expect((await states()).map((names) => names.recT2)).not.toContain(undefined);
  edit.tell({ createdRecordsById: { recT2: {} } });
  await engine.settled();
  await equal();
});

test("I2: a record that was destroyed and restored, and is in SQL again, stays when the feed reports its deletion", async () => {
  const { engine, edit, table, equal } = await live();
  await rest(engine);
  const states = await watched(engine);
  edit.put(teamRecord("recT2", "Restored"));
  await engine.settled();
  edit.tell({ destroyedRecordIds: ["recT2"] });
  await engine.settled();
  expect(table.records.has("recT2")).toBe(true);
  await equal();
  expect((await states()).map((names) => names.recT2)).not.toContain(undefined);
});

test("a record without recent writes is deleted when the feed reports it, without a request", async () => {
  const { engine, edit, equal } = await live();
  await rest(engine);
  const calls = engine.source.calls.length;
  edit.destroy("recT2");
  await engine.settled();
  await equal();
  expect(engine.source.calls.length).toBe(calls);
});

test("any number of reported deletions is applied at once, without a request", async () => {
  const { engine, edit, table, equal } = await live(1000);
  await rest(engine);
  const calls = engine.source.calls.length;
  edit.destroy(...table.records.keys());
  await engine.settled();
  await equal();
  expect(engine.source.calls.length).toBe(calls);
});

test("deletions that are newer than every read version are verified by id, and no table is swept for them", async () => {
  const { engine, edit, table, equal } = await live(1000);
  const calls = engine.source.calls.length;
  edit.destroy(...table.records.keys());
  await engine.settled();
  await equal();
  expect(engine.source.calls.slice(calls)).toEqual(Array.from({ length: 10 }, () => "ids tblT"));
});

test("a record that was or may have been written recently is verified before it is deleted", async () => {
  const { engine, edit, equal } = await live();
  edit.destroy("recT1");
  await engine.settled();
  await equal();
  await rest(engine);
  edit.put(teamRecord("recT2", "Navy"));
  await engine.settled();
  edit.destroy("recT2");
  await engine.settled();
  await equal();
  expect(engine.source.calls.filter((call) => call === "ids tblT")).toHaveLength(3);
});

/** Live mode of a base of which only a part is copied. */
import { expect, test, vi } from "vitest";
import { BasetideError } from "../../../core/errors";
import type { SourceSelection } from "../../../core/source";
import { editor } from "../../support/fake-feed";
import { liveEngine } from "../../support/live-engine";
import { until } from "../../support/poll";
import { select, testHash, wholeText } from "../../support/select";
import { sourceTable } from "../../support/source-records";
import { personRecord, recordOf, teamRecord, teamsAndPeople } from "../../support/teams";

vi.setConfig({ testTimeout: 60_000 });

const SECRET = "s3cret";

/** Teams and their people, with only a part of them copied and kept live. */
async function scene(selection: SourceSelection) {
  const engine = await liveEngine({ emptySpellMs: 300, absentMs: [50, 50] });
  const { source, webhook } = engine;
  const { teams, people } = teamsAndPeople();
  const made = {
    teams: source.add(teams, [teamRecord("recT1", "Red", ["recP1"])]),
    people: source.add({ ...people, views: [{ id: "viwA", name: "Those with an A" }] }, [
      personRecord("recP1", "Ann", ["recT1"], ["Red"]),
      personRecord("recP2", `Bob ${SECRET}`),
    ]),
  };
  source.views.set("viwA", ({ fields }) => String(fields.fldPName).startsWith("A"));
  select(engine, selection);
  expect((await engine.sync()).error).toBeUndefined();
  source.calls.length = 0;
  const running = engine.start({ schemaPollMs: 60_000 });
  await until(() => webhook.reads > 0, { what: "the feed is read" });
  const edit = {
    teams: editor(webhook, { source, table: made.teams }),
    people: editor(webhook, { source, table: made.people }),
  };
  const rows = async () => (await engine.rows("people")) as Record<string, unknown>[];
  return { ...made, ...engine, engine, running, edit, rows };
}

test("a change in a table that is not copied reaches the copied cells that show it, and is not read itself", async () => {
  const { edit, rows, source, people, settled } = await scene({
    newTables: "ignore",
    tables: { tblP: { copied: true } },
  });
  people.records.set("recP1", personRecord("recP1", "Ann", ["recT1"], ["Crimson"]));
  edit.teams.silently(teamRecord("recT1", "Crimson", ["recP1"]));
  edit.teams.tell({
    changedRecordsById: { recT1: { current: { cellValuesByFieldId: { fldTName: "Crimson" } } } },
  });
  await until(async () => String((await rows())[0]?.team_names) === "Crimson", {
    what: "the lookup is current",
  });
  await settled();
  expect(source.calls.filter((call) => call.includes("tblT") || call === "schema")).toEqual([]);
});

test("omitted and hashed cells of edited records are nowhere, nor are records that the view does not show", async () => {
  const { edit, rows, engine, settled } = await scene({
    newTables: "ignore",
    tables: { tblP: { copied: true, viewId: "viwA", fields: { fldPName: "hashed", fldPNames: "omitted" } } },
  });
  expect((await rows()).map(({ id }) => id)).toEqual(["recP1"]);
  edit.people.put(personRecord("recP1", "Ann's new name", ["recT1"], [SECRET]));
  edit.people.put(personRecord("recP3", "Al"));
  edit.people.put(personRecord("recP4", `Cem ${SECRET}`));
  edit.people.put(personRecord("recP2", `Bobby ${SECRET}`));
  await settled();
  const expected = [
    ["recP1", testHash("Ann's new name")],
    ["recP3", testHash("Al")],
  ];
  await until(
    async () =>
      Bun.deepEquals(
        (await rows()).map(({ id, name }) => [id, name]),
        expected,
      ),
    {
      what: "the shown records are current",
      timeoutMs: 30_000,
    },
  );
  // An edit lets a record leave the view.
  edit.people.put(personRecord("recP3", "Zoe"));
  await until(async () => (await rows()).length === 1, { what: "it is gone", timeoutMs: 30_000 });
  await settled();
  expect(await wholeText(engine.replica.replica.sql)).not.toContain(SECRET);
});

test("a record that enters or leaves a view without an edit does so in SQL within one full check", async () => {
  const { engine, running, rows, source } = await scene({
    newTables: "ignore",
    tables: { tblP: { copied: true, viewId: "viwA" } },
  });
  expect((await rows()).map(({ id }) => id)).toEqual(["recP1"]);
  await running.stop();
  // No event tells of a filter that was edited, or that depends on the time.
  source.views.set("viwA", ({ fields }) => !String(fields.fldPName).startsWith("A"));
  engine.cadence.sweepEveryMs = 100;
  source.calls.length = 0;
  engine.start({ schemaPollMs: 60_000 });
  const isRight = async () =>
    Bun.deepEquals(
      (await rows()).map(({ id }) => id),
      ["recP2"],
    );
  await until(isRight, { what: "SQL has the other record", timeoutMs: 60_000 });
});

test("a full check that finds the view of a table gone asks for the schema, names the table, and ends", async () => {
  const { engine, running, people, source } = await scene({
    newTables: "copy",
    tables: { tblP: { copied: true, viewId: "viwA" } },
  });
  await running.stop();
  people.table.views = [];
  source.before = (call) => {
    if (call.startsWith("list tblP")) throw new BasetideError("source_schema_changed");
  };
  engine.cadence.sweepEveryMs = 100;
  source.calls.length = 0;
  engine.start({ schemaPollMs: 60_000 });
  const isOver = () => engine.runs.some(({ isBackground, failing }) => isBackground && failing);
  await until(isOver, { what: "the full check has ended without the table" });
  expect(engine.cache.failing.list()).toMatchObject([{ table_id: "tblP", code: "view_gone" }]);
  expect(source.calls.filter((call) => call.startsWith("list tblP"))).toHaveLength(1);
});

test("two of twenty tables cost a tenth of the calls in live mode, too", async () => {
  const engine = await liveEngine();
  const { source, webhook, settled } = engine;
  const tables = Array.from({ length: 20 }, (_, index) => {
    const made = sourceTable(`tbl${index}`, `Table ${index}`, { Name: "text" });
    const fields = made.fields.map((field) => ({ ...field, id: `fld${index}` }));
    const table = { ...made, primaryFieldId: `fld${index}`, fields };
    return source.add(table, [recordOf(`rec${index}`, { [`fld${index}`]: "old" })]);
  });
  const callsOf = async (selection: SourceSelection | null) => {
    select(engine, selection);
    expect((await engine.sync()).error).toBeUndefined();
    source.calls.length = 0;
    const running = engine.start({ schemaPollMs: 60_000 });
    for (const [index, table] of tables.entries())
      editor(webhook, { source, table }).put(
        recordOf(`rec${index}`, { [`fld${index}`]: crypto.randomUUID() }),
      );
    await settled();
    await running.stop();
    return source.calls.filter((call) => call !== "schema").length;
  };
  const chosen = ["tbl0", "tbl1"].map((id) => [id, { copied: true }] as const);
  const some = await callsOf({ newTables: "ignore", tables: Object.fromEntries(chosen) });
  const all = await callsOf(null);
  expect([some, all]).toEqual([2, 20]);
});

test("another view is read at once by the next lease, and no other table is", async () => {
  const both = (viewId?: string): SourceSelection => ({
    newTables: "copy",
    tables: { tblP: { copied: true, ...(viewId && { viewId }) } },
  });
  const { engine, running, rows, source } = await scene(both());
  expect(await rows()).toHaveLength(2);
  await running.stop();
  for (const [viewId, count] of [
    ["viwA", 1],
    [undefined, 2],
  ] as const) {
    select(engine, both(viewId));
    source.calls.length = 0;
    const next = engine.start({ schemaPollMs: 60_000 });
    await until(async () => (await rows()).length === count, { what: `${count} rows`, timeoutMs: 30_000 });
    expect(source.calls).not.toContain("list tblT 0");
    await next.stop();
  }
});

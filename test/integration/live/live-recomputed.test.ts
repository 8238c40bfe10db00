/** Live mode where a change of a field changes cells that no feed reports: their tables are swept. */
import { expect, test, vi } from "vitest";
import { liveTeams } from "../../support/live-teams";
import { until } from "../../support/poll";
import { personRecord, teamRecord } from "../../support/teams";

vi.setConfig({ testTimeout: 30_000 });

/** The lookup's definition changes, which is not reported. */
function recompute({ people }: Awaited<ReturnType<typeof liveTeams>>): void {
  people.table = {
    ...people.table,
    fields: people.table.fields.map((field) =>
      field.id === "fldPNames" ? { ...field, options: { ...field.options, changed: true } } : field,
    ),
  };
  people.records.set("recP1", personRecord("recP1", "Ann", ["recT1"], ["Red!"]));
}

test("a field whose computation changes has its table swept", async () => {
  const scene = await liveTeams();
  const { engine, edit, webhook, source, equal } = scene;
  recompute(scene);
  edit.people.tell({ changedFieldsById: { fldPNames: { current: {} } } });
  await until(() => source.calls.includes("list tblP 0"), { what: "the table is swept" });
  await engine.settled();
  await until(() => webhook.waiting === 0, { what: "nothing waits" });
  await equal();
  expect(source.calls).not.toContain("list tblT 0");
});

test.for([
  ["and the same worker returns", false],
  ["and the next worker has no cache", true],
] as const)(
  "a field whose computation changed while no worker was running has its table swept, %s",
  async ([, isNew]) => {
    const scene = await liveTeams();
    const { engine, running, edit, source, equal } = scene;
    await running.stop();
    recompute(scene);
    // With a cached schema, the worker checks it when the feed reports a change; without one, it does so at once.
    if (isNew) await engine.restart();
    else edit.people.tell({ changedFieldsById: { fldPNames: { current: {} } } });
    engine.start();
    await until(() => source.calls.includes("list tblP 0"), { what: "the table is swept" });
    await until(async () => (await equal().catch(() => "not yet")) === undefined, { what: "it is equal" });
    expect(source.calls).not.toContain("list tblT 0");
  },
);

test("a table that was swept once for it is not swept again by later leases", async () => {
  const { engine, running, source, webhook } = await liveTeams();
  await running.stop();
  await engine.restart();
  const { reads } = webhook;
  const next = engine.start();
  await until(() => webhook.reads > reads, { what: "the feed is read" });
  await engine.settled();
  await next.over();
  expect(source.calls.filter((call) => call.startsWith("list"))).toEqual([]);
});

test("a field that had another type for a moment has all its cells read, and the cells that depend on them", async () => {
  const { engine, edit, webhook, equal } = await liveTeams();
  edit.teams.silently(teamRecord("recT1", "Crimson", ["recP1"]));
  edit.people.silently(personRecord("recP1", "Ann", ["recT1"], ["Crimson"]));
  edit.teams.tell({ changedFieldsById: { fldTName: { current: { type: "number" } } } });
  edit.teams.tell({ changedFieldsById: { fldTName: { current: { type: "text" } } } });
  await engine.settled();
  await until(() => webhook.waiting === 0, { what: "nothing waits" });
  await equal();
});

test("a renamed field causes no reads", async () => {
  const { engine, edit, source, webhook, equal } = await liveTeams();
  edit.teams.tell({ changedFieldsById: { fldTName: { current: { name: "Name", type: "text" } } } });
  await engine.settled();
  await until(() => webhook.waiting === 0, { what: "nothing waits" });
  await equal();
  expect(source.calls.filter((call) => call.startsWith("list"))).toEqual([]);
});

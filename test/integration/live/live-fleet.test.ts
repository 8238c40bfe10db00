/** Live mode, end to end: a sandbox as the source, a console that receives its notifications, workers, Postgres. */
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { startConsole } from "../../../apps/console/start";
import { type Base, getBase, listRuns, updateSettings } from "../../../core/control/bases";
import { indicatorOf } from "../../../core/control/status";
import { expectWell } from "../../support/base-states";
import { expectEqualToSource } from "../../support/equal-to-source";
import type { WireTable } from "../../support/expected-cells";
import { type Fleet, startFleet } from "../../support/fleet";
import { freePort } from "../../support/free-port";
import { until } from "../../support/poll";

vi.setConfig({ testTimeout: 90_000 });

let fleet: Fleet;
const releases = new AsyncDisposableStack();

beforeAll(async () => {
  const port = await freePort();
  fleet = releases.use(
    await startFleet({
      // The feed does not report changes of computed cells: dependents must be derived.
      sandbox: { settings: { webhooks: { computedCells: "not emitted" } } },
      env: { CONSOLE_PORT: String(port), CONSOLE_URL: `http://127.0.0.1:${port}` },
    }),
  );
  const console = await startConsole(fleet.ctx);
  releases.defer(() => console.stop());
});
afterAll(() => releases.disposeAsync());

/** A base in live mode: `teams`, and `people` with lookups of their names. */
async function liveBase(options: { apiKey?: string; people?: number } = {}) {
  const { control } = fleet.sandbox;
  const link = { type: "multipleRecordLinks", options: { linkedTableId: "Teams" } };
  const sourceId = control.createBase({
    name: "Live",
    tables: [
      { name: "Teams", fields: [{ name: "Name", type: "singleLineText" }] },
      { name: "People", fields: [{ name: "Name", type: "singleLineText" }] },
    ],
  });
  const [teams, people] = control.dump(sourceId).tables;
  control.addField(sourceId, people!.id, { name: "Team", ...link, options: { linkedTableId: teams!.id } });
  const fieldId = (name: string, of: string) => {
    const table = control.dump(sourceId).tables.find(({ id }) => id === of) as WireTable | undefined;
    return table!.fields.find((field) => field.name === name)!.id;
  };
  control.addField(sourceId, people!.id, {
    name: "Team name",
    type: "multipleLookupValues",
    options: {
      recordLinkFieldId: fieldId("Team", people!.id),
      fieldIdInLinkedTable: fieldId("Name", teams!.id),
    },
  });
  const teamIds = control.createRecords(sourceId, teams!.id, [
    { fields: { Name: "Red" } },
    { fields: { Name: "Blue" } },
  ]);
  const rows = Array.from({ length: options.people ?? 3 }, (_, index) => ({
    fields: { Name: `P${index}`, Team: [teamIds[0]!] },
  }));
  const peopleIds = control.createRecords(sourceId, people!.id, rows);
  const made = await fleet.connect(sourceId, { live: true });
  if (options.apiKey) await updateSettings(fleet.ctx, made, { apiKey: options.apiKey });
  const base = await inLiveMode(made.id);
  const reader = await fleet.reader(base);
  return { base, sourceId, teams: teams!.id, people: people!.id, teamIds, peopleIds, reader };
}

function inLiveMode(baseId: string): Promise<Base> {
  return until(
    async () => {
      const base = await getBase(fleet.ctx.db, baseId);
      return base.live?.state === "on" && base.live.readAt && base.sync && !base.live.gapSince && base;
    },
    { what: `${baseId} is live`, timeoutMs: 30_000 },
  );
}

test.concurrent("edits are in SQL within a moment, and so are the cells that depend on them", async () => {
  const { base, sourceId, teams, people, teamIds, reader, peopleIds } = await liveBase();
  const { control } = fleet.sandbox;
  const times: number[] = [];
  const shown = async (what: string, query: () => PromiseLike<readonly unknown[]>, count = 1) => {
    const from = performance.now();
    await until(async () => (await query()).length === count, { what, intervalMs: 5, timeoutMs: 20_000 });
    times.push(performance.now() - from);
  };
  control.updateRecords(sourceId, teams, [{ id: teamIds[0]!, fields: { Name: "Crimson" } }]);
  await shown("the team has its new name", () => reader`select from teams where name = 'Crimson'`);
  await shown("and its people show it", () => reader`select from people where team_name = '{Crimson}'`, 3);
  control.createRecords(sourceId, people, [{ fields: { Name: "New", Team: [teamIds[1]!] } }]);
  await shown(
    "the new one is there",
    () => reader`select from people where name = 'New' and team_name = '{Blue}'`,
  );
  control.deleteRecords(sourceId, people, [peopleIds[0]!]);
  await shown("the deleted one is gone", () => reader`select from people where name = 'P0'`, 0);
  await until(
    async () => {
      const { live } = await getBase(fleet.ctx.db, base.id);
      return live?.waiting === 0;
    },
    { what: "nothing waits" },
  );
  await expectEqualToSource(fleet, base);
  const now = await getBase(fleet.ctx.db, base.id);
  expectWell(now);
  expect(now.sync!.kind).toBe("live");
  const runs = await listRuns(fleet.ctx.db, base.id, 50);
  const live = runs.filter((run) => run.kind === "live");
  expect(live.reduce((sum, run) => sum + run.updated + run.inserted + run.deleted, 0)).toBeGreaterThan(0);
  expect(runs.filter((run) => run.error_code)).toEqual([]);
  expect(Math.max(...times)).toBeLessThan(5000);
});

test.concurrent("schema changes are applied at once", async () => {
  const { sourceId, teams, reader, base } = await liveBase();
  const { control } = fleet.sandbox;
  control.renameField(sourceId, teams, "Name", "Title");
  await until(async () => (await reader`select title from teams`).length === 2, {
    what: "the column is renamed",
    retryErrors: true,
    timeoutMs: 20_000,
  });
  control.addTable(sourceId, { name: "News", fields: [{ name: "Text", type: "singleLineText" }] });
  control.createRecords(sourceId, "News", [{ fields: { Text: "first" } }]);
  await until(async () => (await reader`select from news where text = 'first'`).length === 1, {
    what: "the new table exists",
    retryErrors: true,
    timeoutMs: 20_000,
  });
  control.deleteTable(sourceId, "News");
  await until(async () => (await reader`select to_regclass('news') as news`)[0]!.news === null, {
    what: "the dropped table is gone",
    timeoutMs: 20_000,
  });
  await expectEqualToSource(fleet, base);
});

test.concurrent("a key without the webhook scope leaves the base to sweeps; live mode can be disabled and enabled", async () => {
  const { base, sourceId, teams, teamIds, reader } = await liveBase();
  const { control } = fleet.sandbox;
  await updateSettings(fleet.ctx, base, { live: false });
  await until(async () => (await getBase(fleet.ctx.db, base.id)).sync?.kind === "sweep", {
    what: "a plain sweep completes",
    timeoutMs: 20_000,
  });
  await updateSettings(fleet.ctx, base, { live: true });
  await inLiveMode(base.id);
  control.updateRecords(sourceId, teams, [{ id: teamIds[1]!, fields: { Name: "Navy" } }]);
  await until(async () => (await reader`select from teams where name = 'Navy'`).length === 1, {
    what: "the change is in SQL",
    timeoutMs: 20_000,
  });
  const scopes = ["schema.bases:read", "data.records:read"];
  await updateSettings(fleet.ctx, base, { apiKey: control.createKey({ scopes }) });
  await until(async () => (await getBase(fleet.ctx.db, base.id)).live?.state === "refused", {
    what: "live mode is refused",
    timeoutMs: 20_000,
  });
  control.updateRecords(sourceId, teams, [{ id: teamIds[1]!, fields: { Name: "Teal" } }]);
  await until(async () => (await reader`select from teams where name = 'Teal'`).length === 1, {
    what: "a sweep finds the change",
    timeoutMs: 30_000,
  });
  expect(indicatorOf(await getBase(fleet.ctx.db, base.id), new Date())).toMatchObject({
    color: "yellow",
    cause: "live_off",
    reason: expect.stringContaining("webhook:manage"),
  });
});

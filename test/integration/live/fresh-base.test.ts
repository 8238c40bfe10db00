/**
 * A live base after its first sync, while nobody edits it: what it asks Airtable, by the sandbox's own log. No base of
 * the installation has been edited, so no notification has arrived.
 */
import { expect, test } from "vitest";
import type { Base } from "../../../core/control/bases";
import type { Fleet } from "../../support/fleet";
import { connectLive, startLiveFleet } from "../../support/live-fleet";
import { until } from "../../support/poll";

/** The polls of a base whose notifications are expected: after 10 s, a minute, and every five minutes. */
const SECOND_PACE_MS = 40_000;
const LAST_PACE_MS = 240_000;

function createTasks({ sandbox: { control } }: Fleet): string {
  const fields = [{ name: "Name", type: "singleLineText" as const }];
  return control.createBase({
    tables: [{ name: "Tasks", fields, records: [{ fields: { Name: "first" } }] }],
  });
}

/** Time between the last read of the feed and the next one, ms. */
async function paceMs({ ctx: { db } }: Fleet, { id }: Base): Promise<number> {
  const [row] = await db<{ ms: number }[]>`
    select extract(epoch from due_at - read_at)::float8 * 1000 as ms from live_feeds where base_id = ${id}`;
  return row!.ms;
}

async function hasName(fleet: Fleet, base: Base, name: string): Promise<boolean> {
  const owner = await fleet.owner(base);
  return (await owner`select from tasks where name = ${name}`).length === 1;
}

test.concurrent("a base that nobody edits is hardly asked for, though no notification has arrived; its first edit is, for all bases", {
  timeout: 180_000,
}, async () => {
  await using fleet = await startLiveFleet({ sandbox: { settings: { rateLimitOff: true } } });
  const { control } = fleet.sandbox;
  const base = await connectLive(fleet, createTasks(fleet));
  const calls = () => control.log(base.sourceBaseId);
  const before = calls().length;
  await until(async () => (await paceMs(fleet, base)) > SECOND_PACE_MS, {
    what: "the feed was read a second time",
    timeoutMs: 60_000,
  });
  const asked = calls().slice(before);
  expect(asked.length).toBeLessThanOrEqual(2);
  expect(asked.filter(({ path }) => !path.includes("/payloads"))).toEqual([]);

  control.createRecords(base.sourceBaseId, "Tasks", [{ fields: { Name: "edited" } }]);
  await until(() => hasName(fleet, base, "edited"), { what: "the first edit is in SQL", timeoutMs: 30_000 });
  // That notification counts for a base that never had one, and in a worker that starts later.
  await fleet.workers[0]!.stop();
  await fleet.addWorker();
  const other = await connectLive(fleet, createTasks(fleet));
  await until(async () => (await paceMs(fleet, other)) > LAST_PACE_MS, {
    what: "another base relies on notifications",
    timeoutMs: 60_000,
  });
  const reads = control.log(other.sourceBaseId).filter(({ path }) => path.includes("/payloads"));
  expect(reads.length).toBeLessThanOrEqual(2);
});

test.concurrent("without an address, a base that nobody edits is only polled, and its first edit is found by a poll", {
  timeout: 180_000,
}, async () => {
  await using fleet = await startLiveFleet({
    env: { LIVE_PINGS: "off" },
    sandbox: { settings: { rateLimitOff: true } },
  });
  const { control } = fleet.sandbox;
  const base = await connectLive(fleet, createTasks(fleet));
  const before = control.log(base.sourceBaseId).length;
  const asked = () => control.log(base.sourceBaseId).slice(before);
  const polls = () => asked().filter(({ path }) => path.includes("/payloads"));
  await until(() => polls().length >= 5, { what: "the feed is polled", timeoutMs: 60_000 });
  expect(asked().length).toBe(polls().length);
  control.createRecords(base.sourceBaseId, "Tasks", [{ fields: { Name: "edited" } }]);
  await until(() => hasName(fleet, base, "edited"), { what: "the first edit is in SQL", timeoutMs: 30_000 });
});

test.concurrent("a field that is renamed after a first sync has read the schema, and before the feed begins, has its new name in SQL", {
  timeout: 120_000,
}, async () => {
  await using fleet = await startLiveFleet({ sandbox: { settings: { rateLimitOff: true } } });
  const { control } = fleet.sandbox;
  const source = createTasks(fleet);
  control.addFault({ kind: "status_500", method: "POST", path: "/webhooks$", count: 1 });
  control.addFault({ kind: "hang", method: "GET", path: "/webhooks$", count: 1, delayMs: 2000 });
  const connected = connectLive(fleet, source);
  const isSchemaRead = () => control.log(source).some(({ path }) => path.endsWith("/tables"));
  await until(isSchemaRead, { what: "the schema is read", timeoutMs: 20_000 });
  expect(control.webhooks.list(source)).toEqual([]);
  control.renameField(source, "Tasks", "Name", "Title");
  const owner = await fleet.owner(await connected);
  const columns = async () =>
    (
      await owner<{ name: string }[]>`
        select column_name as name from information_schema.columns where table_name = 'tasks'`
    ).map(({ name }) => name);
  await until(async () => (await columns()).includes("title"), {
    what: "the column has the new name",
    timeoutMs: 20_000,
  });
});

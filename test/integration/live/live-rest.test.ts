/** An idle live base: what its lease costs the server of its replica. */
import postgres from "postgres";
import { expect, inject, test } from "vitest";
import { openReplica } from "../../../core/replica";
import { leaveReplica, takeReplica } from "../../../core/sync/lease/lease-replica";
import { emptyCache } from "../../../core/sync/state";
import { freshDatabase } from "../../support/database";
import { connectLive, startLiveFleet } from "../../support/live-fleet";
import { until } from "../../support/poll";

/** Longer than a lease that is not idle. */
const REST_MS = 75_000;

test("an idle live base keeps no logins beyond the duration of a lease, and its next lease reuses the connection", {
  timeout: 300_000,
}, async () => {
  await using fleet = await startLiveFleet({ sandbox: { settings: { rateLimitOff: true } } });
  const { control } = fleet.sandbox;
  const fields = [{ name: "Name", type: "singleLineText" as const }];
  const source = control.createBase({ tables: [{ name: "Tasks", fields, records: [] }] });
  const base = await connectLive(fleet, source);
  // As if a notification had arrived: the feed is read at the next one, and after five minutes.
  await fleet.ctx.db`update live_feeds set notified_at = now() where base_id = ${base.id}`;
  await fleet.ctx.db`select pg_notify('basetide_notification', ${base.id})`;

  const server = postgres(inject("postgresUrl"), { max: 1 });
  const { name } = base.database;
  const facts = async () => {
    const [row] = await server<{ logins: number; open: number }[]>`
      select sessions::int as logins, (select count(*)::int from pg_stat_activity where datname = ${name}) as open
      from pg_stat_database where datname = ${name}`;
    return row!;
  };
  const epoch = async () => {
    const [row] = await fleet.ctx.db<{ epoch: string }[]>`
      select replica_epoch as epoch from bases where id = ${base.id}`;
    return Number(row!.epoch);
  };
  await until(async () => (await facts()).open === 0, { what: "it is idle", timeoutMs: 60_000 });
  const before = { ...(await facts()), epoch: await epoch() };
  await Bun.sleep(REST_MS);
  expect({ ...(await facts()), epoch: await epoch() }).toEqual(before);

  await fleet.ctx.db`select pg_notify('basetide_notification', ${base.id})`;
  await until(async () => (await epoch()) > before.epoch, {
    what: "another lease begins",
    timeoutMs: 60_000,
  });
  await until(async () => (await facts()).open === 0, { what: "it is idle again", timeoutMs: 60_000 });
  // One more if a statement has waited for the first.
  expect((await facts()).logins - before.logins).toBeLessThanOrEqual(2);
  await server.end({ timeout: 1 });
});

test("the next lease reuses the replica connection of the previous one, unless the base has moved", async () => {
  await using database = await freshDatabase();
  const target = { url: database.url, schema: "public" };
  const cache = emptyCache(1);
  const first = openReplica(target);
  leaveReplica(cache, target, first);
  expect(takeReplica(cache, { ...target })).toBe(first);
  expect(takeReplica(undefined, target)).not.toBe(first);
  leaveReplica(cache, target, first);
  const moved = takeReplica(cache, { ...target, schema: "other" });
  expect(moved).not.toBe(first);
  await expect(first.sql`select 1`).rejects.toThrow("CONNECTION_ENDED");
  await moved.close();
});

/**
 * Publications that name none of our tables and publish them all the same: `for all tables`, `for tables in schema`.
 * Postgres then refuses to update or delete in a table that has neither a primary key nor a replica identity.
 */
import type postgres from "postgres";
import { describe, expect, inject, onTestFinished, test, vi } from "vitest";
import { openQueue } from "../../../core/queue";
import {
  applyLinkViews,
  applyRowImages,
  applySettings,
  claimEpoch,
  installReplica,
  markSyncCompleted,
  markSyncStarted,
  openReplica,
  trimHistory,
} from "../../../core/replica";
import { asAdmin, superuserUrl } from "../../support/admin";
import { testControl } from "../../support/control-support";
import { readerOf, testReplica } from "../../support/replica";
import { openShop } from "../../support/shop";

vi.setConfig({ testTimeout: 90_000 });

/** Tables of the database that could not be updated with a publication of all tables. */
async function unidentified(sql: postgres.Sql): Promise<string[]> {
  const tables = await sql<{ name: string }[]>`
    select c.oid::regclass::text as name
    from pg_class as c join pg_namespace as n on n.oid = c.relnamespace
    where c.relkind in ('r', 'p') and c.relpersistence = 'p' and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
      and c.relreplident <> 'f' and not exists (
        select from pg_index as i
        where i.indrelid = c.oid and i.indisvalid and (i.indisreplident or c.relreplident = 'd' and i.indisprimary))
    order by 1`;
  return tables.map(({ name }) => name);
}

test("every table of the control plane has a primary key or a replica identity, including the queue's", async () => {
  await using control = await testControl();
  const queue = await openQueue(control.ctx, control.ctx.config.databaseUrl!, { isWorker: false });
  onTestFinished(() => queue.close());
  expect(await unidentified(control.ctx.db)).toEqual([]);
  const [all] = await control.ctx.db`select count(*)::int as tables from pg_class
    where relkind in ('r', 'p') and relnamespace in ('public'::regnamespace, 'pgboss'::regnamespace)`;
  expect(all!.tables).toBeGreaterThan(30);
});

test("every table of a replica has a primary key or a replica identity, including one that is being built", async () => {
  const { test: made, sql } = await openShop({ Name: "text", Links: "links" });
  await applySettings(made.replica, made.epoch, { history: true, notify: true });
  await applyLinkViews(made.replica, made.epoch, true);
  expect(await unidentified(sql)).toEqual([]);
});

describe.each([
  ["for all tables", "create publication everything for all tables"],
  ["for tables in schema", "create publication everything for tables in schema public"],
])("with a publication %s", (_kind, publication) => {
  test("a replica is installed, synced, changed and trimmed", async () => {
    const { test: made, sql, become, live, drop } = await openShop({ Name: "text" });
    await asAdmin(async (admin) => void (await admin.unsafe(publication)), superuserUrl(made.ownerUrl));
    const { epoch } = made;
    expect(await applySettings(made.replica, epoch, { history: true, notify: true })).toBe(true);
    await applyLinkViews(made.replica, epoch, true);
    await markSyncStarted(made.replica, epoch);
    await become({ Name: "text", Links: "links" });
    const row = { id: "rec2", created_time: "2024-05-01T12:34:56", name: "a", links: ["rec1"] };
    const readVersion = Number.MAX_SAFE_INTEGER;
    await applyRowImages(made.replica, await live(), {
      epoch,
      readVersion,
      rows: [row],
      gone: ["rec1"],
      issues: [],
    });
    await markSyncCompleted(made.replica, epoch);
    await applySettings(made.replica, epoch, { history: false, notify: false });
    await trimHistory(made.replica, epoch, 1);
    expect(await sql`select id from public.orders`).toEqual([{ id: "rec2" }]);
    expect(await sql`select from public._sync_meta where completed_at > started_at`).toHaveLength(1);
    await drop();
    expect(await claimEpoch(made.replica)).toBe(epoch + 1);
  });
});

test("a schema that was published before Basetide was installed works", async () => {
  await using made = await testReplica(inject("postgresUrl"));
  await using owner = readerOf(made.ownerUrl);
  await owner`create publication everything for all tables`;
  await installReplica(made.ownerUrl, { schema: "second", role: made.role });
  const replica = openReplica({ url: made.ownerUrl, schema: "second" });
  await using _closed = { [Symbol.asyncDispose]: () => replica.close() };
  const epoch = await claimEpoch(replica);
  await markSyncStarted(replica, epoch);
  await markSyncCompleted(replica, epoch);
});

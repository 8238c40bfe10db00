/** A query that locks a table before its swap delays that table alone, and no work is done twice for it. */
import type postgres from "postgres";
import { expect, test, vi } from "vitest";
import {
  applySettings,
  changeShape,
  claimEpoch,
  databaseUrl,
  installReplica,
  loadCatalog,
  openReplica,
  planSchema,
  provisionDatabase,
  startBuild,
} from "../../../core/replica";
import type { SourceTable } from "../../../core/source";
import { testEngine } from "../../support/engine";
import { liveEngine } from "../../support/live-engine";
import { until } from "../../support/poll";
import { putBuild } from "../../support/put-build";
import { readerOf, testReplica } from "../../support/replica";
import { replicaServer } from "../../support/replica-server";
import { sourceRecord, sourceTable } from "../../support/source-records";

vi.setConfig({ testTimeout: 90_000 });

const SETTINGS = { linkedRecordsAsText: false, lookupsAsText: false };

function addField({ fields }: SourceTable, name = "More"): void {
  fields.push({ id: `fld${name}`, name, type: "text", sourceType: "text" });
}

/** The table must be swapped: one of its fields is deleted. */
function replaceField(table: SourceTable): void {
  table.fields.pop();
  addField(table);
}

/** A reader's transaction that locks `table`, until the returned function is called. */
async function hold(reader: postgres.Sql, table: string): Promise<() => Promise<void>> {
  const held = await reader.reserve();
  await held`begin`;
  await held`select from ${held(table)}`;
  return async () => {
    await held`commit`;
    held.release();
  };
}

test("sweeps: other tables are synced while a query locks one that was rebuilt, which is read once and then swept", async () => {
  const engine = await testEngine();
  const { source, cache } = engine;
  const people = source.add(sourceTable("tblP", "People", { Name: "text", Old: "text" }), [
    sourceRecord("rec1", { fld0: "Ada" }),
  ]);
  const quotes = source.add(sourceTable("tblQ", "Quotes", { Text: "text" }), [
    sourceRecord("recQ", { fld0: "v0" }),
  ]);
  await engine.sync();
  await using reader = readerOf(engine.replica.readerUrl);
  const letGo = await hold(reader, "people");
  replaceField(people.table);
  source.calls.length = 0;
  const busy = { completedAt: null, error: { code: "replica_busy" } };
  for (const version of ["v1", "v2", "v3"]) {
    quotes.records.set("recQ", sourceRecord("recQ", { fld0: version }));
    expect(await engine.sync()).toMatchObject(busy);
    expect(await engine.rows("quotes")).toMatchObject([{ text: version }]);
  }
  expect(source.calls.filter((call) => call === "list tblP 0")).toHaveLength(1);
  expect([...cache.builds.keys()]).toEqual(["tblP"]);
  // Not in the rebuilt table: a completed sync has it all the same.
  people.records.set("rec2", sourceRecord("rec2", { fld0: "Bob", fldMore: "more" }));
  await letGo();
  expect(await engine.sync()).toMatchObject({ completedAt: expect.any(Date) });
  expect(await engine.rows()).toMatchObject([
    { name: "Ada", more: null },
    { name: "Bob", more: "more" },
  ]);
  expect(source.calls.filter((call) => call === "list tblP 0")).toHaveLength(2);
  expect(cache.builds.size).toBe(0);
});

test("sweeps: a rebuilt table that waits for its swap is read again if the fields have changed", async () => {
  const engine = await testEngine();
  const people = engine.source.add(sourceTable("tblP", "People", { Name: "text", Old: "text" }), [
    sourceRecord("rec1", { fld0: "Ada", fldOther: "x" }),
  ]);
  await engine.sync();
  await using reader = readerOf(engine.replica.readerUrl);
  const letGo = await hold(reader, "people");
  replaceField(people.table);
  expect((await engine.sync()).error?.code).toBe("replica_busy");
  addField(people.table, "Other");
  await letGo();
  expect((await engine.sync()).error).toBe(undefined);
  expect(await engine.rows()).toMatchObject([{ name: "Ada", more: null, other: "x" }]);
});

test("live: other tables are rebuilt while a query locks one, which goes live when the query ends", async () => {
  const engine = await liveEngine();
  const { source } = engine;
  const people = source.add(sourceTable("tblP", "People", { Name: "text", Old: "text" }), [
    sourceRecord("rec1", { fld0: "Ada" }),
  ]);
  const quotes = source.add(sourceTable("tblQ", "Quotes", { Text: "text" }), [
    sourceRecord("recQ", { fld0: "v0" }),
  ]);
  await engine.sync();
  await using reader = readerOf(engine.replica.readerUrl);
  const letGo = await hold(reader, "people");
  replaceField(people.table);
  // A sync before live mode was enabled has left its rebuilt table.
  expect((await engine.sync()).error?.code).toBe("replica_busy");
  addField(quotes.table);
  engine.cache.schemaCheckRequestedAt = new Date();
  engine.start();
  const columns = async (table: string) => Object.keys((await engine.rows(table))[0] as object);
  await until(async () => (await columns("quotes")).includes("more"), {
    what: "quotes is rebuilt",
    timeoutMs: 30_000,
  });
  expect(await columns("people")).not.toContain("more");
  expect(engine.cache.builds.size).toBe(0);
  await letGo();
  await until(async () => (await columns("people")).includes("more"), {
    what: "people is rebuilt",
    timeoutMs: 30_000,
  });
  expect(source.calls.filter((call) => call === "list tblP 0")).toHaveLength(3);
});

test("history of a swap is not computed while a query locks the table", async () => {
  await using made = await testReplica();
  const { replica, epoch } = made;
  const { sql } = replica;
  await applySettings(replica, epoch, { history: true, notify: false });
  const build = async (table: SourceTable) => {
    const plan = planSchema(await loadCatalog(replica), { tables: [table] }, SETTINGS);
    return startBuild(replica, epoch, plan.rebuild[0]!);
  };
  const table = sourceTable("tblO", "Orders", { Price: "number" });
  await putBuild({ replica, epoch }, await build(table), undefined);
  await sql.unsafe(`create sequence public_swap.worked_out;
    create or replace function public_swap.record_merge(p_live public_swap._tables, p_built text, p_table jsonb)
      returns void language sql as $$ select nextval('public_swap.worked_out') $$`);
  const workedOut = async () =>
    (await sql`select is_called, last_value::int as n from public_swap.worked_out`)[0];
  addField(table);
  const second = await build(table);
  const live = (await loadCatalog(replica)).get("tblO");
  await using reader = readerOf(made.readerUrl);
  const letGo = await hold(reader, "orders");
  const swap = () => putBuild({ replica, epoch }, second, live);
  for (let nth = 0; nth < 3; nth++) await expect(swap()).rejects.toMatchObject({ code: "replica_busy" });
  expect(await workedOut()).toEqual({ is_called: false, n: 1 });
  await letGo();
  expect(await swap()).toBe(true);
  expect(await workedOut()).toEqual({ is_called: true, n: 1 });
});

test("an autovacuum that locks a table gives way to its change, and one that locks a build to its first appearance", async () => {
  await using server = await replicaServer({ autovacuum: "on", autovacuum_naptime: "1s" });
  const { database, role } = await provisionDatabase(server.clusterUrl);
  const url = databaseUrl(server.clusterUrl, database);
  await installReplica(url, { schema: "public", role });
  const replica = openReplica({ url, schema: "public" });
  try {
    const { sql } = replica;
    const epoch = await claimEpoch(replica);
    const table = sourceTable("tblO", "Orders", { Price: "number" });
    const first = planSchema(new Map(), { tables: [table] }, SETTINGS);
    await putBuild({ replica, epoch }, await startBuild(replica, epoch, first.rebuild[0]!), undefined);
    const vacuuming = async (relation: string) => {
      await sql.unsafe(`
        insert into ${relation} select 'rec' || i, now(), i from generate_series(1, 100000) as i;
        alter table ${relation} set (autovacuum_vacuum_cost_delay = 100, autovacuum_vacuum_cost_limit = 1,
          autovacuum_vacuum_threshold = 1, autovacuum_vacuum_scale_factor = 0);
        update ${relation} set price = price + 1`);
      const isLocked = async () =>
        (
          await sql`select from pg_locks where relation = ${relation}::regclass and mode = 'ShareUpdateExclusiveLock'
            and granted and pid <> pg_backend_pid()`
        ).length > 0;
      await until(isLocked, { what: "the autovacuum is at work", timeoutMs: 30_000 });
    };
    await vacuuming("public.orders");
    const catalog = await loadCatalog(replica);
    const renamed = planSchema(catalog, { tables: [{ ...table, name: "Purchases" }] }, SETTINGS);
    // A busy machine may need a second try; the vacuum itself would take hours.
    await until(() => changeShape(replica, epoch, catalog, renamed).then(() => true), {
      what: "the table is renamed",
      timeoutMs: 20_000,
      retryErrors: true,
    });
    const both = await loadCatalog(replica);
    expect(both.get("tblO")!.spec.name).toBe("purchases");
    const second = planSchema(
      both,
      { tables: [sourceTable("tblB", "Bills", { Price: "number" })] },
      SETTINGS,
    );
    const build = await startBuild(replica, epoch, second.rebuild[0]!);
    await vacuuming('public_swap."tblB"');
    await until(() => putBuild({ replica, epoch }, build, undefined), {
      what: "the build is live",
      timeoutMs: 20_000,
      retryErrors: true,
    });
    expect((await loadCatalog(replica)).get("tblB")!.spec.name).toBe("bills");
  } finally {
    await replica.close();
  }
});

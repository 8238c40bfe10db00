import { afterAll, beforeAll, expect, test } from "vitest";
import { createBase } from "../../../core/control/bases";
import {
  checkReplicas,
  databaseCredentials,
  getDatabase,
  replicaDatabases,
  setDatabaseWritable,
} from "../../../core/control/placement";
import { isControlServer } from "../../../core/control/placement/same-server";
import { cuttableProxy } from "../../support/cuttable-proxy";
import { type Fleet, startFleet } from "../../support/fleet";
import { until } from "../../support/poll";
import { readerOf } from "../../support/replica";
import { type ReplicaServer, replicaServer } from "../../support/replica-server";

let replicas: ReplicaServer;
let fleet: Fleet;
beforeAll(async () => {
  replicas = await replicaServer();
  fleet = await startFleet({ env: { REPLICA_URL: replicas.clusterUrl, SCHEMA_POLL_SECONDS: "1" } });
});
afterAll(async () => {
  await fleet?.[Symbol.asyncDispose]();
  await replicas?.[Symbol.asyncDispose]();
});

async function writableBase() {
  const sourceId = fleet.sandbox.control.createBase({
    tables: [
      {
        name: "Items",
        fields: [
          { name: "Name", type: "singleLineText" },
          { name: "Spare", type: "singleLineText" },
        ],
        records: [{ fields: { Name: "bolt" } }, { fields: { Name: "nut" } }],
      },
    ],
  });
  const base = await fleet.synced((await fleet.connect(sourceId)).id);
  const { ctx } = fleet;
  await setDatabaseWritable(ctx, await getDatabase(ctx.db, base.database.id), true);
  const { url } = await databaseCredentials(ctx, await getDatabase(ctx.db, base.database.id));
  return { base, url };
}

const forbidden = [
  "insert into items (id, created_time) values ('x', now())",
  "update items set name = 'mine'",
  "delete from items",
  "truncate items",
  "drop table items",
  "alter table items add column mine int",
  "create index on items (name)",
  "create trigger t before insert on items for each row execute function pg_catalog.suppress_redundant_updates_trigger()",
  "create rule r as on select to items do instead select 1",
  "create policy p on items",
  "comment on table items is 'mine'",
  "update _sync_meta set started_at = now()",
  "drop view __sync_meta__",
  "drop schema public cascade",
  "alter schema public rename to other",
  "select * from public_swap._state",
  "create table public_swap.mine (a int)",
  "create schema mine",
  "select lo_create(0)",
  "create role mine",
];

test("I8: in a writable database our tables stay read-only, and the customer's objects belong to the customer", async () => {
  const { url } = await writableBase();
  await using customer = readerOf(url);
  await customer.unsafe(`
    create table notes (id int primary key, item text, note text);
    insert into notes values (1, 'bolt', 'order more');
    create view noted as select i.name, n.note from items as i join notes as n on n.item = i.name;
    create temp table scratch as select 1 as one;`);
  expect(await customer`select * from noted`).toEqual([{ name: "bolt", note: "order more" }]);
  for (const statement of forbidden) {
    const attempt = customer.begin("read write", (query) => query.unsafe(statement));
    const code = await attempt.then(
      () => "done",
      (error: { code?: string }) => error.code,
    );
    expect([statement, code]).toEqual([statement, expect.stringMatching(/^(42501|42809|0A000)$/)]);
  }
});

test("a column is exchanged with the customer's objects in place, and runs none of their functions", async () => {
  const { base, url } = await writableBase();
  await using customer = readerOf(url);
  // Closer matches for calls of syncs than Postgres' own functions: found first if public is in the search path.
  await customer.unsafe(`
    create table notes (id int primary key, item text);
    insert into notes values (1, 'bolt');
    create view names as select name, spare from items;
    create table ran (by name default current_user);
    create function format(text, text) returns text language plpgsql as
      $$ begin insert into public.ran default values; return pg_catalog.format($1, $2); end $$;
    create function quote_ident(name) returns text language plpgsql as
      $$ begin insert into public.ran default values; return pg_catalog.quote_ident($1); end $$;
    create function hashtextextended(text, int) returns bigint language plpgsql as
      $$ begin insert into public.ran default values; return pg_catalog.hashtextextended($1, $2); end $$;`);
  const sql = await fleet.owner(base);
  const typeOf = async () =>
    (
      await sql`select atttypid::regtype::text as type from pg_attribute where attrelid = 'public.items'::regclass and attname = 'spare'`
    )[0]!.type;
  fleet.sandbox.control.createRecords(base.sourceBaseId, "Items", [{ fields: { Name: "washer" } }]);
  fleet.sandbox.control.retypeField(base.sourceBaseId, "Items", "Spare", "number", { precision: 0 });
  await until(async () => (await typeOf()) === "numeric", {
    what: "the column to be exchanged",
    timeoutMs: 60_000,
  });
  const names = () =>
    customer`select name from names order by name`.then((rows) => rows.map(({ name }) => name));
  await until(async () => (await names()).includes("washer"), {
    what: "the customer's view to show the new record",
  });
  expect(await names()).toEqual(["bolt", "nut", "washer"]);
  expect(await customer`select item from notes`).toEqual([{ item: "bolt" }]);
  expect(await customer`select * from ran`).toEqual([]);
});

test("a base that is added to a writable database has a writable schema", async () => {
  const { base, url } = await writableBase();
  const { ctx, sandbox } = fleet;
  const sourceBaseId = sandbox.control.createBase({
    tables: [{ name: "Things", fields: [{ name: "Name", type: "singleLineText" }] }],
  });
  await createBase(ctx, base.accountId, {
    platform: "airtable",
    apiKey: sandbox.key,
    sourceBaseId,
    destination: { kind: "existing", database_id: base.database.id, schema: "added" },
    settings: { live: false },
  });
  await using customer = readerOf(url);
  await customer`create table added.mine (id int)`;
  const database = await getDatabase(ctx.db, base.database.id);
  expect(
    await checkReplicas(ctx, {
      ...database,
      ...(await replicaDatabases(ctx)).find(({ id }) => id === database.id)!,
    }),
  ).toEqual([]);
});

test("revoking the right keeps existing objects, and prevents new ones", async () => {
  const { base, url } = await writableBase();
  await using before = readerOf(url);
  await before`create table notes (id int)`;
  await setDatabaseWritable(fleet.ctx, await getDatabase(fleet.ctx.db, base.database.id), false);
  await using customer = readerOf(url);
  expect(await customer`select * from notes`).toEqual([]);
  for (const statement of ["create table more (id int)", "create temp table more (id int)"]) {
    await expect(customer.begin("read write", (query) => query.unsafe(statement))).rejects.toMatchObject({
      code: "42501",
    });
  }
  await expect(customer`insert into notes values (1)`).rejects.toMatchObject({ code: "25006" });
});

test("S2: a view over the customer's own types is reported, also after the right to write was revoked", async () => {
  const { ctx } = fleet;
  const { base, url } = await writableBase();
  const found = async () => {
    const all = await replicaDatabases(ctx);
    return checkReplicas(ctx, all.find(({ id }) => id === base.database.id)!);
  };
  expect(await found()).toEqual([]);
  await using customer = readerOf(url);
  await customer.unsafe(`create domain trap as text; create type holder as (x trap);
    create view plain as select name from items; create view innocent as select '(a)'::holder as h, name from items`);
  await setDatabaseWritable(ctx, await getDatabase(ctx.db, base.database.id), false);
  expect(await found()).toMatchObject([
    { severity: "warning", message: expect.stringMatching(/the view .*innocent uses type .*holder/) },
  ]);
});

test("on the control plane's server no database is made writable, by whatever address its cluster is known", async () => {
  await using beside = await startFleet({ workers: 0 });
  const sourceId = beside.sandbox.control.createBase({
    tables: [{ name: "Items", fields: [{ name: "Name", type: "singleLineText" }], records: [] }],
  });
  const base = await beside.connect(sourceId);
  const { ctx } = beside;
  // Another name of the same server, and a proxied way to it, like a pooler or an alias.
  await using line = await cuttableProxy(ctx.config.replicaUrl!);
  const id = await idOfCluster(ctx.db);
  for (const adminUrl of [line.url, ctx.config.replicaUrl!]) {
    await ctx.db`
      update clusters set encrypted_admin_url = ${ctx.secrets.encrypt(adminUrl, `clusters.admin_url:${id}`)}`;
    const made = setDatabaseWritable(ctx, await getDatabase(ctx.db, base.database.id), true);
    await expect(made).rejects.toMatchObject({
      code: "conflict",
      message: expect.stringContaining("is on the server of the control plane"),
    });
  }
  expect(await isControlServer(ctx.db, replicas.clusterUrl)).toBe(false);
  expect(await getDatabase(ctx.db, base.database.id)).toMatchObject({ isWritable: false });
  // One that is writable, because the control plane came to its server later, is found and made read-only.
  await ctx.db`update databases set is_writable = true`;
  const [database] = await replicaDatabases(ctx);
  const found = (await checkReplicas(ctx, database!)).find(({ message }) =>
    message.includes("on the server of the control plane"),
  );
  expect(found).toMatchObject({ severity: "problem" });
  await found!.fix!();
  expect(await getDatabase(ctx.db, base.database.id)).toMatchObject({ isWritable: false });
});

async function idOfCluster(db: Fleet["ctx"]["db"]): Promise<string> {
  const [row] = await db<{ id: string }[]>`select id from clusters`;
  return row!.id;
}

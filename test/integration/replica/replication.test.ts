/** Followers of a replica by Postgres' own replication survive its schema changes: a subscriber, and a standby. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import postgres from "postgres";
import { expect, test } from "vitest";
import {
  changeShape,
  claimEpoch,
  dropColumns,
  installReplica,
  loadCatalog,
  onlyDropsColumns,
  openReplica,
  planSchema,
  startBuild,
  type TableSpec,
} from "../../../core/replica";
import type { FieldType } from "../../../core/source";
import { until } from "../../support/poll";
import { putBuild } from "../../support/put-build";
import { scratchFolder } from "../../support/scratch";
import { PASSWORD, postgresServer } from "../../support/servers/postgres-server";
import { startStandby } from "../../support/standby";

const SETTINGS = { linkedRecordsAsText: false, lookupsAsText: false };
const CHANGES = 40;
/** Other sessions may hold the table, or read the catalog. */
const BUSY = { timeoutMs: 60_000, retryErrors: true };
const QUICK = { wal_retrieve_retry_interval: "100ms", max_connections: "200" };

type Field = { id: string; name: string; type: FieldType };
type Step = "add" | "retype" | "rename" | "delete";

/** The next structure: fields are added, retyped, renamed and deleted. */
function next(fields: Field[], nth: number): { step: Step; fields: Field[] } {
  const step = (["add", "retype", "rename", "delete"] as const)[nth % 4]!;
  const victim = fields.at(-1)!;
  if (step === "add")
    return { step, fields: [...fields, { id: `fld${nth}`, name: `Field ${nth}`, type: "text" }] };
  if (step === "delete") return { step, fields: fields.filter(({ id }) => id !== fields[1]!.id) };
  const changed: Field =
    step === "rename"
      ? { ...victim, name: `Named ${nth}` }
      : { ...victim, type: victim.type === "text" ? "number" : "text" };
  return { step, fields: fields.map((field) => (field === victim ? changed : field)) };
}

/**
 * Changes of its table that a subscriber makes like its publisher: Postgres leaves them to it. Rows may arrive before
 * or after.
 */
async function follow(there: postgres.Sql, before: TableSpec, after: TableSpec): Promise<void> {
  const alter = (what: string) => there.unsafe(`alter table airtable.orders ${what}`);
  const old = new Map(before.columns.map((column) => [column.fieldId, column]));
  const kept = new Set(after.columns.map(({ fieldId }) => fieldId));
  for (const { fieldId, name } of before.columns)
    if (!kept.has(fieldId)) await alter(`drop column "${name}"`);
  for (const { fieldId, name, columnType } of after.columns) {
    const was = old.get(fieldId);
    if (!was) await alter(`add column "${name}" ${columnType}`);
    if (was && was.name !== name) await alter(`rename column "${was.name}" to "${name}"`);
    if (was && was.columnType !== columnType) {
      const number = `nullif(regexp_replace("${name}"::text, '[^0-9]', '', 'g'), '')::numeric`;
      const value = columnType === "text" ? `"${name}"::text` : number;
      await alter(`alter column "${name}" type ${columnType} using ${value}`);
    }
  }
}

test(`a subscriber and a standby have every row after ${CHANGES} schema changes`, {
  timeout: 300_000,
}, async () => {
  await using publisher = await postgresServer({
    version: "18",
    settings: { wal_level: "logical", ...QUICK },
  });
  await using subscriber = await postgresServer({ version: "18", settings: QUICK });
  await publisher.run(["create database base"]);
  await subscriber.run(["create database base"]);
  writeFileSync(`${publisher.dataDir}.password`, PASSWORD);
  await using standby = await startStandby(publisher, {
    dataDir: join(scratchFolder("standby"), "postgres"),
    settings: QUICK,
  });
  const url = publisher.as("postgres", "base");
  await installReplica(url, { schema: "airtable", role: "postgres" });
  const replica = openReplica({ url, schema: "airtable" });
  const quiet = { max: 1, onnotice: () => {}, prepare: false } as const;
  const here = postgres(url, quiet);
  const there = postgres(subscriber.as("postgres", "base"), quiet);
  const onStandby = postgres(Object.assign(new URL(standby.server.url), { pathname: "/base" }).href, quiet);
  const rows = async (sql: postgres.Sql) =>
    (await sql`select to_jsonb(o) as row from airtable.orders as o order by id collate "C"`).map(
      ({ row }) => row,
    );
  try {
    const epoch = await claimEpoch(replica);
    const ways = { merged: 0, dropped: 0 };
    const oid = async () => (await here`select 'airtable.orders'::regclass::oid::int as oid`)[0]!.oid;
    let ids = Array.from({ length: 200 }, (_, nth) => `rec${nth}`);
    const become = async (fields: Field[]) => {
      const table = {
        id: "tblO",
        name: "Orders",
        primaryFieldId: "fldA",
        fields: fields.map((f) => ({ ...f, sourceType: f.type })),
      };
      const catalog = await loadCatalog(replica);
      const plan = planSchema(catalog, { tables: [table] }, SETTINGS);
      await changeShape(replica, epoch, catalog, plan);
      for (const spec of plan.rebuild) {
        const live = (await loadCatalog(replica)).get("tblO");
        // Every other deleted field is dropped with a table that was read again.
        if (live && onlyDropsColumns(live.spec, spec) && ways.dropped++ % 2 === 0) {
          const drop = () => dropColumns(replica, epoch, live, spec).then(() => true);
          await until(drop, { what: "the column is dropped", ...BUSY });
          continue;
        }
        const build = await startBuild(replica, epoch, spec);
        const cells = Object.fromEntries(
          spec.columns.map(({ name, columnType }) => [name, columnType === "numeric" ? 7 : "seven"]),
        );
        await build.append(ids.map((id) => ({ id, created_time: "2024-05-01T12:34:56", ...cells })));
        const seen = Number.MAX_SAFE_INTEGER;
        const put = async () =>
          putBuild({ replica, epoch }, build, (await loadCatalog(replica)).get("tblO"), { seen });
        await until(put, { what: "the table is merged", ...BUSY });
        ways.merged++;
      }
      return (await loadCatalog(replica)).get("tblO")!.spec;
    };
    let fields: Field[] = ["A", "B", "C"].map((letter) => ({
      id: `fld${letter}`,
      name: letter,
      type: "text",
    }));
    let spec = await become(fields);
    const first = await oid();
    await here`create publication followed for table airtable.orders`;
    await there.unsafe(`create schema airtable;
      create table airtable.orders (id text primary key, created_time timestamp not null, a text, b text, c text)`);
    await there.unsafe(`create subscription following
      connection 'host=127.0.0.1 port=${publisher.port} dbname=base user=postgres password=${PASSWORD}'
      publication followed`);
    const same = (what: string) =>
      until(async () => Bun.deepEquals(await rows(there), await rows(here)), { what, timeoutMs: 60_000 });
    await same("the subscriber has copied the table");
    const applied = async (what: string) => {
      const [end] = await here<{ lsn: string }[]>`select pg_current_wal_lsn()::text as lsn`;
      const isPast = async () =>
        (
          await here`select from pg_replication_slots
          where slot_name = 'following' and confirmed_flush_lsn >= ${end!.lsn}::pg_lsn`
        ).length === 1;
      await until(isPast, { what, timeoutMs: 60_000 });
    };
    for (let nth = 0; nth < CHANGES; nth++) {
      const change = next(fields, nth);
      // Records that were created and deleted while the table was read for its rebuild.
      if (change.step !== "rename") ids = [...ids.filter((id) => id !== `rec${nth}`), `new${nth}`];
      const before = spec;
      fields = change.fields;
      spec = await become(fields);
      // Rows from before a column was dropped still name it: the subscriber needs its own until it has applied them.
      if (change.step === "delete") await applied(`the subscriber has applied all before change ${nth}`);
      await follow(there, before, spec);
      await here`update airtable.orders set created_time = now() where id = any (${ids.slice(0, 5)})`;
      await here`delete from airtable.orders where id = ${ids[7]!}`;
      await same(`the subscriber has change ${nth}, ${change.step}`);
      ids = (await here<{ id: string }[]>`select id from airtable.orders`).map(({ id }) => id);
    }
    expect(await oid()).toBe(first);
    await standby.caughtUp();
    expect(await rows(onStandby)).toEqual(await rows(here));
    const [left] =
      await onStandby`select pg_is_in_recovery() as is, (select count(*)::int from pg_class where relname ~ '^_kept_[0-9]+$') as kept`;
    expect(left).toEqual({ is: true, kept: 0 });
    expect(await here`select table_name, field, reason from airtable._sync_issues`).toEqual([]);
    // The first table, the added and the retyped fields, and every other deleted one.
    expect(ways).toEqual({ merged: 1 + CHANGES / 2 + Math.floor(CHANGES / 8), dropped: CHANGES / 4 });
  } finally {
    await there.unsafe("drop subscription if exists following").catch(() => {});
    await Promise.all([here, there, onStandby].map((sql) => sql.end({ timeout: 1 })));
    await replica.close();
  }
});

/**
 * Measures the cost of a new field at 300,000 rows, of one that gets another type, of a setting that changes a type, and
 * of a Resync, with two indexes of the customer's on the table (docs/adr/7-in-place-changes.md). Readers query without a
 * pause. In a published table, a subscriber follows, and must have every row at the end. About ten minutes.
 *
 * Run: `bun run bench additive`; BENCH_POSTGRES=15 for that version, BENCH_WAYS=published for the ways whose names match
 */
import postgres from "postgres";
import {
  type Build,
  type CatalogTable,
  claimEpoch,
  compareBuild,
  fillColumns,
  installReplica,
  loadCatalog,
  MERGED_ROWS,
  mergeBuild,
  openReplica,
  planSchema,
  type Replica,
  settleDependents,
  startBuild,
} from "../../core/replica";
import type { SourceTable } from "../../core/source";
import { until } from "../support/poll";
import { PASSWORD, type PostgresServer, postgresServer } from "../support/servers/postgres-server";
import type { PostgresVersion } from "../support/servers/postgres-versions";
import { sourceTable } from "../support/source-records";
import { table } from "./print";

const ROWS = Number(process.env.BENCH_ROWS ?? 300_000);
const BATCH = 5000;
const READERS = 4;
/** The longest that a reader may wait for a new column. */
const BLOCKED_LIMIT_MS = 250;
const MB = 1 << 20;

/** How a build goes live. */
interface Way {
  name: string;
  change: "add" | "retype" | "toggle" | "resync";
  /** SQL for the new column's value in row `n`. */
  value?: string;
  /** Rows that are written while readers wait. */
  most?: number | null;
  /** Whether the limit applies to it. */
  isUsed?: boolean;
  isPublished?: boolean;
}

const options = { seen: Number.MAX_SAFE_INTEGER, issues: [] };

async function merge(replica: Replica, epoch: number, build: Build, live: CatalogTable, most: number | null) {
  const compared = await compareBuild(replica, epoch, build, live, 0);
  const { merging } = await mergeBuild(replica, epoch, build, live, { ...options, most, compared });
  if (merging === "large") {
    await fillColumns(replica, epoch, build, live);
    await merge(replica, epoch, build, live, most);
  } else if (merging !== "merged") throw new Error(merging);
}

const all = "'value ' || n";
const ways: Way[] = [
  {
    name: "merge in one transaction, all rows",
    change: "add",
    value: all,
    most: null,
    isUsed: false,
  },
  {
    name: `merge in one transaction, ${MERGED_ROWS} rows`,
    change: "add",
    value: `case when n <= ${MERGED_ROWS} then 'value ' || n end`,
  },
  { name: "merge, an empty field", change: "add", value: "null" },
  { name: "fill ahead, then merge, all rows", change: "add", value: all },
  { name: "another type, all rows", change: "retype" },
  { name: "a setting, all rows", change: "toggle" },
  { name: "Resync", change: "resync" },
  { name: "published: new field, all rows", change: "add", value: all, isPublished: true },
  { name: "published: another type, all rows", change: "retype", isPublished: true },
  { name: "published: a setting, all rows", change: "toggle", isPublished: true },
  { name: "published: Resync", change: "resync", isPublished: true },
];

const SETTINGS = {
  wal_level: "logical",
  shared_buffers: "256MB",
  max_wal_size: "4GB",
  wal_retrieve_retry_interval: "100ms",
};

export async function run(): Promise<boolean> {
  const version = (process.env.BENCH_POSTGRES ?? "18") as PostgresVersion;
  const wanted = new RegExp(process.env.BENCH_WAYS ?? "");
  await using server = await postgresServer({ version, settings: SETTINGS });
  await using subscriber = await postgresServer({ version, settings: SETTINGS });
  const found = [];
  for (const way of ways.filter(({ name }) => wanted.test(name)))
    found.push(await measure(server, subscriber, way));
  console.log(
    `\nPostgres ${version}, ${ROWS} rows, ${READERS} readers, two indexes of the customer's, without a superuser:`,
  );
  table(
    [
      "way",
      "readers wait, ms",
      "writes wait, ms",
      "shown after, ms",
      "subscriber, ms",
      "WAL, MB",
      "table before, MB",
      "after, MB",
    ],
    found.map(({ way, waitMs, writeMs, shownMs, sentMs, walMb, beforeMb, afterMb }) => [
      way.name,
      ...[waitMs, writeMs, shownMs, sentMs, walMb, beforeMb, afterMb].map((value) => value.toFixed(0)),
    ]),
  );
  return found.every(
    ({ way, waitMs, errors }) => errors === 0 && (way.isUsed === false || waitMs <= BLOCKED_LIMIT_MS),
  );
}

async function measure(server: PostgresServer, subscriber: PostgresServer, way: Way) {
  await using releases = new AsyncDisposableStack();
  await server.run(["create role owner login password 'pw'", "create database base owner owner"]);
  await subscriber.run(["create database base"]);
  releases.defer(async () => {
    await server.run(["drop database base with (force)", "drop role owner"]);
    await subscriber.run(["drop database base with (force)"]);
  });
  const url = server.as("owner", "base");
  await installReplica(url, { schema: "airtable", role: "owner" });
  const replica = openReplica({ url, schema: "airtable" });
  releases.defer(() => replica.close());
  const epoch = await claimEpoch(replica);
  const first = await built(replica, epoch, "first", "null");
  await first.build.moveIn(undefined, options.seen, []);
  const sql = replica.sql as unknown as postgres.Sql;
  await sql.unsafe(
    `create index by_name on airtable.things (name); create index by_amount on airtable.things (amount)`,
  );
  await sql.unsafe(`vacuum analyze airtable.things`);
  const follower = way.isPublished ? await follow(server, subscriber, sql) : undefined;
  releases.defer(async () => follower?.end());
  const [{ oid } = {}] = await sql`select 'airtable.things'::regclass::oid::int as oid`;
  const sizeMb = async () =>
    Number((await sql`select pg_total_relation_size('airtable.things')::text as size`)[0]!.size) / MB;
  const walAt = async () =>
    Number((await sql`select (pg_current_wal_lsn() - '0/0')::text as at`)[0]!.at) / MB;
  const beforeMb = await sizeMb();
  const walFrom = await walAt();
  const { build, live } = await built(replica, epoch, way.change, way.value ?? "null");
  await server.run(["checkpoint"]);
  const readers = startLoops(READERS, async () => {
    const query = postgres(url, { max: 1, onnotice: () => {} });
    let nth = 0;
    return {
      async once() {
        const id = `rec${String(1 + ((nth++ * 7919) % ROWS)).padStart(14, "0")}`;
        const rows = await query.unsafe(
          `select id, name, amount, links from airtable.things where id = '${id}'`,
        );
        if (rows.length !== 1) throw new Error(`${id} is not there`);
      },
      end: () => query.end({ timeout: 1 }),
    };
  });
  // Like every write of a row.
  const writers = startLoops(1, async () => ({
    once: async () => void (await sql`select airtable_swap.lock_table('tblT')`),
    end: async () => {},
  }));
  await Bun.sleep(500);
  const from = performance.now();
  let shownMs = 0;
  let waits: number[] = [];
  const writes = await writers.during(async () => {
    waits = await readers.during(async () => {
      await merge(replica, epoch, build, live!, way.most === undefined ? MERGED_ROWS : way.most);
      shownMs = performance.now() - from;
      while (!(await settleDependents(replica)));
    });
  });
  await follower?.same();
  const sentMs = follower ? performance.now() - from : 0;
  const writeMs = Math.max(...writes);
  const errors = [...(await readers.stop()), ...(await writers.stop())];
  if (errors.length > 0) console.log(way.name, errors[0]);
  const changed = { add: "new", retype: "amount", toggle: "links", resync: "name" }[way.change];
  const [row] =
    await sql`select 'airtable.things'::regclass::oid::int = ${oid}::int as is_same, count(*)::int as n, count(${sql(changed)})::int as filled from airtable.things`;
  console.log(way.name, row, `${Math.max(...waits).toFixed(0)} ms`);
  return {
    way,
    waitMs: Math.max(...waits),
    writeMs,
    shownMs,
    sentMs,
    walMb: (await walAt()) - walFrom,
    beforeMb,
    afterMb: await sizeMb(),
    errors: errors.length,
  };
}

/** Publishes the table to a subscriber, which gets the new column before it arrives. */
async function follow(server: PostgresServer, subscriber: PostgresServer, sql: postgres.Sql) {
  // As its owner may, who is no superuser; only the subscriber needs a role that replicates.
  await server.run(["grant create on database base to owner"]);
  await sql`create publication followed for table airtable.things`;
  const there = postgres(subscriber.as("postgres", "base"), { max: 1, onnotice: () => {} });
  await there.unsafe(`create schema airtable;
    create table airtable.things (id text primary key, created_time timestamp, name text, amount text, done boolean,
      day date, links text, notes text, new text)`);
  await there.unsafe(`create subscription following
    connection 'host=127.0.0.1 port=${server.port} dbname=base user=postgres password=${PASSWORD}' publication followed`);
  const digest = async (on: postgres.Sql) =>
    (
      await on`select md5(string_agg(concat_ws('/', o ->> 'id', o ->> 'name', o ->> 'amount', translate(o ->> 'links', '[]{}" ', ''), o ->> 'new'),
        ' ' order by o ->> 'id' collate "C")) as text from (select to_jsonb(t) as o from airtable.things as t) as r`
    )[0]!.text;
  const same = () =>
    until(async () => (await digest(there)) === (await digest(sql)), {
      what: "the subscriber has every row",
      timeoutMs: 300_000,
      intervalMs: 500,
    });
  await same();
  return {
    same,
    async end() {
      const [stats] = await there`select apply_error_count::int as errors from pg_stat_subscription_stats`;
      if (stats!.errors !== 0) console.log("the subscriber has stopped", stats);
      await there`drop subscription following`;
      await there.end({ timeout: 1 });
    },
  };
}

/** Builds the table separately; its rows are generated in SQL. */
async function built(replica: Replica, epoch: number, change: Way["change"] | "first", value: string) {
  const settings = { linkedRecordsAsText: change === "toggle", lookupsAsText: false };
  const catalog = await loadCatalog(replica);
  const fields = {
    Name: "text",
    Amount: change === "retype" ? "text" : "number",
    Done: "checkbox",
    Day: "date",
    Links: "links",
    Notes: "long_text",
    ...(change === "add" && { New: "text" as const }),
  } as const;
  const source: SourceTable = sourceTable("tblT", "Things", fields);
  const live = catalog.get(source.id);
  const spec = planSchema(catalog, { tables: [source] }, settings).rebuild[0] ?? live!.spec;
  const build = await startBuild(replica, epoch, spec);
  const names = build.spec.columns.map(({ name }) => name);
  const links = change === "toggle" ? "'red, ' || n" : "array['red', n::text]";
  for (let after = 0; after < ROWS; after += BATCH) {
    await replica.sql.unsafe(`insert into airtable_swap."tblT" (id, created_time, ${names.join(", ")})
      select 'rec' || lpad(n::text, 14, '0'), '2024-05-01', 'Thing number ' || n, n, n % 2 = 0, '2024-05-01',
        ${links}, repeat('note ' || n || ' ', 15)${names.includes("new") ? `, ${value}` : ""}
      from generate_series(${after + 1}, ${after + BATCH}) as n`);
  }
  return { build, live };
}

interface Loop {
  once(): Promise<void>;
  end(): Promise<void>;
}

/** Repeats an action. `during` returns the durations, ms, of those that ended while `work` ran or just after. */
function startLoops(count: number, open: () => Promise<Loop>) {
  const errors: unknown[] = [];
  let isOver = false;
  let waits: number[] = [];
  const loops = Array.from({ length: count }, async () => {
    const loop = await open();
    while (!isOver) {
      const from = performance.now();
      await loop.once().catch((error: unknown) => errors.push(error));
      waits.push(performance.now() - from);
      await Bun.sleep(5);
    }
    await loop.end();
  });
  return {
    async during(work: () => Promise<unknown>): Promise<number[]> {
      waits = [];
      await work();
      await Bun.sleep(50);
      return waits;
    },
    async stop(): Promise<unknown[]> {
      isOver = true;
      await Promise.all(loops);
      return errors;
    },
  };
}

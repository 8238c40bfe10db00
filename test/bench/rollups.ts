/**
 * Measures what the charts of a base cost in the control plane: the size of each table of rollups after 31 days of hourly
 * updates, with indexes, divided by the number of bases. Every base has as many keys a day as are stored.
 *
 * Run: `bun run bench rollups`.
 */
import postgres from "postgres";
import { migrateControl } from "../../core/control/setup";
import { MOST_CALLERS } from "../../core/limiter/call-counter";
import { createLogger } from "../../core/log";
import { startTestServer } from "../support/server";
import { table } from "./print";

const BASES = 200;
const DAYS = 31;
const LIMIT_BYTES = 250_000;
const TABLES = ["base_days", "quota_days", "quota_callers"];

export async function run(): Promise<boolean> {
  await using releases = new AsyncDisposableStack();
  const server = await startTestServer();
  releases.defer(() => server.stop());
  await migrateControl(server.url, createLogger("silent", "bench"));
  const sql = postgres(server.url, { max: 1, onnotice: () => {} });
  releases.defer(() => sql.end());
  // The rows belong to bases that this bench does not need.
  await sql`alter table base_days drop constraint base_days_base_fkey`;
  const empty = await sizes(sql);
  for (let day = DAYS; day > 0; day--) {
    for (let hour = 1; hour <= 24; hour++) await addHour(sql, day, hour);
    // As autovacuum does many times a day.
    await sql.unsafe(`vacuum ${TABLES.join(", ")}`);
  }
  const full = await sizes(sql);
  const rows = TABLES.map((name) => [name, Math.round((full[name]! - empty[name]!) / BASES)] as const);
  const total = rows.reduce((sum, [, bytes]) => sum + bytes, 0);
  table(["table", "bytes a base"], [...rows.map(([name, bytes]) => [name, bytes]), ["all", total]]);
  return total <= LIMIT_BYTES;
}

async function sizes(sql: postgres.Sql): Promise<Record<string, number>> {
  const rows = await sql<{ name: string; bytes: number }[]>`
    select t as name, pg_total_relation_size(t::regclass)::float8 as bytes from unnest(${TABLES}::text[]) as t`;
  return Object.fromEntries(rows.map(({ name, bytes }) => [name, bytes]));
}

/** What an hour writes for every base: as `rollUpHours` and `quota_count` do. */
async function addHour(sql: postgres.Sql, daysAgo: number, hour: number): Promise<void> {
  const array = (type: string, value: string) =>
    `array_fill(null::${type}, array[${hour - 1}]) || ${value} || array_fill(null::${type}, array[${24 - hour}])`;
  const counts = (value: string) =>
    `array_fill(0, array[${hour - 1}]) || ${value} || array_fill(0, array[${24 - hour}])`;
  await sql.unsafe(`
    insert into base_days as d (base_id, day, lag_p50_ms, lag_max_ms, changed, issues)
    select 'bas_' || lpad(b::text, 20, '0'), current_date - ${daysAgo}, ${array("real", "900.5::real")},
      ${array("real", "4000.25::real")}, ${array("int", "17")}, ${array("int", "3")}
    from generate_series(1, ${BASES}) as b
    on conflict (base_id, day) do update set lag_p50_ms[${hour}] = excluded.lag_p50_ms[${hour}],
      lag_max_ms[${hour}] = excluded.lag_max_ms[${hour}], changed[${hour}] = excluded.changed[${hour}],
      issues[${hour}] = excluded.issues[${hour}]`);
  await sql.unsafe(`
    insert into quota_days as d (key, day, sync, client)
    select 'airtable:app' || lpad(b::text, 14, '0'), current_date - ${daysAgo}, ${counts("700")}, ${counts("400")}
    from generate_series(1, ${BASES}) as b
    on conflict (key, day) do update set sync[${hour}] = excluded.sync[${hour}], client[${hour}] = excluded.client[${hour}]`);
  await sql.unsafe(`
    insert into quota_callers as c (key, day, caller, calls)
    select 'airtable:app' || lpad(b::text, 14, '0'), current_date - ${daysAgo}, 'patKey' || k || '…', ${counts("40")}
    from generate_series(1, ${BASES}) as b, generate_series(1, ${MOST_CALLERS}) as k
    on conflict (key, day, caller) do update set calls[${hour}] = excluded.calls[${hour}]`);
}

/**
 * The rows that a busy installation updates every few seconds, and a time-lapse of those updates.
 *
 * The statements are recorded from the functions that the service calls, and repeated on the server, each in its own
 * transaction, round-robin over many rows.
 */
import postgres from "postgres";
import { recordRun } from "../../core/control/bases";
import { recordNotification, recordRead, saveCursor } from "../../core/control/feeds";
import { reportWorker } from "../../core/control/fleet";
import { addHolder } from "../../core/queue/jobs";
import { markSyncCompleted, markSyncStarted, markSyncUnchanged, type Replica } from "../../core/replica";
import { until } from "./poll";

/** Stands for the number of a row in recorded statements. */
const ROW = "00000000";
const TABLES_OF_A_BASE = 40;

export interface HotRows {
  /** The tables whose rows it updates. */
  tables: string[];
  statements: string[];
}

/** What many updates have done to a table. */
export interface Wear {
  table: string;
  updates: number;
  /** The share of updates that stayed in their page and touched no index. */
  hotShare: number;
  bytesBefore: number;
  bytesAfter: number;
}

/** Creates `rows` bases and what belongs to them. @returns the updates of a busy control plane */
export async function controlHotRows(url: string, sql: postgres.Sql, rows: number): Promise<HotRows[]> {
  await sql`insert into accounts (id, email) values ('acc', 'a@example.org')`;
  await sql`
    insert into databases (id, account_id, name, role_name, encrypted_url, external_host, external_port)
    values ('db', 'acc', 'db', 'role', 'x', 'db.example.org', 5432)`;
  await sql`
    insert into bases (id, account_id, platform, source_base_id, name, encrypted_api_key, database_id, schema_name, state)
    select 'bas' || lpad(n::text, 8, '0'), 'acc', 'airtable', 'app' || n, 'Base ' || n, repeat('x', 120), 'db', 's' || n,
      'active'
    from generate_series(0, ${rows - 1}) as n`;
  await sql`
    insert into live_feeds (base_id, state, webhook_id, encrypted_secret, notification_url)
    select id, 'on', 'wh' || id, repeat('x', 120), 'https://console.example.org/hooks/' || id from bases`;
  const baseId = `bas${ROW}`;
  const startedAt = new Date();
  const run = {
    kind: "sweep" as const,
    startedAt,
    completedAt: new Date(startedAt.getTime() + 900),
    seen: 40_000,
    inserted: 0,
    updated: 3,
    deleted: 0,
    requests: 400,
    waitMs: 10,
    tables: Array.from({ length: TABLES_OF_A_BASE }, (_, index) => ({
      name: `table_${index}`,
      source_name: `Table ${index}`,
      source_id: `tbl${crypto.randomUUID()}`,
      records: 1000 + index,
    })),
    issueCount: 0,
    issues: [],
  };
  const read = { readMsAgo: 100, dueInMs: 1000, waiting: 0, changedAt: startedAt, missed: 0 };
  const worker = {
    id: `wrk${ROW}`,
    host: "alpha",
    pid: 1,
    startedAt,
    bases: 5,
    capacity: 200,
  };
  const recorded = (work: (db: postgres.Sql) => Promise<unknown>) => recordedStatements(url, work);
  return [
    { tables: ["bases", "sync_runs"], statements: await recorded((db) => recordRun(db, baseId, run)) },
    {
      tables: ["live_feeds"],
      statements: await recorded(async (db) => {
        await recordNotification(db, "http://localhost:3000", baseId);
        await recordRead(db, baseId, read);
        await saveCursor(db, baseId, `whbas${ROW}`, 7);
      }),
    },
    { tables: ["processes"], statements: await recorded((db) => reportWorker(db, worker)) },
    { tables: ["job_holders"], statements: await recorded((db) => addHolder(db, `holder${ROW}`)) },
    {
      tables: ["quota_permits"],
      statements: [
        `select quota_heartbeat('worker${ROW}', 'worker${ROW}', false, null, 0, false, 5)`,
        `select quota_trade('airtable:app${ROW}', 'worker${ROW}', 1, 'sync', 5, 5, '{}', '{}', 5, 2)`,
        `select quota_trade('airtable:app${ROW}', 'worker${ROW}', 1, 'sync', 0, 5, '{1,2,3,4,5}', '{9,9,9,9,9}', 5, 2)`,
      ],
    },
    {
      tables: ["quota_calls", "quota_minutes", "quota_kinds"],
      statements: [
        `select quota_count('[{"key": "airtable:app${ROW}", "sync": 30, "client": 3, "kinds": {"sweep": 5}, "callers": {}}]', 10, '2026-01-01')`,
      ],
    },
    {
      tables: ["quota_holders"],
      statements: [`select quota_heartbeat('proxy${ROW}', 'proxy${ROW}', true, null, 0, false, 5)`],
    },
  ];
}

/** Returns the updates of a replica that is synced all the time. */
export async function replicaHotRows(url: string, replica: Replica, epoch: number): Promise<HotRows[]> {
  const recorded = (work: (replica: Replica) => Promise<unknown>) =>
    recordedStatements(url, (sql) => work({ ...replica, sql: sql as unknown as Replica["sql"] }));
  return [
    {
      tables: ["_sync_meta"],
      statements: await recorded(async (one) => {
        await markSyncStarted(one, epoch);
        await markSyncCompleted(one, epoch);
        await markSyncUnchanged(one, epoch, 100);
      }),
    },
    {
      tables: ["_state"],
      statements: [`update ${replica.swap}._state set recent_writes_floor = recent_writes_floor + 1`],
    },
  ];
}

/** Returns the updates of the recent-writes log by records that are written all the time: their order is indexed. */
export function recentWritesHotRows({ swap }: Replica): HotRows[] {
  const image = JSON.stringify({ id: `rec${ROW}`, fields: { fld1: "x".repeat(300) } });
  return [
    {
      tables: ["_recent_writes"],
      statements: [
        `select ${swap}.record_row_image('tbl1', ${Number.MAX_SAFE_INTEGER}, 'rec${ROW}', false, '${image}')`,
      ],
    },
  ];
}

/**
 * Updates rows of each of the tables `updates` times, taking turns among this many rows.
 *
 * @param vacuumEvery updates between two vacuums, for tables that depend on autovacuum: in a time-lapse it would come too
 *   late by as much as time passes faster
 */
export async function wearOut(
  sql: postgres.Sql,
  { tables, statements }: HotRows,
  rows: number,
  updates: number,
  vacuumEvery = updates,
): Promise<Wear[]> {
  // Every row exists before the updates are counted.
  await repeat(sql, statements, rows, rows);
  const before = await statistics(sql, tables);
  for (let done = 0; done < updates; done += vacuumEvery) {
    await repeat(sql, statements, rows, Math.min(vacuumEvery, updates - done));
    if (vacuumEvery < updates)
      for (const table of before) await sql`vacuum ${sql(table.schema)}.${sql(table.table)}`;
  }
  const after = await until(
    async () => {
      const now = await statistics(sql, tables);
      return now.every((one, index) => one.updates - before[index]!.updates >= updates) ? now : undefined;
    },
    { what: `the statistics of ${tables}`, timeoutMs: 60_000 },
  );
  return tables.map((table, index) => {
    const [from, to] = [before[index]!, after[index]!];
    const counted = to.updates - from.updates;
    const hotShare = (to.hot - from.hot) / counted;
    return { table, updates: counted, hotShare, bytesBefore: from.bytes, bytesAfter: to.bytes };
  });
}

/** Each statement is a transaction: a page is pruned of versions that no transaction sees. */
async function repeat(sql: postgres.Sql, statements: string[], rows: number, times: number): Promise<void> {
  const each = statements.map(
    (text) =>
      `execute replace($statement$${text}$statement$, '${ROW}', lpad((n % ${rows})::text, 8, '0')); commit;`,
  );
  const connection = await sql.reserve();
  try {
    await connection.unsafe("set synchronous_commit = off");
    await connection.unsafe(`do $do$ begin for n in 1..${times} loop ${each.join("\n")} end loop; end $do$`);
    // Backends report their counts later otherwise.
    await connection.unsafe("select pg_stat_force_next_flush()");
  } finally {
    connection.release();
  }
}

async function statistics(sql: postgres.Sql, tables: string[]) {
  const rows = await sql<{ schema: string; table: string; updates: number; hot: number; bytes: number }[]>`
    select schemaname as schema, relname as table, n_tup_upd::float8 as updates, n_tup_hot_upd::float8 as hot,
      pg_total_relation_size(relid)::float8 as bytes
    from pg_stat_user_tables where relname = any (${tables})`;
  return tables.map((table) => rows.find((row) => row.table === table)!);
}

/** Runs `work`, and returns its statements with their parameters as literals. */
async function recordedStatements(
  url: string,
  work: (sql: postgres.Sql) => Promise<unknown>,
): Promise<string[]> {
  const recorded: string[] = [];
  await using sql = Object.assign(
    postgres(url, {
      max: 1,
      onnotice: () => {},
      debug: (_connection, query, parameters) => {
        if (!query.includes("pg_catalog.pg_type")) recorded.push(withLiterals(query, parameters));
      },
    }),
    { [Symbol.asyncDispose]: () => sql.end({ timeout: 1 }) },
  );
  await work(sql);
  return recorded;
}

function withLiterals(query: string, parameters: unknown[]): string {
  return query.replace(/\$(\d+)/g, (_, number) => literal(parameters[Number(number) - 1]));
}

function literal(value: unknown): string {
  if (value === null || value === undefined) return "null";
  const text = Array.isArray(value)
    ? `{${value.join(",")}}`
    : value instanceof Date
      ? value.toISOString()
      : String(value);
  return `'${text.replaceAll("'", "''")}'`;
}

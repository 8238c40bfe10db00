/**
 * Measures the first sync of a large table, and the exchange of a column in its rebuild: memory and CPU of the worker, CPU of the
 * replica's server, beside those of COPY, and how long readers wait.
 *
 * The worker, the source and the server are separate processes. There is no rate limit, so memory is that of a worker
 * that is always busy. Run: `bun run bench first-sync`, with FIRST_RECORDS (500000), FIRST_FIELDS (100) and
 * FIRST_READERS (4). FIRST_TABLES (1) measures the first sync only, of that many tables with FIRST_RECORDS each.
 */
import postgres from "postgres";
import { databaseUrl, dropDatabase, installReplica, provisionDatabase } from "../../core/replica";
import { until } from "../support/poll";
import { cpuSeconds, parentOf, residentBytes } from "../support/process-usage";
import { startProgram } from "../support/program";
import { startTestServer } from "../support/server";
import { ratio, table } from "./print";

const RECORDS = Number(process.env.FIRST_RECORDS ?? 500_000);
const FIELDS = Number(process.env.FIRST_FIELDS ?? 100);
const READERS = Number(process.env.FIRST_READERS ?? 4);
const TABLES = Number(process.env.FIRST_TABLES ?? 1);
const MEMORY_LIMIT_MB = 300;
const BLOCKED_LIMIT_MS = 250;
const SAMPLE_MS = 50;
/** A query that runs this close to the exchange may have waited for it. */
const EXCHANGE_MS = 2000;
const MB = 2 ** 20;

interface Synced {
  seconds: number;
  peakBytes: number;
  workerCpu: number;
  serverCpu: number;
  report: { kind: string; seen: number; inserted: number; error?: string };
}

export async function run(): Promise<boolean> {
  await using releases = new AsyncDisposableStack();
  const server = await startTestServer();
  releases.defer(() => server.stop());
  const { database, role, password } = await provisionDatabase(server.url);
  releases.defer(() => dropDatabase(server.url, database, role));
  const url = databaseUrl(server.url, database);
  await installReplica(url, { schema: "public", role });
  const owner = postgres(url, { max: 1, onnotice: () => {} });
  releases.defer(() => owner.end({ timeout: 1 }));
  const [backend] = await owner<{ pid: number }[]>`select pg_backend_pid() as pid`;
  const serverPid = parentOf(backend!.pid);

  const source = Bun.spawn(
    [process.execPath, "test/bench/large-table-source.ts", `${RECORDS}`, `${FIELDS}`],
    {
      stdin: "pipe",
      stdout: "pipe",
    },
  );
  releases.defer(async () => {
    source.stdin.end();
    await source.exited;
  });
  const { value } = await source.stdout.getReader().read();
  const env = {
    REPLICA: url,
    SOURCE: `http://127.0.0.1:${new TextDecoder().decode(value).trim()}`,
    FIELDS: `${FIELDS}`,
    TABLES: `${TABLES}`,
  };

  const floor = await synced(env, serverPid, "first-sync-floor.ts");
  const first = await synced(env, serverPid);
  if (TABLES > 1) return printTables(floor, first);
  await owner`create index on public.large (field_0)`;
  await owner`create index on public.large (field_1)`;
  await owner`create index on public.large (field_3)`;
  const readerUrl = Object.assign(new URL(url), { username: role, password }).href;
  const readers = startReaders(readerUrl);
  // A number that becomes a text needs a new column.
  const rebuilt = await synced({ ...env, RETYPED: "Field 1" }, serverPid);
  const { waits, errors, exchangedAt } = await readers.stop();
  const [{ bytes } = { bytes: 0 }] = await owner<{ bytes: number }[]>`
    select pg_total_relation_size('public.large')::float8 as bytes`;
  const isAtExchange = ({ from, to }: Wait) =>
    to > exchangedAt - EXCHANGE_MS && from < exchangedAt + EXCHANGE_MS;
  const longest = longestOf(waits.filter(isAtExchange));
  const otherwise = longestOf(waits.filter((wait) => !isAtExchange(wait)));
  const row = (name: string, one: Synced) => [
    name,
    one.report.error ?? `${one.report.kind}, ${one.report.seen} records`,
    `${one.seconds.toFixed(0)} s`,
    `${(one.peakBytes / MB).toFixed(0)} MB`,
    `${((1e6 * one.workerCpu) / RECORDS).toFixed(0)} µs a record`,
    `${((1e6 * one.serverCpu) / RECORDS).toFixed(0)} µs a record`,
  ];
  console.log(`\n${RECORDS} records with ${FIELDS} fields, ${(bytes / MB).toFixed(0)} MB with four indexes:`);
  table(
    ["", "result", "duration", "peak memory", "CPU of the worker", "CPU of the server"],
    [row("COPY", floor), row("first sync", first), row("rebuild", rebuilt)],
  );
  const times = (part: (one: Synced) => number) => (part(first) / part(floor)).toFixed(2);
  console.log(
    `compared with COPY: CPU of the server ${times((one) => one.serverCpu)} times; of worker and server ${times((one) => one.workerCpu + one.serverCpu)} times`,
  );
  const memory = ratio(Math.max(first.peakBytes, rebuilt.peakBytes) / MB / MEMORY_LIMIT_MB, 1);
  const blocked = ratio(longest / BLOCKED_LIMIT_MS, 1);
  console.log(`memory: ${memory.text} of ${MEMORY_LIMIT_MB} MB`);
  console.log(
    `longest wait of a reader at the exchange: ${longest.toFixed(0)} ms, ${blocked.text} of ${BLOCKED_LIMIT_MS} ms; before it, while rows were written: ${otherwise.toFixed(0)} ms`,
  );
  if (errors.length > 0) console.log(`${errors.length} queries failed: ${errors[0]}`);
  if (exchangedAt === 0) errors.push("the column was not exchanged");
  const isWhole = [first, rebuilt].every(({ report }) => !report.error && report.seen === RECORDS);
  return isWhole && memory.isWithin && blocked.isWithin && errors.length === 0;
}

function printTables(floor: Synced, first: Synced): boolean {
  const row = (name: string, { report, workerCpu, serverCpu }: Synced) => [
    name,
    report.error ?? `${report.seen} records`,
    `${((1000 * workerCpu) / TABLES).toFixed(1)} ms`,
    `${((1000 * serverCpu) / TABLES).toFixed(1)} ms`,
  ];
  console.log(`\n${TABLES} tables of ${RECORDS} records with ${FIELDS} fields, CPU a table:`);
  table(["", "result", "worker", "server"], [row("COPY", floor), row("first sync", first)]);
  return !first.report.error && first.report.seen === TABLES * RECORDS;
}

/** Runs the worker's process, and samples its memory. */
async function synced(
  env: Record<string, string>,
  serverPid: number,
  program = "first-sync-worker.ts",
): Promise<Synced> {
  const [at, serverFrom] = [performance.now(), cpuSeconds(serverPid)];
  await using worker = startProgram(`test/bench/${program}`, [], env);
  let isOver = false;
  let [peakBytes, workerCpu] = [0, 0];
  const over = worker.exited.then(() => {
    isOver = true;
  });
  await until(
    () => {
      if (isOver) return true;
      try {
        peakBytes = Math.max(peakBytes, residentBytes(worker.pid));
        workerCpu = cpuSeconds(worker.pid);
      } catch {
        // It has just ended.
      }
      return false;
    },
    { what: "the sync to end", timeoutMs: 3600_000, intervalMs: SAMPLE_MS },
  );
  await over;
  const last = worker.output().trim().split("\n").at(-1);
  if (!last?.startsWith("{")) throw new Error(worker.errors());
  const serverCpu = cpuSeconds(serverPid) - serverFrom;
  return {
    seconds: (performance.now() - at) / 1000,
    peakBytes,
    workerCpu,
    serverCpu,
    report: JSON.parse(last),
  };
}

interface Wait {
  /** performance.now() */
  from: number;
  to: number;
}

/** Queries rows by id again and again, over connections of their own, and notices when a column is exchanged. */
function startReaders(url: string) {
  let isOver = false;
  let exchangedAt = 0;
  const waits: Wait[] = [];
  const errors: string[] = [];
  const connected = async (work: (sql: postgres.Sql) => Promise<void>) => {
    const sql = postgres(url, { max: 1, prepare: false, onnotice: () => {} });
    await work(sql);
    await sql.end({ timeout: 1 });
  };
  const loops = Array.from({ length: READERS }, (_, nth) =>
    connected(async (sql) => {
      for (let count = nth; !isOver; count++) {
        const id = `rec${String((count * 7919) % RECORDS).padStart(14, "0")}`;
        const from = performance.now();
        const rows = await sql`select id, field_0 from large where id = ${id}`.catch((error: Error) => {
          errors.push(error.message);
          return [];
        });
        waits.push({ from, to: performance.now() });
        if (rows.length === 0) errors.push(`${id} is missing`);
        await Bun.sleep(5);
      }
    }),
  );
  const watch = connected(async (sql) => {
    let known: number | undefined;
    while (!isOver) {
      // Without a lock on the table.
      const [row] = await sql<{ type: number }[]>`
        select atttypid::int as type from pg_attribute
        where attrelid = to_regclass('public.large') and attname = 'field_1' and not attisdropped`;
      if (row && known !== undefined && row.type !== known) exchangedAt = performance.now();
      known = row?.type ?? known;
      await Bun.sleep(SAMPLE_MS);
    }
  });
  return {
    async stop() {
      isOver = true;
      await Promise.all([...loops, watch]);
      return { waits, errors, exchangedAt };
    },
  };
}

function longestOf(waits: Wait[]): number {
  return waits.reduce((most, { from, to }) => Math.max(most, to - from), 0);
}

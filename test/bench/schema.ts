/**
 * Measures the effect of schema changes on readers: an exchange of columns must not be noticeable, and a rename must be visible in time
 * without rewriting a row.
 *
 * A field of a table of 100,000 rows gets another type repeatedly under 20 readers that query it without a pause, while another session
 * sometimes holds a lock on it for seconds; and a table of a base during sweeps is renamed at random moments. About a
 * minute. Run: `bun run bench schema`
 */
import postgres from "postgres";
import { isBasetideError } from "../../core/errors";
import {
  claimEpoch,
  compileMapper,
  databaseUrl,
  dropDatabase,
  installReplica,
  loadCatalog,
  MERGED_ROWS,
  mapRecords,
  openReplica,
  planSchema,
  provisionDatabase,
  type Replica,
  startBuild,
} from "../../core/replica";
import type { SourceTable } from "../../core/source";
import { startFleet } from "../support/fleet";
import { until } from "../support/poll";
import { putBuild } from "../support/put-build";
import { startSandboxProcess } from "../support/sandbox-process";
import { startTestServer } from "../support/server";
import { sourceRecord, sourceTable } from "../support/source-records";
import { ratio, table } from "./print";

const ROWS = 100_000;
const BATCH = 2000;
const READERS = 20;
const ROUNDS = 4;
const BLOCKED_LIMIT_MS = 250;
/** How long a session holds the table's lock before every second change. */
const HELD_MS = 1500;
const RETRY_MS = 250;

const RENAMES = 5;
const POLL_SECONDS = 4;
/** Requests a second of a sync without turbo. */
const RATE = 3;
/** The sandbox's longest time for an answer. */
const ANSWER_MS = 250;

export async function run(): Promise<boolean> {
  await using releases = new AsyncDisposableStack();
  const server = await startTestServer();
  releases.defer(() => server.stop());
  const swaps = await swapUnderReaders(server.url);
  const renames = await renameWhileSwept(server.url);
  return swaps && renames;
}

async function swapUnderReaders(adminUrl: string): Promise<boolean> {
  await using releases = new AsyncDisposableStack();
  const { database, role, password } = await provisionDatabase(adminUrl);
  releases.defer(() => dropDatabase(adminUrl, database, role));
  const url = databaseUrl(adminUrl, database);
  await installReplica(url, { schema: "public", role });
  const replica = openReplica({ url, schema: "public" });
  releases.defer(() => replica.close());
  const epoch = await claimEpoch(replica);
  await (await built(replica, epoch, shape(0)))();

  const readerUrl = new URL(url);
  readerUrl.username = role;
  readerUrl.password = password;
  const connect = () => {
    const sql = postgres(readerUrl.toString(), { max: 1, onnotice: () => {} });
    releases.defer(() => sql.end({ timeout: 1 }));
    return sql;
  };
  const holder = connect();
  const readers = startReaders(Array.from({ length: READERS }, connect));
  const quiet = await readers.during(() => Bun.sleep(3000));
  const waits: number[] = [];
  let queries = 0;
  let tries = 0;
  for (let round = 1; round <= ROUNDS; round++) {
    const put = await built(replica, epoch, shape(round));
    const seen = await readers.during(async () => {
      let held: Promise<unknown> = Promise.resolve();
      if (round % 2 === 0) {
        const begun = Promise.withResolvers<void>();
        held = holder.begin(async (query) => {
          await query`select id from things limit 1`;
          begun.resolve();
          await query`select pg_sleep(${HELD_MS / 1000})`;
        });
        await begun.promise;
      }
      tries += await put();
      await held;
    });
    waits.push(Math.max(...seen));
    queries += seen.length;
  }
  const errors = await readers.stop();
  const worst = ratio(Math.max(...waits) / BLOCKED_LIMIT_MS, 1);
  console.log(
    `\n${ROWS} rows changed ${ROUNDS} times in ${tries} tries under ${READERS} readers (${queries} queries):`,
  );
  table(
    ["longest query", "ms", `of ${BLOCKED_LIMIT_MS} ms`],
    [
      ["nothing changed", Math.max(...quiet).toFixed(0), (Math.max(...quiet) / BLOCKED_LIMIT_MS).toFixed(3)],
      ["while a column is exchanged", Math.max(...waits).toFixed(0), worst.text],
    ],
  );
  console.log(`reader errors: ${errors.length}${errors.length > 0 ? ` (${errors[0]})` : ""}`);
  return worst.isWithin && errors.length === 0 && tries > ROUNDS;
}

/** In every other shape, a field has another type. */
function shape(round: number): SourceTable {
  const fields = {
    Name: "text",
    Amount: "number",
    Done: "checkbox",
    Day: "date",
    Tags: "multiple_select",
  } as const;
  return sourceTable("tblT", "Things", round % 2 === 0 ? fields : { ...fields, Amount: "text" });
}

/**
 * Builds the table of `source` separately. The returned function makes it live, as a rebuild does, and returns the number
 * of tries.
 */
async function built(replica: Replica, epoch: number, source: SourceTable): Promise<() => Promise<number>> {
  const settings = { linkedRecordsAsText: false, lookupsAsText: false };
  const plan = planSchema(await loadCatalog(replica), { tables: [source] }, settings);
  const build = await startBuild(replica, epoch, plan.rebuild[0]!);
  const map = compileMapper(build.spec);
  for (let from = 0; from < ROWS; from += BATCH) {
    const records = Array.from({ length: BATCH }, (_, index) =>
      sourceRecord(`rec${String(from + index).padStart(14, "0")}`, {
        fld0: `Thing number ${from + index}`,
        fld1: from + index,
        fld2: true,
        fld3: "2024-05-01",
        fld4: ["red", "green"],
        fld5: "more",
      }),
    );
    await build.append(mapRecords(map, records, []));
  }
  return async () => {
    for (let tries = 1; ; tries++) {
      const live = (await loadCatalog(replica)).get(source.id);
      try {
        if (await putBuild({ replica, epoch }, build, live, { most: MERGED_ROWS })) return tries;
      } catch (error) {
        if (!isBasetideError(error, "replica_busy")) throw error;
        await Bun.sleep(RETRY_MS);
      }
    }
  };
}

/** Queries without a pause. `during` returns the durations, ms, of those that ran while `work` did. */
function startReaders(connections: postgres.Sql[]) {
  const errors: unknown[] = [];
  let isOver = false;
  let waits: number[] = [];
  const loops = connections.map(async (sql, reader) => {
    for (let query = reader; !isOver; query += READERS) {
      const id = `rec${String((query * 7919) % ROWS).padStart(14, "0")}`;
      const from = performance.now();
      try {
        const rows = await sql.unsafe(`select id, name, amount, tags from things where id = '${id}'`);
        if (rows.length !== 1) throw new Error(`${id} is not there`);
      } catch (error) {
        errors.push(error);
      }
      waits.push(performance.now() - from);
    }
  });
  return {
    async during(work: () => Promise<unknown>): Promise<number[]> {
      waits = [];
      await work();
      return waits;
    },
    async stop(): Promise<unknown[]> {
      isOver = true;
      await Promise.all(loops);
      return errors;
    },
  };
}

async function renameWhileSwept(adminUrl: string): Promise<boolean> {
  await using releases = new AsyncDisposableStack();
  const source = releases.use(await startSandboxProcess());
  await source.settings({
    latency: { before: { minMs: 25, maxMs: ANSWER_MS / 2 }, after: { minMs: 25, maxMs: ANSWER_MS / 2 } },
  });
  const fleet = releases.use(
    await startFleet({
      source,
      databaseUrl: adminUrl,
      env: { SCHEMA_POLL_SECONDS: String(POLL_SECONDS) },
    }),
  );
  const sourceId = await source.generate({ records: 1500, tables: 3, seed: 5 });
  const base = await fleet.connect(sourceId);
  await fleet.synced(base.id, 60_000);
  const owner = await fleet.owner(base);
  const reader = await fleet.reader(base);
  const { tables } = (await source.call("GET", `dump/${sourceId}`)) as {
    tables: { id: string; name: string }[];
  };
  const tableId = tables[0]!.id;
  const file = async (name: string) =>
    (await owner`select relfilenode from pg_class where oid = ${`public.${name}`}::regclass`)[0]!.relfilenode;
  const [first] = await owner<{ name: string }[]>`
    select name from public_swap._tables where table_id = ${tableId}`;
  let known = first!.name;
  const times: number[] = [];
  let rewritten = 0;
  for (let round = 0; round < RENAMES; round++) {
    const before = await file(known);
    await Bun.sleep(Math.random() * 1000 * POLL_SECONDS);
    await source.call("PATCH", `bases/${sourceId}/tables/${tableId}`, { name: `Renamed ${round}` });
    const from = performance.now();
    const name = `renamed_${round}`;
    await until(() => reader.unsafe(`select 1 from ${name} limit 1`).then(() => true), {
      what: "the new name is there",
      timeoutMs: 30_000,
      retryErrors: true,
    });
    times.push(performance.now() - from);
    if ((await file(name)) !== before) rewritten++;
    known = name;
  }
  const limitMs = POLL_SECONDS * 1000 + 1000 / RATE + ANSWER_MS;
  const worst = ratio(Math.max(...times) / limitMs, 1);
  console.log(
    `\n${RENAMES} renames of a table while its base is swept, SCHEMA_POLL_SECONDS=${POLL_SECONDS}:`,
  );
  table(
    ["visible after", "ms", `of the poll and one request (${limitMs.toFixed(0)} ms)`],
    [
      ["mean", (times.reduce((sum, ms) => sum + ms, 0) / times.length).toFixed(0), ""],
      ["longest", Math.max(...times).toFixed(0), worst.text],
    ],
  );
  console.log(`tables rewritten: ${rewritten}`);
  return worst.isWithin && rewritten === 0;
}

/**
 * Measures the cost of a new field at 300,000 rows, and of one that gets another type, with two indexes of the customer's
 * on the table (docs/adr/7-in-place-changes.md). Readers
 * query without a pause. About five minutes. Run: `bun run bench additive`
 */
import postgres from "postgres";
import {
  type Build,
  type CatalogTable,
  claimEpoch,
  compareBuild,
  databaseUrl,
  dropDatabase,
  fillColumns,
  installReplica,
  loadCatalog,
  MERGED_ROWS,
  mergeBuild,
  openReplica,
  planSchema,
  provisionDatabase,
  type Replica,
  startBuild,
} from "../../core/replica";
import type { SourceTable } from "../../core/source";
import { startTestServer } from "../support/server";
import { sourceTable } from "../support/source-records";
import { table } from "./print";

const ROWS = Number(process.env.BENCH_ROWS ?? 300_000);
const BATCH = 5000;
const READERS = 4;
/** The longest that a reader may wait for a new column. */
const BLOCKED_LIMIT_MS = 250;
const MB = 1 << 20;

/** How a build that adds the column `new` goes live. */
interface Way {
  name: string;
  /** SQL for the new column's value in row `n`; absent if the column `amount` gets another type instead. */
  value?: string;
  put(replica: Replica, epoch: number, build: Build, live: CatalogTable): Promise<void>;
  /** Whether the limit applies to it. */
  isUsed: boolean;
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

const ways: Way[] = [
  {
    name: "merge in one transaction, all rows",
    value: "'value ' || n",
    put: (replica, epoch, build, live) => merge(replica, epoch, build, live, null),
    isUsed: false,
  },
  {
    name: `merge in one transaction, ${MERGED_ROWS} rows`,
    value: `case when n <= ${MERGED_ROWS} then 'value ' || n end`,
    put: (replica, epoch, build, live) => merge(replica, epoch, build, live, MERGED_ROWS),
    isUsed: true,
  },
  {
    name: "merge, an empty field",
    value: "null",
    put: (replica, epoch, build, live) => merge(replica, epoch, build, live, MERGED_ROWS),
    isUsed: true,
  },
  {
    name: "fill ahead, then merge, all rows",
    value: "'value ' || n",
    put: (replica, epoch, build, live) => merge(replica, epoch, build, live, MERGED_ROWS),
    isUsed: true,
  },
  {
    name: "another type, all rows",
    put: (replica, epoch, build, live) => merge(replica, epoch, build, live, MERGED_ROWS),
    isUsed: true,
  },
];

export async function run(): Promise<boolean> {
  await using releases = new AsyncDisposableStack();
  const server = await startTestServer();
  releases.defer(() => server.stop());
  const found = [];
  for (const way of ways) found.push(await measure(server.url, way));
  console.log(`\nA field more at ${ROWS} rows, ${READERS} readers, two indexes of the customer's:`);
  table(
    [
      "way",
      "readers wait, ms",
      "writes wait, ms",
      "shown after, ms",
      "WAL, MB",
      "table before, MB",
      "after, MB",
    ],
    found.map(({ way, waitMs, writeMs, shownMs, walMb, beforeMb, afterMb }) => [
      way.name,
      ...[waitMs, writeMs, shownMs, walMb, beforeMb, afterMb].map((value) => value.toFixed(0)),
    ]),
  );
  return found.every(
    ({ way, waitMs, errors }) => errors === 0 && (!way.isUsed || waitMs <= BLOCKED_LIMIT_MS),
  );
}

async function measure(adminUrl: string, way: Way) {
  await using releases = new AsyncDisposableStack();
  const { database, role, password } = await provisionDatabase(adminUrl);
  releases.defer(() => dropDatabase(adminUrl, database, role));
  const url = databaseUrl(adminUrl, database);
  await installReplica(url, { schema: "public", role });
  const replica = openReplica({ url, schema: "public" });
  releases.defer(() => replica.close());
  const epoch = await claimEpoch(replica);
  const first = await built(replica, epoch, shape("first"), "null");
  await first.build.moveIn(undefined, options.seen, []);
  const { sql } = replica;
  await sql.unsafe(
    `create index by_name on public.things (name); create index by_amount on public.things (amount)`,
  );
  await sql.unsafe(`vacuum analyze public.things`);
  const sizeMb = async () =>
    Number((await sql`select pg_total_relation_size('public.things')::text as size`)[0]!.size) / MB;
  const walAt = async () =>
    Number((await sql`select (pg_current_wal_lsn() - '0/0')::text as at`)[0]!.at) / MB;
  const readerUrl = Object.assign(new URL(url), { username: role, password }).href;
  const beforeMb = await sizeMb();
  const walFrom = await walAt();
  const { build, live } = await built(
    replica,
    epoch,
    shape(way.value === undefined ? "retyped" : "added"),
    way.value ?? "null",
  );
  await sql.unsafe("checkpoint");
  const readers = startLoops(READERS, async () => {
    const query = postgres(readerUrl, { max: 1, onnotice: () => {} });
    let nth = 0;
    return {
      async once() {
        const id = `rec${String(1 + ((nth++ * 7919) % ROWS)).padStart(14, "0")}`;
        const rows = await query.unsafe(`select id, name, amount, tags from things where id = '${id}'`);
        if (rows.length !== 1) throw new Error(`${id} is not there`);
      },
      end: () => query.end({ timeout: 1 }),
    };
  });
  // Like every write of a row.
  const writers = startLoops(1, async () => ({
    once: async () => void (await sql`select public_swap.lock_table('tblT')`),
    end: async () => {},
  }));
  await Bun.sleep(500);
  const from = performance.now();
  let shownMs = 0;
  let waits: number[] = [];
  const writes = await writers.during(async () => {
    waits = await readers.during(async () => {
      await way.put(replica, epoch, build, live!);
      shownMs = performance.now() - from;
    });
  });
  const writeMs = Math.max(...writes);
  const errors = [...(await readers.stop()), ...(await writers.stop())];
  if (errors.length > 0) console.log(way.name, errors[0]);
  const changed = sql(way.value === undefined ? "amount" : "new");
  const [row] = await sql`select count(*)::int as n, count(${changed})::int as filled from public.things`;
  console.log(way.name, row, `${Math.max(...waits).toFixed(0)} ms`);
  return {
    way,
    waitMs: Math.max(...waits),
    writeMs,
    shownMs,
    walMb: (await walAt()) - walFrom,
    beforeMb,
    afterMb: await sizeMb(),
    errors: errors.length,
  };
}

function shape(kind: "first" | "added" | "retyped"): SourceTable {
  const fields = {
    Name: "text",
    Amount: "number",
    Done: "checkbox",
    Day: "date",
    Tags: "multiple_select",
    Notes: "long_text",
  } as const;
  if (kind === "retyped") return sourceTable("tblT", "Things", { ...fields, Amount: "text" });
  return sourceTable("tblT", "Things", kind === "added" ? { ...fields, New: "text" } : fields);
}

/** Builds the table separately; its rows are generated in SQL. */
async function built(replica: Replica, epoch: number, source: SourceTable, value: string) {
  const settings = { linkedRecordsAsText: false, lookupsAsText: false };
  const catalog = await loadCatalog(replica);
  const plan = planSchema(catalog, { tables: [source] }, settings);
  const build = await startBuild(replica, epoch, plan.rebuild[0]!);
  const names = build.spec.columns.map(({ name }) => name);
  for (let after = 0; after < ROWS; after += BATCH) {
    await replica.sql.unsafe(`insert into public_swap."tblT" (id, created_time, ${names.join(", ")})
      select 'rec' || lpad(n::text, 14, '0'), '2024-05-01', 'Thing number ' || n, n, n % 2 = 0, '2024-05-01',
        array['red', 'green'], repeat('note ' || n || ' ', 15)${names.includes("new") ? `, ${value}` : ""}
      from generate_series(${after + 1}, ${after + BATCH}) as n`);
  }
  return { build, live: catalog.get(source.id) };
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

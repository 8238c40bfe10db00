/**
 * Measures what keeping the old name of a column costs: the time that the table is locked for a rename with and without
 * an alias, on 300,000 rows, in pairs of one run; that no row is written; and what a query by the old name costs.
 *
 * Run: `bun run bench aliases`..
 */
import {
  applySettings,
  changeShape,
  claimEpoch,
  databaseUrl,
  dropDatabase,
  expireAliases,
  installReplica,
  loadCatalog,
  openReplica,
  planSchema,
  provisionDatabase,
  type Replica,
  startBuild,
} from "../../core/replica";
import { putBuild } from "../support/put-build";
import { startTestServer } from "../support/server";
import { sourceTable } from "../support/source-records";
import { ratio, table } from "./print";

const ROWS = 300_000;
const PAIRS = 10;
/** Readers notice a lock of this many ms. */
const EXTRA_LIMIT_MS = 20;
/** A query by an old name, relative to the same by the current one. */
const QUERY_LIMIT = 1.2;

export async function run(): Promise<boolean> {
  await using releases = new AsyncDisposableStack();
  const server = await startTestServer();
  releases.defer(() => server.stop());
  const { database, role } = await provisionDatabase(server.url);
  releases.defer(() => dropDatabase(server.url, database, role));
  const url = databaseUrl(server.url, database);
  await installReplica(url, { schema: "public", role });
  const replica = openReplica({ url, schema: "public" });
  releases.defer(() => replica.close());
  const epoch = await claimEpoch(replica);
  await fill(replica, epoch);

  const fileBefore = await file(replica);
  const times = { without: [] as number[], with: [] as number[], expiry: [] as number[] };
  for (let pair = 0; pair < PAIRS; pair++) {
    times.without.push(await rename(replica, epoch, 0, `Plain ${pair}`));
    times.with.push(await rename(replica, epoch, 7, `Kept ${pair}`));
    await replica.sql.unsafe(`update ${replica.swap}._aliases set expires_at = now()`);
    const from = performance.now();
    await expireAliases(replica, epoch);
    times.expiry.push(performance.now() - from);
  }
  const isRewritten = (await file(replica)) !== fileBefore;
  await rename(replica, epoch, 7, "Status");
  const queries = { old: [] as number[], current: [] as number[] };
  for (let pair = 0; pair < PAIRS; pair++) {
    queries.current.push(await timed(replica, "select count(t.status) from public.things as t"));
    queries.old.push(await timed(replica, `select count(t.kept_${PAIRS - 1}) from public.things as t`));
  }
  const extra = ratio(median(times.with) - median(times.without), EXTRA_LIMIT_MS);
  const query = ratio(median(queries.old) / median(queries.current), QUERY_LIMIT);
  table(
    [`${ROWS.toLocaleString("en")} rows`, "median ms", "max ms"],
    [
      ["rename without an alias", ...shown(times.without)],
      ["rename with an alias", ...shown(times.with)],
      ["end of an alias", ...shown(times.expiry)],
      ["query by the current name", ...shown(queries.current)],
      ["query by the old name", ...shown(queries.old)],
    ],
  );
  console.log(`\nextra time of a rename, of ${EXTRA_LIMIT_MS} ms: ${extra.text}`);
  console.log(`query by the old name, of ${QUERY_LIMIT} times: ${query.text}`);
  console.log(`rows written: ${isRewritten ? "ALL" : "none"}`);
  return extra.isWithin && query.isWithin && !isRewritten;
}

async function fill(replica: Replica, epoch: number): Promise<void> {
  const source = sourceTable("tblT", "Things", { Name: "text", State: "text" });
  const settings = { linkedRecordsAsText: false, lookupsAsText: false };
  const [spec] = planSchema(new Map(), { tables: [source] }, settings).rebuild;
  const build = await startBuild(replica, epoch, spec!);
  await replica.sql.unsafe(`
    insert into ${replica.swap}."tblT" (id, created_time, name, state)
    select 'rec' || n, '2024-05-01', 'thing ' || n, 'state ' || n % 10 from generate_series(1, ${ROWS}) as n`);
  await putBuild({ replica, epoch }, build, undefined);
}

/** Renames the column as a sync does. @returns how long the statement took, which holds the lock at its end, ms */
async function rename(replica: Replica, epoch: number, aliasDays: number, name: string): Promise<number> {
  await applySettings(replica, epoch, { history: false, notify: false, aliasDays });
  const catalog = await loadCatalog(replica);
  const source = sourceTable("tblT", "Things", { Name: "text", [name]: "text" });
  const settings = { linkedRecordsAsText: false, lookupsAsText: false };
  const plan = planSchema(catalog, { tables: [source] }, settings);
  const from = performance.now();
  await changeShape(replica, epoch, catalog, plan);
  return performance.now() - from;
}

async function file({ sql }: Replica): Promise<unknown> {
  const [row] = await sql`select pg_relation_filenode('public.things') as file`;
  return row!.file;
}

async function timed({ sql }: Replica, query: string): Promise<number> {
  const from = performance.now();
  await sql.unsafe(query);
  return performance.now() - from;
}

function shown(times: number[]): [string, string] {
  return [median(times).toFixed(1), Math.max(...times).toFixed(1)];
}

function median(times: number[]): number {
  return times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)]!;
}

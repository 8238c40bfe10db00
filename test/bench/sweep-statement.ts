/**
 * Measures the statements of unchanged sweeps in the replica's server: the one that completes a sweep and begins the
 * next, the two for one sweep alone, and those of a lease that goes on for another minute or begins. Databases are called in turn, each in a session of its own, as a worker
 * does: the caches of the CPU are cold for each. CPU is that of the sessions alone.
 *
 * Run: `bun run bench sweep-statement`, with SWEEP_STATEMENT_BASES (60).
 */
import { rmSync } from "node:fs";
import { join } from "node:path";
import postgres from "postgres";
import { startEmbeddedPostgres } from "../../apps/up/postgres/embedded-postgres";
import { createLogger } from "../../core/log";
import {
  beginSync,
  claimEpoch,
  completeSync,
  databaseUrl,
  dropUnfinished,
  installReplica,
  openReplica,
  provisionDatabase,
  type Replica,
  readCatalog,
  recordDamage,
  renewLease,
  takeReadVersion,
} from "../../core/replica";
import { syncBase } from "../../core/sync/engine";
import { OptionalFeatureApplier } from "../../core/sync/lease/apply-optional-features";
import { IndexKeeper } from "../../core/sync/lease/index-keeper";
import { BaseCache } from "../../core/sync/state";
import { engineInput } from "../support/engine-input";
import { FakeSource } from "../support/fake-source";
import { exactCpuSeconds } from "../support/process-usage";
import { scratchFolder } from "../support/scratch";
import { sourceRecord, sourceTable } from "../support/source-records";
import { ratio, table } from "./print";

const BASES = Number(process.env.SWEEP_STATEMENT_BASES ?? 60);
/** By then, the pools know how many connections the server allows. */
const LIMIT_KNOWN_MS = 2000;
const FEATURES = { aliasDays: 30, history: false, historyDays: 7, linkViews: false, notify: false };
const silent = createLogger("fatal", "bench");
/** Not measured: a statement is planned once per connection. */
const WARM_ROUNDS = 7;
const ROUNDS = 11;

interface Swept {
  replica: Replica;
  epoch: number;
  pid: number;
  known: { catalog: string; loggedUpTo: Map<string, number> };
  renewals: number;
}

const works: [string, (swept: Swept) => Promise<unknown>][] = [
  ["select 1", ({ replica }) => replica.sql`select 1`],
  [
    "begin, and complete",
    async ({ replica, epoch, known }) => {
      await beginSync(replica, epoch, known);
      await completeSync(replica, epoch, known, { begins: false, isChecked: false });
    },
  ],
  [
    "complete, and begin the next",
    ({ replica, epoch, known }) => completeSync(replica, epoch, known, { begins: true, isChecked: false }),
  ],
  ["take a read version", ({ replica }) => takeReadVersion(replica)],
  [
    "renew the lease",
    async (swept) => {
      if (!(await renewLease(swept.replica, swept.epoch, swept.renewals++)))
        throw new Error("the lease was not renewed");
    },
  ],
  [
    "begin another lease",
    async (swept) => {
      const { replica } = swept;
      swept.epoch = await claimEpoch(replica);
      swept.renewals = 0;
      await recordDamage(replica, swept.epoch);
      await new OptionalFeatureApplier(replica, swept.epoch, silent).apply(FEATURES);
      await dropUnfinished(replica, swept.epoch, []);
      const indexes = new IndexKeeper(replica, swept.epoch, async () => {});
      await indexes.apply([]);
    },
  ],
];

export async function run(): Promise<boolean> {
  await using releases = new AsyncDisposableStack();
  const folder = scratchFolder("sweep-statement");
  releases.defer(() => rmSync(folder, { recursive: true, force: true }));
  const server = await startEmbeddedPostgres({
    dataDir: join(folder, "postgres"),
    port: 0,
    log: createLogger("fatal", "bench"),
    settings: { fsync: "off", autovacuum: "off" },
  });
  releases.defer(() => server.stop());
  const bases = await sweptBases(server.url, releases);
  const costs = works.map((): number[] => []);
  for (let round = -WARM_ROUNDS; round < ROUNDS; round++) {
    for (const [index, [, work]] of works.entries()) {
      const from = cpuOf(bases);
      for (const one of bases) await work(one);
      if (round >= 0) costs[index]!.push((1e6 * (cpuOf(bases) - from)) / BASES);
    }
  }
  const medians = costs.map((all) => all.sort((a, b) => a - b)[all.length >> 1]!);
  table(
    [`CPU for each of ${BASES} databases`, "median", "least", "most"],
    works.map(([what], index) => {
      const all = costs[index]!;
      return [what, ...[medians[index]!, all[0]!, all.at(-1)!].map((us) => `${us.toFixed(0)} µs`)];
    }),
  );
  const saved = ratio(medians[2]! / medians[1]!, 0.7);
  console.log(`one statement, compared with two: ${saved.text}`);
  return saved.isWithin;
}

function cpuOf(bases: Swept[]): number {
  return bases.reduce((sum, { pid }) => sum + exactCpuSeconds(pid), 0);
}

/** Copies of a database whose base has been synced. */
async function sweptBases(serverUrl: string, releases: AsyncDisposableStack): Promise<Swept[]> {
  const { database, role } = await provisionDatabase(serverUrl);
  const url = databaseUrl(serverUrl, database);
  await installReplica(url, { schema: "public", role });
  const first = openReplica({ url, schema: "public" });
  const epoch = await claimEpoch(first);
  const source = new FakeSource();
  for (const name of ["People", "Tasks"])
    source.add(
      sourceTable(`tbl${name}`, name, { Name: "text", Age: "number" }),
      Array.from({ length: 50 }, (_, index) =>
        sourceRecord(`rec${index}`, { fld0: `${index}`, fld1: index }),
      ),
    );
  const { error } = await syncBase(
    engineInput({ replica: first, epoch, cache: new BaseCache(epoch, 300), connection: source.connection() }),
  );
  if (error) throw error;
  await first.close();
  const admin = postgres(serverUrl, { max: 1, onnotice: () => {} });
  releases.defer(() => admin.end({ timeout: 1 }));
  const names = Array.from({ length: BASES }, (_, index) => `sweep_statement_${index}`);
  for (const name of names)
    await admin.unsafe(`create database ${name} template "${database}" strategy file_copy`);
  const bases: Swept[] = [];
  // All at once: an idle connection is closed after some seconds.
  for (const [index, name] of names.entries()) {
    const replica = openReplica({ url: databaseUrl(serverUrl, name), schema: "public" });
    releases.defer(() => replica.close());
    const [row] = await replica.sql<{ pid: number }[]>`select pg_backend_pid() as pid`;
    if (index === 0) await Bun.sleep(LIMIT_KNOWN_MS);
    const claimed = await claimEpoch(replica);
    const { state, catalog } = await readCatalog(replica);
    const loggedUpTo = new Map([...catalog.keys()].map((id) => [id, 1000]));
    bases.push({
      replica,
      epoch: claimed,
      pid: row!.pid,
      known: { catalog: state, loggedUpTo },
      renewals: 0,
    });
  }
  return bases;
}

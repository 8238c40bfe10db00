/**
 * A time-lapse of the updates of rows that a busy installation writes every second: how large their tables grow, and
 * how many updates touch an index.
 *
 * A million updates of a row are 11 days of one a second, and more than a day of the busiest row. The updates come far
 * faster than in service, so autovacuum has less time for each. Run: `bun run bench hot-rows`, with HOT_UPDATES
 * (1000000, of each row), HOT_ROWS (1) and HOT_TABLES (all, or some with commas between them).
 */
import { rmSync } from "node:fs";
import { join } from "node:path";
import postgres from "postgres";
import { startEmbeddedPostgres } from "../../apps/up/postgres/embedded-postgres";
import { migrateControl } from "../../core/control/setup";
import { createLogger } from "../../core/log";
import { claimEpoch, databaseUrl, installReplica, openReplica, provisionDatabase } from "../../core/replica";
import {
  controlHotRows,
  type HotRows,
  recentWritesHotRows,
  replicaHotRows,
  type Wear,
  wearOut,
} from "../support/hot-rows";
import { scratchFolder } from "../support/scratch";
import { table } from "./print";

const UPDATES = Number(process.env.HOT_UPDATES ?? 1_000_000);
const ROWS = Number(process.env.HOT_ROWS ?? 1);
const TABLES = process.env.HOT_TABLES?.split(",");
const HOT_SHARE = 0.95;
/** Updates of the recent-writes log in a minute, at five calls of ten records a second. Autovacuum comes once a minute. */
const LOGGED_A_MINUTE = 3000;
/** The allowed size of a table with its indexes: several times that of a few hundred rows. */
const MOST_BYTES = 4 * 2 ** 20;
const KB = 1024;

export async function run(): Promise<boolean> {
  await using releases = new AsyncDisposableStack();
  const folder = scratchFolder("hot-rows");
  releases.defer(() => rmSync(folder, { recursive: true, force: true }));
  const log = createLogger("fatal", "bench");
  const server = await startEmbeddedPostgres({
    dataDir: join(folder, "postgres"),
    port: 0,
    log,
    settings: { fsync: "off", autovacuum_naptime: "1s" },
  });
  releases.defer(() => server.stop());
  await migrateControl(server.url, log);
  const control = postgres(server.url, { onnotice: () => {} });
  releases.defer(() => control.end({ timeout: 1 }));
  const { database, role } = await provisionDatabase(server.url);
  const ownerUrl = databaseUrl(server.url, database);
  await installReplica(ownerUrl, { schema: "public", role });
  const replica = openReplica({ url: ownerUrl, schema: "public" });
  releases.defer(() => replica.close());
  const owner = postgres(ownerUrl, { onnotice: () => {} });
  releases.defer(() => owner.end({ timeout: 1 }));

  const worn: (Wear & { isIndexed: boolean })[] = [];
  const wear = async (sql: postgres.Sql, all: HotRows[], isIndexed = false) => {
    for (const hot of all.filter(({ tables }) => !TABLES || tables.some((name) => TABLES.includes(name)))) {
      const vacuumEvery = isIndexed ? LOGGED_A_MINUTE : undefined;
      for (const one of await wearOut(sql, hot, ROWS, UPDATES * ROWS, vacuumEvery)) {
        console.log(JSON.stringify(one));
        worn.push({ ...one, isIndexed });
      }
    }
  };
  await wear(owner, await replicaHotRows(ownerUrl, replica, await claimEpoch(replica)));
  await wear(owner, recentWritesHotRows(replica), true);
  await wear(control, await controlHotRows(server.url, control, ROWS));
  table(
    [`${UPDATES} updates of ${ROWS} rows`, "HOT", "size before", "size after"],
    worn.map((one) => [
      one.table,
      one.isIndexed ? "its order is indexed" : `${(100 * one.hotShare).toFixed(1)} %`,
      `${(one.bytesBefore / KB).toFixed(0)} kB`,
      `${(one.bytesAfter / KB).toFixed(0)} kB`,
    ]),
  );
  return worn.every(
    ({ hotShare, isIndexed, bytesAfter }) => (isIndexed || hotShare >= HOT_SHARE) && bytesAfter <= MOST_BYTES,
  );
}

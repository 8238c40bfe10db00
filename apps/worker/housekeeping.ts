/** Rolls up runs, and deletes outdated rows, once an hour for the whole service. */
import type { PgBoss } from "pg-boss";
import type { Db } from "../../core/context";
import { rollUpHours } from "../../core/control/history";
import { trimTables } from "../../core/control/retention";
import type { Logger } from "../../core/log";
import { DELETE_AFTER_SECONDS } from "../../core/queue";

const QUEUE = "housekeeping";
/** At this minute of every hour one of the running workers deletes outdated rows. */
const CRON = "17 * * * *";
const POLL_SECONDS = 30;

/** Deletes old runs by a schedule that all workers share: each time one of them does it. */
export async function runHousekeeping(boss: PgBoss, { db, log }: { db: Db; log: Logger }): Promise<void> {
  await boss.createQueue(QUEUE, {
    policy: "singleton",
    deleteAfterSeconds: DELETE_AFTER_SECONDS,
  });
  await boss.schedule(QUEUE, CRON);
  await boss.work(QUEUE, { pollingIntervalSeconds: POLL_SECONDS }, async () => {
    // One that fails keeps no other from being done: it is done again in an hour.
    const failed = (error: unknown) => log.error({ error }, "housekeeping failed");
    await rollUpHours(db).catch(failed);
    await trimQuota(db).catch(failed);
    await trimTables(db).then((rows) => log.info({ rows }, "outdated rows deleted"), failed);
  });
}

async function trimQuota(db: Db): Promise<void> {
  while ((await db<{ n: number }[]>`select quota_trim() as n`)[0]!.n > 0);
}

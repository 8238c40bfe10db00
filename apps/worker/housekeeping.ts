/** Rolls up runs, and deletes outdated rows, once an hour for the whole service. */
import type { PgBoss } from "pg-boss";
import { trimAlerts } from "../../core/alerts";
import type { Db } from "../../core/context";
import { forgetExpired } from "../../core/control/accounts";
import { trimAudit } from "../../core/control/audit";
import { trimRuns } from "../../core/control/bases";
import { rollUpHours, trimDays, trimPeriods } from "../../core/control/history";
import { trimWindows } from "../../core/limiter";
import type { Logger } from "../../core/log";

const QUEUE = "housekeeping";
/** At this minute of every hour one of the running workers deletes outdated rows. */
const CRON = "17 * * * *";
const POLL_SECONDS = 30;
/** Completed jobs are no longer needed. */
const DELETE_AFTER_SECONDS = 300;

/** Deletes old runs by a schedule that all workers share: each time one of them does it. */
export async function runHousekeeping(boss: PgBoss, { db, log }: { db: Db; log: Logger }): Promise<void> {
  await boss.createQueue(QUEUE, {
    policy: "singleton",
    deleteAfterSeconds: DELETE_AFTER_SECONDS,
  });
  await boss.schedule(QUEUE, CRON);
  await boss.work(QUEUE, { pollingIntervalSeconds: POLL_SECONDS }, async () => {
    const [runs, changes] = [await trimRuns(db), await trimAudit(db)];
    const [windows, alerts] = [await trimWindows(db), await trimAlerts(db)];
    await rollUpHours(db);
    await trimDays(db);
    await trimPeriods(db);
    await forgetExpired(db);
    log.info({ runs, changes, windows, alerts }, "old runs, changes, quota windows and alerts deleted");
  });
}

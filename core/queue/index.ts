/**
 * The queue of sync jobs: pg-boss in the control plane, one job per base.
 *
 * A job is queued or active, never both and never twice (policy `exclusive`, keyed by the base). Its holder sends
 * heartbeats; one that stops is failed within HEARTBEAT_SECONDS, and the reconciler queues the base again: every
 * base that is to be synced has a job, whatever died. Measured sturdier than retries and than `stately` queues.
 */
import { PgBoss } from "pg-boss";
import type { Db } from "../context";
import { activeBaseIds, trimRuns } from "../control";
import type { Logger } from "../log";

const SYNC_QUEUE = "sync";
const WAKE_CHANNEL = "basetide_sync_queued";
/** Shortest that pg-boss takes. */
const HEARTBEAT_SECONDS = 10;
/** How often dead holders are looked for. */
const MONITOR_SECONDS = 2;
/** Longest that one job may be active: a first sync of the largest base at the slowest pace, twice over. */
const EXPIRE_SECONDS = 12 * 3600;
/** Jobs that are done are of no use to anybody. */
const DELETE_AFTER_SECONDS = 300;
const CONNECTIONS = 3;

const HOUSEKEEPING_QUEUE = "housekeeping";
/** At this minute of every hour: whichever worker is there clears away what is too old. */
const HOUSEKEEPING_CRON = "17 * * * *";
const HOUSEKEEPING_POLL_SECONDS = 30;

/** A job in hand: the right to try for a lease of the base. */
export interface SyncJob {
  id: string;
  baseId: string;
}

export interface Queue {
  /** Queues the base's next sync, unless it is queued or running, and wakes a worker. */
  requestSync(baseId: string): Promise<void>;
  /** Up to `limit` jobs, now this process's. */
  fetch(limit: number): Promise<SyncJob[]>;
  /** Says that the jobs' holder is alive. To be called every few seconds. */
  heartbeat(jobs: SyncJob[]): Promise<void>;
  /** Ends the job. `again`: the base is queued anew at once. */
  finish(job: SyncJob, again: boolean): Promise<void>;
  /** Queues every base that is to be synced and has no job. Returns how many there were. */
  reconcile(): Promise<number>;
  /** Calls `wake` whenever somebody requests a sync. */
  onRequest(wake: () => void): Promise<void>;
  close(): Promise<void>;
}

/**
 * Opens the queue, creating what it needs in the control plane.
 *
 * @param options.isWorker workers also watch over each other's heartbeats, and keep house
 */
export async function openQueue(
  ctx: { db: Db; log: Logger },
  databaseUrl: string,
  options: { isWorker: boolean },
): Promise<Queue> {
  const { db, log } = ctx;
  const boss = new PgBoss({
    connectionString: databaseUrl,
    application_name: "basetide queue",
    max: CONNECTIONS,
    supervise: options.isWorker,
    superviseIntervalSeconds: MONITOR_SECONDS,
    monitorIntervalSeconds: MONITOR_SECONDS,
    schedule: options.isWorker,
  });
  boss.on("error", (error) => log.warn({ error }, "queue error"));
  await boss.start();
  await boss.createQueue(SYNC_QUEUE, {
    policy: "exclusive",
    heartbeatSeconds: HEARTBEAT_SECONDS,
    expireInSeconds: EXPIRE_SECONDS,
    deleteAfterSeconds: DELETE_AFTER_SECONDS,
    retryLimit: 0,
  });
  if (options.isWorker) await keepHouse(boss, ctx);
  const jobOf = (baseId: string) => ({ data: { baseId }, singletonKey: baseId });
  let unlisten: (() => Promise<void>) | undefined;
  return {
    async requestSync(baseId) {
      await boss.send(SYNC_QUEUE, { baseId }, { singletonKey: baseId });
      await db.notify(WAKE_CHANNEL, "");
    },
    async fetch(limit) {
      const jobs = await boss.fetch<{ baseId: string }>(SYNC_QUEUE, { batchSize: limit });
      return jobs.map((job) => ({ id: job.id, baseId: job.data.baseId }));
    },
    async heartbeat(jobs) {
      if (jobs.length > 0) {
        await boss.touch(
          SYNC_QUEUE,
          jobs.map((job) => job.id),
        );
      }
    },
    async finish(job, again) {
      await boss.complete(SYNC_QUEUE, job.id);
      if (again) await boss.send(SYNC_QUEUE, { baseId: job.baseId }, { singletonKey: job.baseId });
    },
    async reconcile() {
      const queued = await db<{ key: string }[]>`
        select singleton_key as key from pgboss.job
        where name = ${SYNC_QUEUE} and state in ('created', 'retry', 'active')`;
      const hasJob = new Set(queued.map((job) => job.key));
      const missing = (await activeBaseIds(db)).filter((id) => !hasJob.has(id));
      if (missing.length > 0) await boss.insert(SYNC_QUEUE, missing.map(jobOf));
      return missing.length;
    },
    async onRequest(wake) {
      unlisten = (await db.listen(WAKE_CHANNEL, wake, wake)).unlisten;
    },
    async close() {
      await unlisten?.();
      await boss.stop({ graceful: false });
    },
  };
}

/** Clears away old runs by a schedule that all workers share: each time one of them does it. */
async function keepHouse(boss: PgBoss, { db, log }: { db: Db; log: Logger }): Promise<void> {
  await boss.createQueue(HOUSEKEEPING_QUEUE, {
    policy: "singleton",
    deleteAfterSeconds: DELETE_AFTER_SECONDS,
  });
  await boss.schedule(HOUSEKEEPING_QUEUE, HOUSEKEEPING_CRON);
  await boss.work(HOUSEKEEPING_QUEUE, { pollingIntervalSeconds: HOUSEKEEPING_POLL_SECONDS }, async () => {
    const runs = await trimRuns(db);
    log.info({ runs }, "old runs cleared away");
  });
}

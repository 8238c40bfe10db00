/**
 * The queue of sync jobs: pg-boss in the control plane, one job per base.
 *
 * A job is queued or active, never both and never twice (policy `exclusive`, keyed by the base). Its holder sends
 * heartbeats; one that stops is failed within HEARTBEAT_SECONDS, and the reconciler queues the base again: every
 * base that is to be synced has a job, whatever died. Measured sturdier than retries and than `stately` queues.
 *
 * A worker keeps a job for as long as the base is to be synced and is its to hold, which spares the queue a new row
 * per lease. One that is to go elsewhere is put back, the same row, in one statement.
 */
import { PgBoss } from "pg-boss";
import type { Db } from "../context";
import { activeBaseIds } from "../control/bases";
import type { Logger } from "../log";
import { pgOptions } from "../postgres";
import { clearSuspect, countCrashes, forgiveJobs, recordCrash, type Suspect } from "./crashes";
import {
  bringForward,
  type QueueLoad,
  queueLoad,
  releaseJob,
  SYNC_QUEUE,
  type SyncJob,
  takeJobsOf,
  touchJobs,
} from "./jobs";

export type { Suspect } from "./crashes";
export { fairShares, type Holder } from "./fair-share";
export { type QueueLoad, queueDepth, type SyncJob } from "./jobs";

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

export interface Queue {
  /** Queues the base's next sync, unless it is running, and wakes the workers. */
  requestSync(baseId: string): Promise<void>;
  /** Up to `limit` jobs, now this process's: those that have waited longest. */
  fetch(limit: number): Promise<SyncJob[]>;
  /** Says that the jobs' holder is alive. To be called every few seconds. @returns those that are not its any more */
  heartbeat(jobs: SyncJob[]): Promise<SyncJob[]>;
  /** Takes the jobs of these bases again that were lost meanwhile, and that nobody else has taken. */
  reclaim(baseIds: string[]): Promise<SyncJob[]>;
  /** Ends the job: the base is queued again only when it is to be synced and has none. */
  finish(job: SyncJob): Promise<void>;
  /** Leaves the job to whoever takes it, `afterMs` from now; if that is at once, wakes the workers. */
  giveBack(job: SyncJob, afterMs: number): Promise<void>;
  /** Which of these bases are suspected of ending the workers that hold them. To be asked before each is leased. */
  suspects(baseIds: string[]): Promise<Map<string, Suspect>>;
  /** These jobs were lost, and their worker lives. */
  forgive(jobs: SyncJob[]): Promise<void>;
  /** A child process died that held these bases. @returns how long a base that was alone in it rests, ms; else null */
  crashed(baseIds: string[]): Promise<number | null>;
  /** A lease of a suspect has ended well. @returns whether it is none any more */
  behaved(baseId: string): Promise<boolean>;
  load(): Promise<QueueLoad>;
  /** Queues every base that is to be synced and has no job. Returns how many there were. */
  reconcile(): Promise<number>;
  /** Calls `wake` whenever somebody requests a sync or gives a job back. */
  onRequest(wake: () => void): Promise<void>;
  close(): Promise<void>;
}

export interface OpenQueue extends Queue {
  /** For queues of other work, on the same connections. */
  boss: PgBoss;
}

/**
 * Opens the queue, creating what it needs in the control plane.
 *
 * @param options.isWorker workers also watch over each other's heartbeats
 */
export async function openQueue(
  ctx: { db: Db; log: Logger },
  databaseUrl: string,
  options: { isWorker: boolean },
): Promise<OpenQueue> {
  const { db, log } = ctx;
  const boss = new PgBoss({
    ...(await pgOptions(databaseUrl)),
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
  const jobOf = (baseId: string) => ({ data: { baseId }, singletonKey: baseId });
  let unlisten: (() => Promise<void>) | undefined;
  const wakeAll = () => db.notify(WAKE_CHANNEL, "");
  async function reconcile(): Promise<number> {
    const missing = await activeBaseIds(db, hasJob(db));
    if (missing.length > 0) await boss.insert(SYNC_QUEUE, missing.map(jobOf));
    return missing.length;
  }
  return {
    boss,
    async requestSync(baseId) {
      const sent = await boss.send(SYNC_QUEUE, { baseId }, { singletonKey: baseId });
      if (sent === null) await bringForward(db, baseId);
      await wakeAll();
    },
    async fetch(limit) {
      const jobs = await boss.fetch<{ baseId: string }>(SYNC_QUEUE, { batchSize: limit });
      return jobs.map((job) => ({ id: job.id, baseId: job.data.baseId }));
    },
    async heartbeat(jobs) {
      if (jobs.length === 0) return [];
      const beating = await touchJobs(
        db,
        jobs.map((job) => job.id),
      );
      return jobs.filter((job) => !beating.has(job.id));
    },
    async reclaim(baseIds) {
      // Those that were failed a moment ago may not be queued yet.
      await reconcile();
      return takeJobsOf(db, baseIds);
    },
    async finish(job) {
      await boss.complete(SYNC_QUEUE, job.id);
    },
    async giveBack(job, afterMs) {
      await releaseJob(db, job, afterMs);
      if (afterMs === 0) await wakeAll();
    },
    suspects: (baseIds) => countCrashes(db, baseIds),
    forgive: (jobs) => forgiveJobs(db, jobs),
    crashed: (baseIds) => recordCrash(db, baseIds),
    behaved: (baseId) => clearSuspect(db, baseId),
    load: () => queueLoad(db),
    reconcile,
    async onRequest(wake) {
      unlisten = (await db.listen(WAKE_CHANNEL, wake, wake)).unlisten;
    },
    async close() {
      await unlisten?.();
      await boss.stop({ graceful: false });
    },
  };
}

/** Of the row `bases` of a query: has the base a job? */
function hasJob(db: Db): ReturnType<Db> {
  return db`exists (
    select from pgboss.job where name = ${SYNC_QUEUE} and state <= 'active' and singleton_key = bases.id)`;
}

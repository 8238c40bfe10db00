/**
 * The queue of sync jobs: pg-boss in the control plane, one job per base.
 *
 * A job is queued or active, never both and never twice (policy `exclusive`, keyed by the base). Its holder, a process,
 * sends one heartbeat for all of its jobs: pg-boss's own are a row update per job every few seconds, which were half of
 * the control plane's WAL. The jobs of a holder without heartbeats fail, and the reconciler queues their bases again, so
 * that every base that must be synced has a job, whichever process died. In measurements this was more robust than
 * retries and than `stately` queues. Nothing else ends a job: however long it is active or waits, it does not expire.
 *
 * A worker keeps a job for as long as the base must be synced and the worker may hold it, which saves a new row per
 * lease. To move a job to another worker, the same row is requeued, in one statement.
 */
import type { PgBoss } from "pg-boss";
import type { Db } from "../context";
import { activeBaseIds, activeBases } from "../control/bases";
import type { Logger } from "../log";
import { pgOptions } from "../postgres";
import { clearSuspect, countCrashes, forgiveJobs, recordCrash, type Suspect } from "./crashes";
import {
  addHolder,
  beat,
  bringForward,
  checkJobs,
  endHolder,
  keepJobs,
  type QueueLoad,
  releaseJob,
  SYNC_QUEUE,
  type SyncJob,
  takeJobs,
  takeJobsOf,
} from "./jobs";

export type { Suspect } from "./crashes";
export { fairShares, type Holder } from "./fair-share";
export { type QueueLoad, queueDepth, type SyncJob } from "./jobs";

const WAKE_CHANNEL = "basetide_sync_queued";
/** How often pg-boss looks for jobs that are over; those of dead workers are found by heartbeats. */
const MONITOR_SECONDS = 300;
/** How often it looks for jobs that depend on others, of which there are none: once a day. */
const FLOW_SECONDS = 24 * 3600;
/** The longest interval at which pg-boss can send the jobs of schedules, which run once an hour. */
const SCHEDULE_SECONDS = 45;
/**
 * Every so many heartbeats all jobs are looked at, too: one may have ended without its holder, or be unknown to it, as the
 * answer to the statement that took it was lost.
 */
const CHECK_EVERY = 4;
/**
 * A process whose own heartbeats have paused for longer than this cannot tell whether others were silent, or the control
 * plane unreachable. It finds holders silent again when it has sent heartbeats for as long: after an outage, others send
 * theirs by then, and keep their jobs and caches.
 */
const STEADY_MS = 6000;
/** Finished jobs are deleted after this time; nothing reads them. */
export const DELETE_AFTER_SECONDS = 300;
const CONNECTIONS = 3;

export interface Queue {
  /** Queues the base's next sync, unless one is running, and wakes the workers. */
  requestSync(baseId: string): Promise<void>;
  /** Takes up to `limit` jobs for this process, the longest waiting first. */
  fetch(limit: number): Promise<SyncJob[]>;
  /**
   * Sends a heartbeat for the jobs, and queues the bases of silent processes again; call it every few seconds.
   *
   * @param looksForMissing queues every base that must be synced and has no job
   * @returns the jobs that this process has lost
   */
  heartbeat(jobs: SyncJob[], looksForMissing?: boolean): Promise<SyncJob[]>;
  /** Takes back the lost jobs of these bases that no other process has taken. */
  reclaim(baseIds: string[]): Promise<SyncJob[]>;
  /** Ends the job. The base is queued again only if it must be synced and has no job. */
  finish(job: SyncJob): Promise<void>;
  /** Requeues the job, for any worker, in `afterMs`; if that is 0, wakes the workers. */
  giveBack(job: SyncJob, afterMs: number): Promise<void>;
  /** Returns the suspects among these bases; call it before each lease. */
  suspects(baseIds: string[]): Promise<Map<string, Suspect>>;
  /** Removes jobs that were lost while their worker lived, so that they do not count as crashes. */
  forgive(jobs: SyncJob[]): Promise<void>;
  /**
   * Records the crash of a child process with these bases.
   *
   * @returns the quarantine of a base that was alone in it, ms; else null
   */
  crashed(baseIds: string[]): Promise<number | null>;
  /** Records that a lease of a suspect ended normally. @returns whether it is no longer a suspect */
  behaved(baseId: string): Promise<boolean>;
  /** As of the last heartbeat. */
  readonly load: QueueLoad;
  /** Queues every base that must be synced and has no job. @returns how many */
  reconcile(): Promise<number>;
  /** Calls `wake` whenever a process requests a sync or requeues a job. */
  onRequest(wake: () => void): Promise<void>;
  close(): Promise<void>;
}

export interface OpenQueue extends Queue {
  /** For queues of other work, which share the connections. */
  boss: PgBoss;
}

/**
 * Opens the queue, and creates what it needs in the control plane.
 *
 * @param options.isWorker workers also monitor each other's heartbeats
 * @param options.now performance.now() unless given
 */
export async function openQueue(
  ctx: { db: Db; log: Logger },
  databaseUrl: string,
  options: { isWorker: boolean; now?: () => number },
): Promise<OpenQueue> {
  const { db, log } = ctx;
  const { now = () => performance.now() } = options;
  // Processes that never open a queue need not keep the library in memory.
  const { PgBoss: Boss } = await import("pg-boss");
  const boss: PgBoss = new Boss({
    ...(await pgOptions(databaseUrl)),
    application_name: "basetide queue",
    max: CONNECTIONS,
    supervise: options.isWorker,
    superviseIntervalSeconds: MONITOR_SECONDS,
    monitorIntervalSeconds: MONITOR_SECONDS,
    flowIntervalSeconds: FLOW_SECONDS,
    schedule: options.isWorker,
    cronWorkerIntervalSeconds: SCHEDULE_SECONDS,
    cronMonitorIntervalSeconds: SCHEDULE_SECONDS,
  });
  boss.on("error", (error) => log.warn({ error }, "queue error"));
  await boss.start();
  await boss.createQueue(SYNC_QUEUE, {
    policy: "exclusive",
    deleteAfterSeconds: DELETE_AFTER_SECONDS,
    retryLimit: 0,
  });
  await keepJobs(db);
  const jobOf = (baseId: string) => ({ data: { baseId }, singletonKey: baseId });
  let unlisten: (() => Promise<void>) | undefined;
  const wakeAll = () => db.notify(WAKE_CHANNEL, "");
  const holder = crypto.randomUUID();
  let beats = 0;
  let beatAt = Number.NEGATIVE_INFINITY;
  /** Since when heartbeats were sent without a gap. */
  let steadySince = 0;
  let load: QueueLoad = { jobs: 0, overdue: 0, readyAt: Infinity };
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
    get load() {
      return load;
    },
    async fetch(limit) {
      if (beatAt === Number.NEGATIVE_INFINITY) await addHolder(db, holder);
      return takeJobs(db, holder, limit);
    },
    async heartbeat(jobs, looksForMissing = false) {
      const at = now();
      const hadGap = at - beatAt > STEADY_MS;
      const {
        isNew,
        failed,
        isMissing,
        jobs: count,
        overdue,
        readyMs,
      } = await beat(
        db,
        holder,
        hadGap || at - steadySince < STEADY_MS,
        looksForMissing ? db`exists (${activeBases(db, hasJob(db))})` : undefined,
      );
      beatAt = at;
      // After a crash, the holders' table is as new as this one's row.
      if (hadGap || isNew) steadySince = at;
      const isFurther = (failed > 0 || isMissing) && (await reconcile()) > 0;
      const readyAt = isFurther ? now() : readyMs === null ? Infinity : now() + Math.max(0, readyMs);
      load = { jobs: count, overdue, readyAt };
      // After an outage, what this process has released meanwhile may still be its own.
      if (!isNew && !hadGap && ++beats % CHECK_EVERY > 0) return [];
      const { released, held } = await checkJobs(db, holder, jobs);
      if (released > 0) await wakeAll();
      return jobs.filter((job) => !held.has(job.id));
    },
    async reclaim(baseIds) {
      // Jobs that failed a moment ago may not be queued again yet.
      await reconcile();
      return takeJobsOf(db, holder, baseIds);
    },
    async finish(job) {
      await boss.complete(SYNC_QUEUE, job.id);
    },
    async giveBack(job, afterMs) {
      await releaseJob(db, holder, job, afterMs);
      if (afterMs === 0) await wakeAll();
    },
    suspects: (baseIds) => countCrashes(db, baseIds),
    forgive: (jobs) => forgiveJobs(db, jobs),
    crashed: (baseIds) => recordCrash(db, baseIds),
    behaved: (baseId) => clearSuspect(db, baseId),
    reconcile,
    async onRequest(wake) {
      unlisten = (await db.listen(WAKE_CHANNEL, wake, wake)).unlisten;
    },
    async close() {
      await unlisten?.();
      if (options.isWorker) await endHolder(db, holder).catch(() => {});
      await boss.stop({ graceful: false });
    },
  };
}

/** A condition on a row of `bases`: the base has a job. */
function hasJob(db: Db): ReturnType<Db> {
  return db`exists (
    select from pgboss.job where name = ${SYNC_QUEUE} and state <= 'active' and singleton_key = bases.id)`;
}

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
import { PgBoss } from "pg-boss";
import type { Db } from "../context";
import { activeBaseIds } from "../control/bases";
import type { Logger } from "../log";
import { pgOptions } from "../postgres";
import { clearSuspect, countCrashes, forgiveJobs, recordCrash, type Suspect } from "./crashes";
import {
  beat,
  bringForward,
  endHolder,
  failSilent,
  heldJobs,
  keepJobs,
  type QueueLoad,
  queueLoad,
  releaseJob,
  releaseUnknown,
  SYNC_QUEUE,
  type SyncJob,
  takeJobs,
  takeJobsOf,
} from "./jobs";

export type { Suspect } from "./crashes";
export { fairShares, type Holder } from "./fair-share";
export { type QueueLoad, queueDepth, type SyncJob } from "./jobs";

const WAKE_CHANNEL = "basetide_sync_queued";
/** How often pg-boss looks for jobs that are over; those of dead workers are found by `reconcile`. */
const MONITOR_SECONDS = 10;
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
  /** Sends a heartbeat for the jobs; call it every few seconds. @returns the jobs that this process has lost */
  heartbeat(jobs: SyncJob[]): Promise<SyncJob[]>;
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
  load(): Promise<QueueLoad>;
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
      if (beatAt === Number.NEGATIVE_INFINITY) await beat(db, holder);
      return takeJobs(db, holder, limit);
    },
    async heartbeat(jobs) {
      const isNew = await beat(db, holder);
      const hadGap = now() - beatAt > STEADY_MS;
      beatAt = now();
      if (hadGap) steadySince = beatAt;
      await failSilent(db, beatAt - steadySince < STEADY_MS);
      // After an outage, what this process has released meanwhile may still be its own.
      if (!isNew && !hadGap && ++beats % CHECK_EVERY > 0) return [];
      if ((await releaseUnknown(db, holder, jobs)) > 0) await wakeAll();
      if (jobs.length === 0) return [];
      const held = await heldJobs(db, holder, jobs);
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
    load: () => queueLoad(db),
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

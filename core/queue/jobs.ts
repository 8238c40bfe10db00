/**
 * Operations on pg-boss's table of jobs for which it has no call: a job that changes hands without being deleted.
 *
 * Each is one statement, so that a crash never leaves a base without a job or with two.
 */
import type { Db } from "../context";

export const SYNC_QUEUE = "sync";

/** After waiting this long, a job may be taken by any worker with free capacity, whatever its share, s. */
const OVERDUE_SECONDS = 5;

/** A job that this process holds: the right to try for a lease of the base. */
export interface SyncJob {
  id: string;
  baseId: string;
}

export interface QueueLoad {
  /** Jobs that are active or ready to be taken. */
  jobs: number;
  /** Ready jobs that have waited too long. */
  overdue: number;
}

export async function queueLoad(db: Db): Promise<QueueLoad> {
  const [row] = await db<QueueLoad[]>`
    select count(*) filter (where state = 'active' or start_after <= now())::int as jobs,
      count(*) filter (where state < 'active' and start_after < now() - ${OVERDUE_SECONDS} * interval '1 s')::int
        as overdue
    from pgboss.job where name = ${SYNC_QUEUE} and state <= 'active'`;
  return row!;
}

/** Sends a heartbeat for these jobs. @returns the ids of those that are still active */
export async function touchJobs(db: Db, ids: string[]): Promise<Set<string>> {
  const rows = await db<{ id: string }[]>`
    update pgboss.job set heartbeat_on = now()
    where name = ${SYNC_QUEUE} and id = any (${ids}::uuid[]) and state = 'active' returning id`;
  return new Set(rows.map((row) => row.id));
}

/** Requeues an active job behind the waiting ones, for any worker, in `afterMs`. */
export async function releaseJob(db: Db, job: SyncJob, afterMs: number): Promise<void> {
  await db`
    update pgboss.job set state = 'created', created_on = now(), started_on = null, heartbeat_on = null,
      start_after = now() + ${afterMs} * interval '1 ms'
    where name = ${SYNC_QUEUE} and id = ${job.id} and state = 'active'`;
}

/** Takes the jobs of these bases that no worker holds, even if they are not due. */
export async function takeJobsOf(db: Db, baseIds: string[]): Promise<SyncJob[]> {
  return db<SyncJob[]>`
    update pgboss.job set state = 'active', started_on = now(), heartbeat_on = now()
    where name = ${SYNC_QUEUE} and state < 'active' and singleton_key = any (${baseIds})
    returning id, singleton_key as "baseId"`;
}

/** Makes a job that was requeued for later due now. */
export async function bringForward(db: Db, baseId: string): Promise<void> {
  await db`
    update pgboss.job set start_after = now()
    where name = ${SYNC_QUEUE} and singleton_key = ${baseId} and state < 'active' and start_after > now()`;
}

/** Returns how many sync jobs wait, and how many are active. */
export async function queueDepth(db: Db): Promise<{ waiting: number; active: number }> {
  const [row] = await db<{ waiting: number; active: number }[]>`
    select count(*) filter (where state in ('created', 'retry'))::int as waiting,
      count(*) filter (where state = 'active')::int as active
    from pgboss.job where name = 'sync' and state in ('created', 'retry', 'active')`;
  return row!;
}

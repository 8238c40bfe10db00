/**
 * Operations on pg-boss's table of jobs for which it has no call: a job that changes hands without being deleted.
 *
 * Each is one statement, so that a crash never leaves a base without a job or with two.
 */
import type { Db } from "../context";

export const SYNC_QUEUE = "sync";

/** A holder without a heartbeat for this long has lost its jobs. */
const HEARTBEAT_SECONDS = 10;
/** After waiting this long, a job may be taken by any worker with free capacity, whatever its share, s. */
const OVERDUE_SECONDS = 5;

/** 68 years, the largest number that pg-boss's column holds. */
const NEVER_SECONDS = 2 ** 31 - 1;

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

/**
 * Ends pg-boss's own limits on the age of sync jobs: it fails a job that is active for longer than a day at most, and deletes
 * one that was created long ago and waits. A base keeps its job for months, and its holder's heartbeats say whether it is
 * alive.
 */
export async function keepJobs(db: Db): Promise<void> {
  await db`
    update pgboss.queue set expire_seconds = ${NEVER_SECONDS}, retention_seconds = ${NEVER_SECONDS}
    where name = ${SYNC_QUEUE} and (expire_seconds, retention_seconds) <> (${NEVER_SECONDS}::int, ${NEVER_SECONDS}::int)`;
}

export async function queueLoad(db: Db): Promise<QueueLoad> {
  const [row] = await db<QueueLoad[]>`
    select count(*) filter (where state = 'active' or start_after <= now())::int as jobs,
      count(*) filter (where state < 'active' and start_after < now() - ${OVERDUE_SECONDS} * interval '1 s')::int
        as overdue
    from pgboss.job where name = ${SYNC_QUEUE} and state <= 'active'`;
  return row!;
}

/**
 * Takes up to `limit` due jobs, the longest waiting first: as pg-boss's own statement does, which does not say who holds a
 * job. Takes none for a holder that was found silent, and has not sent a heartbeat since.
 */
export async function takeJobs(db: Db, holder: string, limit: number): Promise<SyncJob[]> {
  return db<SyncJob[]>`
    with me as (select from job_holders where id = ${holder} for key share), due as (
      select id from pgboss.job
      where name = ${SYNC_QUEUE} and state < 'active' and start_after <= now() and exists (select from me)
      order by created_on, id limit ${limit} for update skip locked)
    update pgboss.job as j set state = 'active', started_on = now(),
      data = j.data || jsonb_build_object('holder', ${holder}::text)
    from due where j.name = ${SYNC_QUEUE} and j.id = due.id
    returning j.id, j.singleton_key as "baseId"`;
}

/** Sends a heartbeat for all jobs of the holder. @returns whether it may have lost some since the last one */
export async function beat(db: Db, holder: string): Promise<boolean> {
  // `failSilent` deletes the row of a holder in the statement that fails its jobs.
  const [row] = await db<{ isNew: boolean }[]>`
    insert into job_holders (id, seen_at) values (${holder}, now())
    on conflict (id) do update set seen_at = now()
    returning xmax = 0 as "isNew"`;
  return row!.isNew;
}

/** Returns the ids of those jobs that the holder still has. */
export async function heldJobs(db: Db, holder: string, jobs: SyncJob[]): Promise<Set<string>> {
  const rows = await db<{ id: string }[]>`
    select id from pgboss.job
    where name = ${SYNC_QUEUE} and id = any (${jobs.map((job) => job.id)}::uuid[]) and state = 'active'
      and data->>'holder' = ${holder}`;
  return new Set(rows.map((row) => row.id));
}

/**
 * Requeues jobs that the holder has and does not know: the answer to the statement that took or released them was lost.
 * Its heartbeats would keep them from every worker. One that was taken a moment ago may not be known yet.
 *
 * @returns how many there were
 */
export async function releaseUnknown(db: Db, holder: string, known: SyncJob[]): Promise<number> {
  const { count } = await db`
    update pgboss.job set state = 'created', created_on = now(), started_on = null, data = data - 'holder',
      start_after = now()
    where name = ${SYNC_QUEUE} and state = 'active' and data->>'holder' = ${holder}
      and started_on < now() - ${HEARTBEAT_SECONDS} * interval '1 s'
      and id <> all (${known.map((job) => job.id)}::uuid[])`;
  return count;
}

/** The holder sends no more heartbeats: what it has not released is lost at once. */
export async function endHolder(db: Db, holder: string): Promise<void> {
  await db`update job_holders set seen_at = '-infinity' where id = ${holder}`;
}

/**
 * Fails the jobs of holders without a heartbeat for HEARTBEAT_SECONDS.
 *
 * @param onlyEnded true to fail only those of holders that will send no more heartbeats
 */
export async function failSilent(db: Db, onlyEnded: boolean): Promise<void> {
  await db`
    with silent as (
      delete from job_holders
      where seen_at = '-infinity'
        or (not ${onlyEnded} and seen_at < now() - ${HEARTBEAT_SECONDS} * interval '1 s')
      returning id)
    update pgboss.job set state = 'failed', completed_on = now()
    where name = ${SYNC_QUEUE} and state = 'active' and data->>'holder' in (select id from silent)`;
}

/** Requeues an active job of the holder behind the waiting ones, for any worker, in `afterMs`. */
export async function releaseJob(db: Db, holder: string, job: SyncJob, afterMs: number): Promise<void> {
  await db`
    update pgboss.job set state = 'created', created_on = now(), started_on = null, data = data - 'holder',
      start_after = now() + ${afterMs} * interval '1 ms'
    where name = ${SYNC_QUEUE} and id = ${job.id} and state = 'active'
      and coalesce(data->>'holder', ${holder}) = ${holder}`;
}

/** Takes the jobs of these bases that no worker holds, even if they are not due. */
export async function takeJobsOf(db: Db, holder: string, baseIds: string[]): Promise<SyncJob[]> {
  return db<SyncJob[]>`
    update pgboss.job set state = 'active', started_on = now(),
      data = data || jsonb_build_object('holder', ${holder}::text)
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

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
  /** When the first waiting job may be taken, performance.now(); Infinity: none waits. */
  readyAt: number;
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

/** Creates the holder's row, without which it gets no job. */
export async function addHolder(db: Db, holder: string): Promise<void> {
  await db`insert into job_holders (id, seen_at) values (${holder}, now()) on conflict (id) do update set seen_at = now()`;
}

interface Beat {
  /** The holder may have lost jobs since its last heartbeat. */
  isNew: boolean;
  /** Jobs of silent holders that failed now. */
  failed: number;
  isMissing: boolean;
  /** As in `QueueLoad`. */
  jobs: number;
  overdue: number;
  /** Time until the first waiting job may be taken, negative since then; null: none waits. */
  readyMs: number | null;
}

/**
 * Sends a heartbeat for all jobs of the holder, and fails the jobs of other holders without one for HEARTBEAT_SECONDS.
 *
 * @param onlyEnded true to fail only those of holders that will send no more heartbeats
 * @param isMissing a condition for `isMissing` of the answer
 */
export async function beat(
  db: Db,
  holder: string,
  onlyEnded: boolean,
  isMissing: ReturnType<Db> = db`false`,
): Promise<Beat> {
  // The row of a silent holder is deleted in the statement that fails its jobs: it is new then.
  const [row] = await db<Beat[]>`
    with own as (
      insert into job_holders (id, seen_at) values (${holder}, now())
      on conflict (id) do update set seen_at = now()
      returning xmax = 0 as is_new),
    silent as (
      delete from job_holders
      where id <> ${holder} and (seen_at = '-infinity'
        or (not ${onlyEnded} and seen_at < now() - ${HEARTBEAT_SECONDS} * interval '1 s'))
      returning id),
    failed as (
      update pgboss.job as j set state = 'failed', completed_on = now()
      where name = ${SYNC_QUEUE} and state = 'active' and (data->>'holder' in (select id from silent)
        -- A crash of the server has emptied the table of holders, and this one did not come back.
        or (not ${onlyEnded} and data->>'holder' <> ${holder}
          and exists (select from job_holders where id = ${holder})
          and not exists (select from job_holders as h where h.id = j.data->>'holder')))
      returning true)
    select (select is_new from own) as "isNew", (select count(*)::int from failed) as failed,
      ${isMissing} as "isMissing", load.*
    from (
      select count(*) filter (where state = 'active' or start_after <= now())::int as jobs,
        count(*) filter (where state < 'active' and start_after < now() - ${OVERDUE_SECONDS} * interval '1 s')::int
          as overdue,
        extract(epoch from min(start_after) filter (where state < 'active') - now())::float8 * 1000 as "readyMs"
      from pgboss.job where name = ${SYNC_QUEUE} and state <= 'active') as load`;
  return row!;
}

/**
 * Requeues jobs that the holder has and does not know: the answer to the statement that took or released them was lost.
 * Its heartbeats would keep them from every worker. One that was taken a moment ago may not be known yet.
 *
 * @returns how many there were, and the ids of the known jobs that the holder still has
 */
export async function checkJobs(
  db: Db,
  holder: string,
  known: SyncJob[],
): Promise<{ released: number; held: Set<string> }> {
  const ids = known.map((job) => job.id);
  const [row] = await db<{ released: number; held: string[] }[]>`
    with released as (
      update pgboss.job set state = 'created', created_on = now(), started_on = null, data = data - 'holder',
        start_after = now()
      where name = ${SYNC_QUEUE} and state = 'active' and data->>'holder' = ${holder}
        and started_on < now() - ${HEARTBEAT_SECONDS} * interval '1 s' and id <> all (${ids}::uuid[])
      returning true)
    select (select count(*)::int from released) as released,
      array(select id::text from pgboss.job
        where name = ${SYNC_QUEUE} and id = any (${ids}::uuid[]) and state = 'active'
          and data->>'holder' = ${holder}) as held`;
  return { released: row!.released, held: new Set(row!.held) };
}

/** The holder sends no more heartbeats: what it has not released is lost at once. */
export async function endHolder(db: Db, holder: string): Promise<void> {
  await db`update job_holders set seen_at = '-infinity' where id = ${holder}`;
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

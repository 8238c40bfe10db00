/**
 * Records which bases are suspected of crashing the workers that hold them.
 *
 * A job fails if its worker did not release it: the worker was killed, crashed, ran out of memory or froze. After
 * SUSPECT_AFTER failures in a row a base is a suspect, and is synced in a child process, together with fewer and
 * fewer others. A crash of a child process that holds a single base identifies that base as the cause: it is
 * quarantined. A base whose worker never crashed has no row.
 */
import type { Db } from "../context";
import { SYNC_QUEUE, type SyncJob } from "./jobs";

/** Crashes in a row of workers that held the base. */
const SUSPECT_AFTER = 3;
/** A base without a crash for this long starts from zero. */
const FORGOTTEN_AFTER = "1 day";
/**
 * How long a suspect must be synced without a crash before it returns to the worker, s. Each further crash doubles it, so
 * that a base that only works for a while crashes fewer and fewer workers.
 */
const TRIAL_SECONDS = 30;
/**
 * How long a base is quarantined, s; each further crash doubles it. When its owner clicks Resync, it is tried again this
 * long after its last crash.
 */
const QUARANTINE_SECONDS = 60;
/** The longest trial, and the longest quarantine, s. */
const MAX_SECONDS = 3600;

export interface Suspect {
  baseId: string;
  /** How many bases were in the last child process that crashed with it; null if it was in none yet. */
  company: number | null;
  /** Time until it may be tried again, ms. */
  restMs: number;
}

/** Counts the newly failed jobs of these bases. @returns the suspects among the bases */
export async function countCrashes(db: Db, baseIds: string[]): Promise<Map<string, Suspect>> {
  if (baseIds.length === 0) return new Map();
  const rows = await db<Suspect[]>`
    with failed as (
      select j.singleton_key as base_id, count(*)::int as crashes, max(j.completed_on) as until
      from pgboss.job as j
        join bases as b on b.id = j.singleton_key
        left join base_crashes as c on c.base_id = j.singleton_key
      where j.name = ${SYNC_QUEUE} and j.state = 'failed' and j.singleton_key = any (${baseIds})
        and j.completed_on > coalesce(c.counted_until, '-infinity')
      group by 1
    ), summed as (
      select f.base_id, f.until, c.suspected_at,
        -- A suspect was in a child process, so it did not crash the worker.
        case when c.suspected_at is not null then c.crashes
          when c.counted_until < now() - ${FORGOTTEN_AFTER}::interval then f.crashes
          else coalesce(c.crashes, 0) + f.crashes end as crashes
      from failed as f left join base_crashes as c using (base_id)
    ), counted as (
      insert into base_crashes (base_id, crashes, counted_until, suspected_at)
      select base_id, crashes, until,
        coalesce(suspected_at, case when crashes >= ${SUSPECT_AFTER} then now() end)
      from summed
      on conflict (base_id) do update set crashes = excluded.crashes, counted_until = excluded.counted_until,
        suspected_at = excluded.suspected_at
      returning *
    ), known as (
      select * from counted
      union all select * from base_crashes
      where base_id = any (${baseIds}) and base_id not in (select base_id from counted)
    )
    select base_id as "baseId", company,
      case when quarantines = 0 then 0 else greatest(0, extract(epoch from
        suspected_at + ${QUARANTINE_SECONDS} * interval '1 s' - now()))::float8 * 1000 end as "restMs"
    from known where suspected_at is not null`;
  return new Map(rows.map((row) => [row.baseId, row]));
}

/** Removes jobs that were lost while their worker lived, so that they do not count as crashes. */
export async function forgiveJobs(db: Db, jobs: SyncJob[]): Promise<void> {
  await db`
    delete from pgboss.job
    where name = ${SYNC_QUEUE} and state = 'failed' and id = any (${jobs.map((job) => job.id)}::uuid[])`;
}

/**
 * Records the crash of a child process that held these bases. A base that was alone in it is quarantined.
 *
 * @returns the length of the quarantine, ms; null if there were several bases
 */
export async function recordCrash(db: Db, baseIds: string[]): Promise<number | null> {
  const isAlone = baseIds.length === 1;
  const [row] = await db<{ restMs: number }[]>`
    update base_crashes set suspected_at = now(), company = ${baseIds.length},
      crashes = crashes + ${isAlone ? 1 : 0},
      quarantines = quarantines + ${isAlone ? 1 : 0},
      quarantined_until = case when ${isAlone} then now() + least(${MAX_SECONDS},
        ${QUARANTINE_SECONDS} * power(2, least(quarantines, 20))) * interval '1 s' end
    where base_id = any (${baseIds})
    returning extract(epoch from quarantined_until - now())::float8 * 1000 as "restMs"`;
  return isAlone ? (row?.restMs ?? QUARANTINE_SECONDS * 1000) : null;
}

/**
 * Records that a lease of a suspect ended normally.
 *
 * @returns whether it was synced long enough to be no longer a suspect
 */
export async function clearSuspect(db: Db, baseId: string): Promise<boolean> {
  const { count } = await db`
    update base_crashes
    set suspected_at = null, company = null, quarantines = 0, quarantined_until = null
    where base_id = ${baseId} and suspected_at < now() - least(${MAX_SECONDS},
      ${TRIAL_SECONDS} * power(2, least(crashes - ${SUSPECT_AFTER}, 20))) * interval '1 s'`;
  return count > 0;
}

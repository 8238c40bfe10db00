/**
 * Finds readers that use up transaction ids, for example by `notify` in a loop.
 *
 * An id in `pg_stat_activity` is proof: a reader's session gets none for queries, cursors, prepared statements,
 * savepoints or `listen`. But the id is visible for microseconds only. So, if the server has assigned many ids lately, the
 * search asks at random moments how many it has assigned, and takes a burst of samples of the sessions whenever these are
 * many. Each burst is a statement of its own of about 20 ms: a customer could see the locks of a longer one in `pg_locks`
 * and pause meanwhile.
 *
 * To see all sessions takes the server 3 ms of CPU if there are a thousand, so the samples of a burst are those of readers
 * that have just been active.
 */
import type { Sql } from "postgres";

export interface IdWatch {
  /**
   * Returns whether to search: for a minute after the server has assigned ids fast, on average between two calls.
   *
   * @param nextId the next id that the server assigns
   */
  isDue(nextId: string): boolean;
  /**
   * @returns those of `readers` that use up ids on the cluster that `admin` is connected to; takes one or two seconds
   */
  find(admin: Sql, readers: string[]): Promise<string[]>;
}

/** Samples in one search and their mean interval; a distant cluster gets fewer. */
const LOOKS = 20;
const CHECK_EVERY_MS = 75;
const SEARCH_MS = 4000;
/** Samples in a burst, 1 ms apart: without a pause all would see the same on a server that lacks CPU. */
const BURST = 20;
/** Below this rate a reader with an id does no harm to the server; `endExcess` ends a session that holds an id. */
const IDS_PER_SECOND = 200;
/**
 * Sightings of a role's ids within REMEMBERED_MS that count as proof. An id that a session holds counts in each sample.
 */
const SIGHTINGS = 3;
const REMEMBERED_MS = 60_000;

/** The next id that the server assigns, at a time (performance.now()). */
interface Position {
  next: bigint;
  at: number;
}

function isFast(from: Position, to: Position): boolean {
  return Number(to.next - from.next) * 1000 > IDS_PER_SECOND * (to.at - from.at);
}

/** Watches one cluster. Sightings of a role are remembered for a minute. */
export function watchIds(): IdWatch {
  const seen = new Map<string, number[]>();
  let known: Position | undefined;
  let fastAt = Number.NEGATIVE_INFINITY;
  return {
    isDue(nextId) {
      const now = { next: BigInt(nextId), at: performance.now() };
      if (!known || isFast(known, now)) fastAt = now.at;
      known = now;
      return now.at - fastAt < REMEMBERED_MS;
    },
    async find(admin, readers) {
      const begun = performance.now();
      let last: Position | undefined;
      for (let index = 0; index < LOOKS && performance.now() - begun < SEARCH_MS; index++) {
        if (index > 0) await Bun.sleep(2 * Math.random() * CHECK_EVERY_MS);
        const now = await position(admin);
        // An id that is held while the server assigns ids slowly is not the cause of their use.
        const isBurst = last !== undefined && isFast(last, now);
        last = now;
        if (!isBurst) continue;
        for (const role of await holders(admin, readers)) seen.set(role, [...(seen.get(role) ?? []), now.at]);
      }
      for (const [role, times] of seen) {
        const recent = times.filter((at) => at > begun - REMEMBERED_MS);
        if (recent.length > 0) seen.set(role, recent);
        else seen.delete(role);
      }
      const found = readers.filter((role) => (seen.get(role)?.length ?? 0) >= SIGHTINGS);
      for (const role of found) seen.delete(role);
      return found;
    },
  };
}

async function position(admin: Sql): Promise<Position> {
  const [row] = await admin<{ next: string }[]>`
    select pg_snapshot_xmax(pg_current_snapshot())::text as next`;
  return { next: BigInt(row!.next), at: performance.now() };
}

/**
 * Takes a burst of samples of the readers' sessions that are, or have just been, active.
 *
 * @returns roles whose sessions hold an id, one entry per id
 */
async function holders(admin: Sql, readers: string[]): Promise<string[]> {
  // Each sample depends on the one before `cross join lateral`, so that none is planned to be taken once for all.
  const [row] = await admin<{ roles: string[] }[]>`
    with active as materialized (
      select array_agg(pid) as pids from pg_stat_get_activity(null)
      where usesysid in (select oid from pg_roles where rolname = any (${readers}::text[]))
        and (state <> 'idle' or state_change > clock_timestamp() - interval '1 second'))
    select array(
      select pg_get_userbyid(usesysid)::text from (
        select distinct session.usesysid, session.backend_xid::text
        from active cross join generate_series(1, case when pids is null then 0 else ${BURST}::int end) as sample
          cross join lateral (
            select case when pg_stat_clear_snapshot() is null or (sample > 1 and pg_sleep(0.001) is null) then null
              else pids end as sampled offset 0) as moment
          cross join lateral unnest(sampled) as pid
          -- By pid alone, a planner would remember the first sample.
          cross join lateral pg_stat_get_activity(case when sample > 0 then pid end) as session
        -- Not shown of sessions that the admin may not see, which are no customers'.
        where session.backend_xid is not null) as held) as roles`;
  return row!.roles;
}

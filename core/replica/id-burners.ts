/**
 * Finds readers that use up transaction ids, for example by `notify` in a loop.
 *
 * An id in `pg_stat_activity` is proof: a reader's session gets none for queries, cursors, prepared statements,
 * savepoints or `listen`. But the id is visible for microseconds only. So the search looks at random moments and, while
 * the server assigns ids fast, takes a burst of samples each time. Each look is a statement of its own of about 20 ms:
 * a customer could see the locks of a longer one in `pg_locks` and pause meanwhile.
 */
import type { Sql } from "postgres";

export interface IdWatch {
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

interface Look {
  /** The next id that the server assigns. */
  next: string;
  /** Roles whose sessions hold an id, one entry per id. */
  roles: string[];
}

/** Watches one cluster. Sightings of a role are remembered for a minute. */
export function watchIds(): IdWatch {
  const seen = new Map<string, number[]>();
  return {
    async find(admin, readers) {
      const begun = performance.now();
      let isFast = false;
      let last: { next: bigint; at: number } | undefined;
      for (let index = 0; index < LOOKS && performance.now() - begun < SEARCH_MS; index++) {
        if (index > 0) await Bun.sleep(2 * Math.random() * CHECK_EVERY_MS);
        const { next, roles } = await look(admin, isFast ? BURST : 1);
        const now = { next: BigInt(next), at: performance.now() };
        isFast =
          last !== undefined && Number(now.next - last.next) * 1000 > IDS_PER_SECOND * (now.at - last.at);
        last = now;
        // An id that is held while the server assigns ids slowly is not the cause of their use.
        if (isFast) for (const role of roles) seen.set(role, [...(seen.get(role) ?? []), now.at]);
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

async function look(admin: Sql, samples: number): Promise<Look> {
  // Without the volatile function all samples would be the same. Its null argument stands for all sessions.
  const [row] = await admin<Look[]>`
    select pg_snapshot_xmax(pg_current_snapshot())::text as next, array(
      select pg_get_userbyid(usesysid)::text from (
        select distinct usesysid, backend_xid::text from generate_series(1, ${samples}::int) as sample
          cross join lateral pg_stat_get_activity(case
            when sample < 0 or pg_stat_clear_snapshot() is null or (sample > 1 and pg_sleep(0.001) is null) then 0 end)
        -- Not shown of sessions that the admin may not see, which are no customers'.
        where backend_xid is not null) as held) as roles`;
  return row!;
}

/** Rolls the runs of each past hour up into `base_days`, once an hour for all bases in one statement. */
import type { Db } from "../../context";
import { openIssueCount } from "../bases";

/** Also hours that were rolled up before: a long sync belongs to the hours in which it ran. */
const HOURS = 3;

/** Rolls up the last hours that are over. Idempotent. @returns the number of rows written */
export async function rollUpHours(db: Db): Promise<number> {
  let rows = 0;
  for (let ago = HOURS; ago >= 1; ago--) rows += await rollUpHour(db, ago);
  return rows;
}

async function rollUpHour(db: Db, hoursAgo: number): Promise<number> {
  // A row of unchanged syncs spans up to an hour, and its age counts in both hours that it touches.
  const { count } = await db`
    with h as (
      select at, (at at time zone 'UTC')::date as day, extract(hour from at at time zone 'UTC')::int + 1 as n
      from (select date_trunc('hour', now()) - make_interval(hours => ${hoursAgo}::int) as at) as t
    ), seen as (
      select r.base_id, percentile_disc(0.5) within group (order by r.lag_ms / r.syncs)::real as p50,
        max(r.max_lag_ms)::real as max,
        coalesce(sum(r.inserted + r.updated + r.deleted) filter (where r.started_at >= h.at), 0)::int as changed
      from h join sync_runs as r on r.started_at > h.at - interval '2 hours' and r.started_at < h.at + interval '1 hour'
      where r.completed_at >= h.at and r.lag_ms is not null
      group by r.base_id
    )
    insert into base_days as d (base_id, day, lag_p50_ms, lag_max_ms, changed, issues)
    select b.id, h.day, ${hourArray(db, "null::real", "seen.p50")}, ${hourArray(db, "null::real", "seen.max")},
      ${hourArray(db, "null::int", "seen.changed")}, ${hourArray(db, "null::int", "open.issues")}
    from seen join bases as b on b.id = seen.base_id, h, lateral (select ${openIssueCount(db)} as issues) as open
    on conflict (base_id, day) do update set
      lag_p50_ms[(select n from h)] = excluded.lag_p50_ms[(select n from h)],
      lag_max_ms[(select n from h)] = excluded.lag_max_ms[(select n from h)],
      changed[(select n from h)] = excluded.changed[(select n from h)],
      issues[(select n from h)] = coalesce(d.issues[(select n from h)], excluded.issues[(select n from h)])`;
  return count;
}

/** 24 elements, of which the n-th has the value. */
function hourArray(db: Db, empty: "null::real" | "null::int", value: string) {
  const filled = (length: string) => db.unsafe(`array_fill(${empty}, array[${length}])`);
  return db`${filled("h.n - 1")} || ${db.unsafe(value)} || ${filled("24 - h.n")}`;
}

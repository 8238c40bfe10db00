/** The last 24 hours that are over, over all bases: lag, calls, changed rows, and bases with an outage. */
import type { Db } from "../../context";
import { HOUR_MS, utcDay } from "../../time-units";
import type { LagBucket } from "./lag";
import { HOURS } from "./today";

/** Of one hour. */
export interface FleetHour extends LagBucket {
  /** Calls to the source. */
  sync: number;
  client: number;
  /** Bases that had an outage in it. */
  outages: number;
}

interface Row {
  at: Date;
  p50Ms: number | null;
  maxMs: number | null;
  changed: number;
  sync: number;
  client: number;
  outages: number;
}

/** The oldest hour first. The lag of an hour is the median of the bases' medians, and the greatest of all. */
export async function fleetHistory(db: Db, now: Date): Promise<FleetHour[]> {
  const until = new Date(Math.floor(now.getTime() / HOUR_MS) * HOUR_MS);
  const from = new Date(until.getTime() - HOURS * HOUR_MS);
  const days = [from, until].map(utcDay);
  return db<Row[]>`
    with hours as (
      select at, (at at time zone 'UTC')::date as day, extract(hour from at at time zone 'UTC')::int + 1 as n
      from generate_series(${from}::timestamptz, ${until}::timestamptz - interval '1 hour', interval '1 hour') as at
    ), lags as (
      select h.at, percentile_disc(0.5) within group (order by d.lag_p50_ms[h.n]) as p50,
        max(d.lag_max_ms[h.n]) as max, coalesce(sum(d.changed[h.n]), 0) as changed
      from hours as h join base_days as d on d.day = h.day
      where d.day between ${days[0]!}::date and ${days[1]!}::date
      group by h.at
    ), calls as (
      select h.at, coalesce(sum(q.sync[h.n]), 0) as sync, coalesce(sum(q.client[h.n]), 0) as client
      from hours as h join quota_days as q on q.day = h.day
      where q.day between ${days[0]!}::date and ${days[1]!}::date
      group by h.at
    )
    select h.at, l.p50::float8 as "p50Ms", l.max::float8 as "maxMs", coalesce(l.changed, 0)::float8 as changed,
      coalesce(c.sync, 0)::float8 as sync, coalesce(c.client, 0)::float8 as client,
      (select count(distinct p.base_id)::int from base_periods as p
        where p.kind = 'outage' and p.began_at < h.at + interval '1 hour'
          and (p.ended_at is null or p.ended_at > h.at)) as outages
    from hours as h left join lags as l using (at) left join calls as c using (at)
    order by h.at`;
}

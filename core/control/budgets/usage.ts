/** The usage of a base's quota, by minute and by month, for display. */
import type { Db } from "../../context";
import { quotaKeyOf, type SourceBaseRef } from "../../source";

/** Requests in one minute. */
export interface MinuteUse {
  minute: Date;
  sync: number;
  /** With those of the console. */
  client: number;
}

export interface QuotaUse {
  /** The last `minutes`, the oldest first, without gaps; the current one is up to 10 s old. */
  minutes: MinuteUse[];
  /** Since the first of the month, UTC. */
  month: { sync: number; client: number; console: number };
  /** A pause that the source asked for and that has not ended: its end and its reason. */
  blocked: { until: Date; reason: string } | null;
  /**
   * The source answers only twice a second, at least until then. `isCertain`: the workspace is above its cap;
   * otherwise inferred from the source's refusals, and tried again every hour.
   */
  slowed: { until: Date; isCertain: boolean } | null;
}

export async function quotaUse(
  db: Db,
  base: SourceBaseRef & { accountId?: string },
  minutes = 15,
): Promise<QuotaUse> {
  const key = quotaKeyOf(base);
  const [row] = await db<QuotaRow[]>`
    with q as (select * from quota_windows where key = ${key}),
    counted as (
      select minute, sync, client from quota_minutes where key = ${key}
      union all
      select date_trunc('minute', to_timestamp(counted_from / 1000)), sync_calls, client_calls from q
    ),
    by_month as (
      select sync, client, month from quota_calls where key = ${key}
      union all
      select sync_calls, client_calls,
        date_trunc('month', to_timestamp(counted_from / 1000) at time zone 'UTC')::date
      from q
    )
    select
      (select coalesce(json_agg(m order by m.minute), '[]') from (
        select minute, coalesce(sum(c.sync), 0)::int as sync, coalesce(sum(c.client), 0)::int as client
        from generate_series(date_trunc('minute', now()) - make_interval(mins => ${minutes - 1}::int),
          date_trunc('minute', now()), interval '1 minute') as minute
          left join counted as c using (minute)
        group by minute) as m) as minutes,
      coalesce(sum(sync), 0)::float8 as sync, coalesce(sum(client), 0)::float8 as client,
      (select coalesce(sum(h), 0)::float8 from quota_callers as c, unnest(c.calls) as h
        where c.key = ${key} and c.caller = 'console' and c.day >= date_trunc('month', now() at time zone 'UTC')) as console,
      (select json_build_object('until', b.blocked_until, 'reason', b.reason) from quota_blocks as b
        where b.key = ${key} and b.blocked_until > now()) as blocked,
      (select json_build_object('until', s.until, 'is_certain', s.is_certain) from quota_throttled as s
        where s.key = ${key} and s.until > now() and s.account_id in ('', ${base.accountId ?? ""})
        order by s.until desc limit 1) as slowed
    from by_month where month = date_trunc('month', now() at time zone 'UTC')::date`;
  return {
    minutes: row!.minutes.map(({ minute, ...calls }) => ({ minute: new Date(minute), ...calls })),
    month: monthOf(row!),
    blocked: row!.blocked && { until: new Date(row!.blocked.until), reason: row!.blocked.reason },
    slowed: row!.slowed && { until: new Date(row!.slowed.until), isCertain: row!.slowed.is_certain },
  };
}

/** The two counts of clients are stored at different times. */
function monthOf({ sync, client, console }: QuotaRow): QuotaUse["month"] {
  const ours = Math.min(client, console);
  return { sync, client: client - ours, console: ours };
}

interface QuotaRow {
  minutes: { minute: string; sync: number; client: number }[];
  sync: number;
  client: number;
  console: number;
  blocked: { until: string; reason: string } | null;
  slowed: { until: string; is_certain: boolean } | null;
}

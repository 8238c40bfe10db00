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
    select
      (select coalesce(json_agg(m order by m.minute), '[]') from (
        select m.minute, coalesce(sum(c.sync), 0)::int as sync, coalesce(sum(c.client), 0)::int as client
        from generate_series(date_trunc('minute', now()) - make_interval(mins => ${minutes - 1}::int),
          date_trunc('minute', now()), interval '1 minute') as m (minute)
          left join quota_minutes as c on c.key = ${key} and c.minute = m.minute
        group by m.minute) as m) as minutes,
      coalesce(sum(sync), 0)::float8 as sync, coalesce(sum(client), 0)::float8 as client,
      (select coalesce(sum(h), 0)::float8 from quota_callers as c, unnest(c.calls) as h
        where c.key = ${key} and c.caller = 'console' and c.day >= date_trunc('month', now() at time zone 'UTC')) as console,
      (select json_build_object('until', b.blocked_until, 'reason', b.reason) from quota_blocks as b
        where b.key = ${key} and b.blocked_until > now()) as blocked,
      (select json_build_object('until', s.until, 'is_certain', s.is_certain) from quota_throttled as s
        where s.key = ${key} and s.until > now() and s.account_id in ('', ${base.accountId ?? ""})
        order by s.until desc limit 1) as slowed
    from quota_calls where key = ${key} and month = date_trunc('month', now() at time zone 'UTC')::date`;
  return {
    minutes: row!.minutes.map(({ minute, ...calls }) => ({ minute: new Date(minute), ...calls })),
    month: { sync: row!.sync, client: row!.client - row!.console, console: row!.console },
    blocked: row!.blocked && { until: new Date(row!.blocked.until), reason: row!.blocked.reason },
    slowed: row!.slowed && { until: new Date(row!.slowed.until), isCertain: row!.slowed.is_certain },
  };
}

interface QuotaRow {
  minutes: { minute: string; sync: number; client: number }[];
  sync: number;
  client: number;
  console: number;
  blocked: { until: string; reason: string } | null;
  slowed: { until: string; is_certain: boolean } | null;
}

/** Reads the calls to the source for all bases of an account by day: by sync, by the console, and by clients. */
import type { Db } from "../../context";
import { DAY_MS, utcDay } from "../../time-units";
import { bucketsUntil } from "./buckets";
import type { CallTotals } from "./calls";

const DAYS = 30;
/** Days that are shown in any case; earlier ones only from the first call on. */
const SHORTEST = 7;

/** The calls of one base on the days of the account. */
export interface CallsOfBase {
  id: string;
  name: string;
  days: CallTotals[];
  total: Omit<CallTotals, "at">;
}

export interface AccountCalls {
  days: CallTotals[];
  /** The most calls first. If another account has connected a base, too, its calls count here as well. */
  bases: CallsOfBase[];
}

type Row = { day: string; sync: number; client: number; console: number };

/** Returns the last 30 days (UTC), without those before the first call; up to 10 s behind. */
export async function accountCalls(db: Db, accountId: string, now: Date): Promise<AccountCalls> {
  const starts = bucketsUntil(now, DAY_MS, DAYS);
  const from = utcDay(starts[0]!);
  const rows = await db<{ id: string; name: string; key: string; days: Row[] }[]>`
    with owned as (
      select id, coalesce(nullif(name, ''), source_base_id) as name, platform || ':' || source_base_id as key
      from bases where account_id = ${accountId} and state <> 'deleting'
    ), counted as (
      select key, day, (select sum(h) from unnest(sync) as h) as sync, (select sum(h) from unnest(client) as h) as client
      from quota_days where key in (select key from owned) and day >= ${from}::date
    )
    select o.id, o.name, o.key, coalesce(json_agg(d order by d.day) filter (where d.day is not null), '[]') as days
    from owned as o left join lateral (
      select c.day, sum(c.sync)::float8 as sync, sum(c.client)::float8 as client,
        (select coalesce(sum(h), 0) from quota_callers as k, unnest(k.calls) as h
          where k.key = o.key and k.day = c.day and k.caller = 'console')::float8 as console
      from counted as c where c.key = o.key group by c.day
    ) as d on true
    group by o.id, o.name, o.key`;
  const all = rows.map(({ id, name, days }) => toCalls(id, name, days, starts));
  // A base that is connected twice has one quota.
  const counted = all.filter((_, index) => rows.findIndex(({ key }) => key === rows[index]!.key) === index);
  const days = starts.map((at, index) => ({ at, ...added(counted.map((base) => base.days[index]!)) }));
  const bases = all.toSorted((a, b) => sumOf(b.total) - sumOf(a.total) || (a.name < b.name ? -1 : 1));
  const first = days.findIndex((day) => sumOf(day) > 0);
  const begin = Math.min(first < 0 ? DAYS : first, DAYS - SHORTEST);
  return {
    days: days.slice(begin),
    bases: bases.map((base) => ({ ...base, days: base.days.slice(begin) })),
  };
}

function toCalls(id: string, name: string, rows: Row[], starts: Date[]): CallsOfBase {
  const byDay = new Map(rows.map((row) => [row.day, row]));
  const days = starts.map((at) => {
    const { sync = 0, client = 0, console = 0 } = byDay.get(utcDay(at)) ?? {};
    return { at, sync, client: client - console, console };
  });
  return { id, name, days, total: added(days) };
}

function added(all: Omit<CallTotals, "at">[]): Omit<CallTotals, "at"> {
  const sum = (kind: "sync" | "client" | "console") => all.reduce((total, one) => total + one[kind], 0);
  return { sync: sum("sync"), client: sum("client"), console: sum("console") };
}

function sumOf({ sync, client, console }: Omit<CallTotals, "at">): number {
  return sync + client + console;
}

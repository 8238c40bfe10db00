/**
 * An account's public status page: how fresh each base is now, and outages of the last 90 days.
 *
 * SP1. Only who has the link sees it, until it is turned off or replaced. It shows names and ages of bases, never a row,
 *      a table, an id or the text of an error.
 */
import { SharedLookup } from "../../async";
import type { Actor, Context, Db } from "../../context";
import { newSecret } from "../../secrets";
import { DAY_MS, utcDay } from "../../time-units";
import { recordChange } from "../audit";
import { type BaseStatus, listBaseSummaries, statusOf } from "../status";
import type { PeriodKind } from "./periods";

const TOKEN_FORM = /^[\w-]{43}$/;
const DAYS = 90;

/** Seconds of a day in which the base was not current, by cause; null: it did not exist yet. */
export type StatusDay = { day: string; seconds: Partial<Record<PeriodKind, number>> | null };

export interface PublicBase {
  name: string;
  status: Pick<BaseStatus, "color" | "word" | "asOf" | "isCurrent">;
  /** The oldest first. */
  days: StatusDay[];
  /** The part of the time without an outage, 0 to 1. */
  available: number;
}

/** Returns the token of the account's link; null: it has no public page. */
export async function statusToken(db: Db, accountId: string): Promise<string | null> {
  const [row] = await db<{ token: string | null }[]>`
    select status_token as token from accounts where id = ${accountId}`;
  return row?.token ?? null;
}

/** Turns the page on under a new link; an earlier link no longer works. */
export async function newStatusPage(
  { db }: Pick<Context, "db">,
  accountId: string,
  actor: Actor,
): Promise<void> {
  await setToken(db, accountId, newSecret(), actor);
}

export async function turnOffStatusPage(
  { db }: Pick<Context, "db">,
  accountId: string,
  actor: Actor,
): Promise<void> {
  await setToken(db, accountId, null, actor);
}

async function setToken(db: Db, accountId: string, token: string | null, actor: Actor): Promise<void> {
  await db.begin(async (tx) => {
    await tx`update accounts set status_token = ${token} where id = ${accountId}`;
    const details = { public: token !== null };
    await recordChange(tx, actor, { accountId, subject: accountId, action: "status_page.changed", details });
  });
}

interface StatusPage {
  bases: PublicBase[];
  now: Date;
}

/** @returns a function that returns the bases of the account with a link, null if there is no such link */
export function publicStatus(db: Db): (token: string) => Promise<StatusPage | null> {
  const accounts = new SharedLookup(async (tokens) => {
    const found = await db<{ id: string; token: string; now: Date }[]>`
      select id, status_token as token, now() as now from accounts where status_token = any (${tokens})`;
    return new Map(found.map((account) => [account.token, account]));
  });
  return async (token) => {
    const account = TOKEN_FORM.test(token) ? await accounts.get(token) : undefined;
    return account ? statusPage(db, account) : null;
  };
}

async function statusPage(db: Db, { id, now }: { id: string; now: Date }): Promise<StatusPage> {
  const [bases, periods] = await Promise.all([listBaseSummaries(db, id), periodDays(db, id, now)]);
  const shown = bases.filter(({ state }) => state !== "deleting");
  return {
    now,
    bases: shown.map((base) => {
      const { color, word, asOf, isCurrent } = statusOf(base, now);
      const days = daysOf(periods.get(base.id) ?? new Map(), base.createdAt, now);
      return {
        name: base.name || base.sourceBaseId,
        status: { color, word, asOf, isCurrent },
        days,
        available: availability(days, base.createdAt, now),
      };
    }),
  };
}

type DaySeconds = Map<string, Partial<Record<PeriodKind, number>>>;

/** By base and day: one query for all bases. */
async function periodDays(db: Db, accountId: string, now: Date): Promise<Map<string, DaySeconds>> {
  const since = utcDay(new Date(now.getTime() - (DAYS - 1) * DAY_MS));
  const rows = await db<{ baseId: string; kind: PeriodKind; day: string; seconds: number }[]>`
    with p as (
      select p.base_id, p.kind, greatest(p.began_at at time zone 'UTC', ${since}::timestamp) as began,
        coalesce(p.ended_at, ${now}) at time zone 'UTC' as ended
      from base_periods as p join bases as b on b.id = p.base_id
      where b.account_id = ${accountId} and (p.ended_at is null or p.ended_at >= ${since}::date)
    )
    select p.base_id as "baseId", p.kind, d.day::date::text as day,
      sum(extract(epoch from least(p.ended, d.day + interval '1 day') - greatest(p.began, d.day)))::float8 as seconds
    from p cross join lateral generate_series(date_trunc('day', p.began), p.ended, interval '1 day') as d (day)
    where p.ended > p.began
    group by 1, 2, 3`;
  const bases = new Map<string, DaySeconds>();
  for (const { baseId, kind, day, seconds } of rows) {
    const days = bases.get(baseId) ?? new Map();
    bases.set(baseId, days.set(day, { ...days.get(day), [kind]: seconds }));
  }
  return bases;
}

function daysOf(seconds: DaySeconds, createdAt: Date, now: Date): StatusDay[] {
  const created = utcDay(createdAt);
  return Array.from({ length: DAYS }, (_, index) => {
    const day = utcDay(new Date(now.getTime() - (DAYS - 1 - index) * DAY_MS));
    return { day, seconds: day < created ? null : (seconds.get(day) ?? {}) };
  });
}

/** Rounding never makes an outage vanish: the page shows two decimals, rounded down. */
function availability(days: StatusDay[], createdAt: Date, now: Date): number {
  const outage = days.reduce((sum, { seconds }) => sum + (seconds?.outage ?? 0), 0);
  const totalMs = Math.min(now.getTime() - createdAt.getTime(), DAYS * DAY_MS);
  return totalMs <= 0 ? 1 : Math.max(0, 1 - (outage * 1000) / totalMs);
}

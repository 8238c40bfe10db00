/**
 * Reads the calls to the source for one base: by sync, by the console, and by clients, each key for itself.
 *
 * CH1. Keys are named only to the account that alone has connected the base: another one that has connected the same
 *      base sees the totals.
 */
import type { Db } from "../../context";
import { DAY_MS, HOUR_MS, MINUTE_MS, utcDay } from "../../time-units";
import { quotaKeyOf, quotaUse } from "../budgets";
import { bucketsUntil } from "./buckets";

export interface CallTotals {
  at: Date;
  sync: number;
  /** All calls of clients, without the console's. */
  client: number;
  console: number;
}

/** The calls of one key; `others`: all that are not listed. */
export interface CallerCalls {
  kind: "own" | "key" | "others";
  /** For `key`: its first letters. */
  name: string;
  calls: number;
}

interface CallHistory {
  buckets: CallTotals[];
  /** Of the whole time, the most calls first; empty for minutes. */
  callers: CallerCalls[];
}

interface HistoryBase {
  platform: string;
  sourceBaseId: string;
}

/** Returns the last hour by minutes, the last day by hours, or the last 30 days. */
export async function callsOver(
  db: Db,
  base: HistoryBase,
  per: "minute" | "hour" | "day",
  now: Date,
): Promise<CallHistory> {
  if (per === "minute") {
    const { minutes } = await quotaUse(db, base, HOUR_MS / MINUTE_MS);
    const buckets = minutes.map(({ minute, sync, client }) => ({ at: minute, sync, client, console: 0 }));
    return { buckets, callers: [] };
  }
  const starts = per === "hour" ? bucketsUntil(now, HOUR_MS, 24) : bucketsUntil(now, DAY_MS, 30);
  const from = utcDay(starts[0]!);
  const key = quotaKeyOf(base);
  const [totals, named] = await Promise.all([
    db<{ day: string; sync: number[]; client: number[] }[]>`
      select day::text, sync, client from quota_days where key = ${key} and day >= ${from}`,
    db<{ day: string; caller: string; calls: number[] }[]>`
      select day::text, case when caller = 'console' or s.is_alone then caller else 'others' end as caller, calls
      from quota_callers, (
        select count(distinct account_id) <= 1 as is_alone from bases
        where platform = ${base.platform} and source_base_id = ${base.sourceBaseId}) as s
      where key = ${key} and day >= ${from}`,
  ]);
  const days = new Map(totals.map((row) => [row.day, row]));
  const consoles = new Map(named.filter(({ caller }) => caller === "console").map((row) => [row.day, row]));
  const within = (at: Date, hours: number[] = []) =>
    per === "hour" ? (hours[at.getUTCHours()] ?? 0) : sumOf(hours);
  const buckets = starts.map((at) => {
    const day = days.get(utcDay(at));
    const client = within(at, day?.client);
    // The two are stored at different times.
    const ours = Math.min(client, within(at, consoles.get(utcDay(at))?.calls));
    return { at, sync: within(at, day?.sync), client: client - ours, console: ours };
  });
  const callers = new Map<string, number>();
  for (const { day, caller, calls } of named) {
    if (caller === "console" || caller === "others") continue;
    const sum = starts.reduce((total, at) => (utcDay(at) === day ? total + within(at, calls) : total), 0);
    callers.set(caller, (callers.get(caller) ?? 0) + sum);
  }
  return { buckets, callers: listed(callers, sumOf(buckets.map(({ client }) => client))) };
}

/** The most calls first; the rest of `total` is by others. */
function listed(callers: Map<string, number>, total: number): CallerCalls[] {
  const shown = [...callers]
    .filter(([, calls]) => calls > 0)
    .toSorted(([, a], [, b]) => b - a)
    .map(
      ([caller, calls]): CallerCalls => ({
        kind: caller === "own" ? "own" : "key",
        name: caller === "own" ? "" : caller,
        calls,
      }),
    );
  const others = total - sumOf(shown.map(({ calls }) => calls));
  return others > 0 ? [...shown, { kind: "others", name: "", calls: others }] : shown;
}

function sumOf(values: number[]): number {
  return values.reduce((total, one) => total + one, 0);
}

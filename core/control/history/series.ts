/** Reads a base's freshness, calls, changed rows and issues over the last hour, day or month. */
import type { Db } from "../../context";
import { DAY_MS, HOUR_MS, MINUTE_MS, utcDay } from "../../time-units";
import { type Base, openIssueCount } from "../bases";
import { type StatusFacts, statusOf } from "../status";
import { bucketsUntil } from "./buckets";
import { type CallerCalls, type CallTotals, callsOver } from "./calls";
import { type LagBucket, type LagSample, lagOver } from "./lag";
import { listPeriods, type Period } from "./periods";

export const historyRanges = {
  "1h": { text: "1 hour", bucketMs: MINUTE_MS, count: 60 },
  "24h": { text: "24 hours", bucketMs: 15 * MINUTE_MS, count: 96 },
  "30d": { text: "30 days", bucketMs: 6 * HOUR_MS, count: 120 },
} as const;
export type HistoryRange = keyof typeof historyRanges;

const CALL_RANGES = { "1h": "minute", "24h": "hour", "30d": "day" } as const;

/** Rows of the log that are read at most: a busy base writes one a minute. */
const MOST_RUNS = 3000;

interface Marker {
  at: Date;
  text: string;
}

/**
 * `unchanged`: nothing changed in this time; `new`: since the first sync, which was in it; `no_data`: the first sync has not
 * finished; `not_read`: Airtable was not read, so nothing is known.
 */
type Silence = "unchanged" | "new" | "no_data" | "not_read";

export interface BaseHistory {
  range: HistoryRange;
  lag: LagBucket[];
  periods: Period[];
  /** First syncs, rebuilds, and schema changes. */
  markers: Marker[];
  calls: CallTotals[];
  /** The calls of clients in the whole time, by caller; empty for the last hour. */
  callers: CallerCalls[];
  /** Empty for the last hour. */
  issues: { at: Date; count: number | null }[];
  now: Date;
  /** What an empty chart means. */
  silence: Silence;
}

type HistoryBase = Pick<Base, "id" | "platform" | "sourceBaseId"> & StatusFacts;

/** The age of the data, its periods and markers: what the overview shows. */
export type LagHistory = Pick<BaseHistory, "range" | "lag" | "periods" | "markers" | "now" | "silence">;

/** The ranges of a chart whose range was not chosen, the first with data counts: those of a new base are mostly empty. */
function usualRanges({ createdAt }: HistoryBase, now: Date): HistoryRange[] {
  return now.getTime() - createdAt.getTime() < DAY_MS ? ["1h", "24h"] : ["24h", "30d"];
}

/** @param range absent: the first one that has data */
export async function lagHistory(
  db: Db,
  base: HistoryBase,
  range: HistoryRange | undefined,
  now: Date,
): Promise<LagHistory> {
  if (range !== undefined) return lagIn(db, base, range, now);
  const [first, second] = usualRanges(base, now);
  const shorter = await lagIn(db, base, first!, now);
  if (shorter.lag.some(({ p50Ms }) => p50Ms !== null)) return shorter;
  const longer = await lagIn(db, base, second!, now);
  return longer.lag.some(({ p50Ms }) => p50Ms !== null) ? longer : shorter;
}

async function lagIn(db: Db, base: HistoryBase, range: HistoryRange, now: Date): Promise<LagHistory> {
  const baseId = base.id;
  const { bucketMs, count } = historyRanges[range];
  const buckets = bucketsUntil(now, bucketMs, count);
  const since = buckets[0]!;
  const [runs, days, periods, changes] = await Promise.all([
    runsSince(db, baseId, new Date(Math.max(since.getTime(), now.getTime() - DAY_MS))),
    range === "30d" ? daysSince(db, baseId, since) : [],
    listPeriods(db, baseId, since),
    changesSince(db, baseId, since),
  ]);
  const recent = runs.at(0)?.from ?? now;
  const samples = [...samplesOf(days, recent), ...runs];
  const firsts = runs.flatMap(({ kind, from }) =>
    kind === "first" || kind === "rebuild"
      ? [{ at: from, text: kind === "first" ? "First sync" : "Rebuild" }]
      : [],
  );
  const markers = [...firsts, ...changes].toSorted((a, b) => a.at.getTime() - b.at.getTime());
  const lag = lagOver(buckets, bucketMs, samples, periods, now);
  return { range, lag, periods, markers, now, silence: silenceOf(base, since, now) };
}

function silenceOf(base: HistoryBase, since: Date, now: Date): Silence {
  const { asOf, isCurrent } = statusOf(base, now);
  if (asOf === null) return "no_data";
  if (asOf < since || !isCurrent) return "not_read";
  return base.createdAt > since ? "new" : "unchanged";
}

export async function baseHistory(
  db: Db,
  base: HistoryBase,
  chosen: HistoryRange | undefined,
  now: Date,
): Promise<BaseHistory> {
  const lag = await lagHistory(db, base, chosen, now);
  const { range } = lag;
  const [calls, issues] = await Promise.all([
    callsOver(db, base, CALL_RANGES[range], now),
    range === "1h" ? [] : issuesOver(db, base.id, range, now),
  ]);
  return { ...lag, calls: calls.buckets, callers: calls.callers, issues };
}

/** The oldest first. */
async function runsSince(db: Db, baseId: string, since: Date): Promise<(LagSample & { kind: string })[]> {
  const rows = await db<(LagSample & { kind: string })[]>`
    select kind, started_at as from, coalesce(completed_at, started_at) as to, syncs, lag_ms / syncs as "lagMs",
      max_lag_ms as "maxLagMs", inserted + updated + deleted as changed
    from (select * from sync_runs where base_id = ${baseId} order by id desc limit ${MOST_RUNS}) as r
    where coalesce(completed_at, started_at) > ${since}
    order by started_at`;
  return rows;
}

interface DayRow {
  day: string;
  p50: (number | null)[];
  max: (number | null)[];
  changed: (number | null)[];
}

// The driver turns a null within an array into NaN: arrays come as JSON.
async function daysSince(db: Db, baseId: string, since: Date): Promise<DayRow[]> {
  return db<DayRow[]>`
    select day::text, to_json(lag_p50_ms) as p50, to_json(lag_max_ms) as max, to_json(changed) as changed
    from base_days where base_id = ${baseId} and day >= ${utcDay(since)} order by day`;
}

/** An hour of a rollup is one sample. Hours that `runs` cover are left to them. */
function samplesOf(days: DayRow[], runsFrom: Date): LagSample[] {
  const firstRunMs = Math.floor(runsFrom.getTime() / HOUR_MS) * HOUR_MS;
  return days.flatMap(({ day, p50, max, changed }) =>
    p50.flatMap((lagMs, hour) => {
      const fromMs = Date.parse(day) + hour * HOUR_MS;
      if (lagMs === null || fromMs >= firstRunMs) return [];
      const [from, to] = [new Date(fromMs), new Date(fromMs + HOUR_MS - 1)];
      return [{ from, to, syncs: 1, lagMs, maxLagMs: max[hour] ?? null, changed: changed[hour] ?? 0 }];
    }),
  );
}

/** Changes that were carried out together are one marker. The tables that a first sync finds are not changes. */
async function changesSince(db: Db, baseId: string, since: Date): Promise<Marker[]> {
  const rows = await db<{ at: Date; count: number }[]>`
    select min(c.seen_at) as at, count(*)::int as count
    from schema_changes as c join bases as b on b.id = c.base_id
    where c.base_id = ${baseId} and c.seen_at > ${since} and c.kind <> 'table_rebuilt'
      and not (c.kind = 'table_added' and c.seen_at < b.created_at + interval '10 minutes')
    group by date_bin('1 minute', c.seen_at, 'epoch') order by 1`;
  return rows.map(({ at, count }) => ({
    at,
    text: count === 1 ? "Schema change" : `${count} schema changes`,
  }));
}

async function issuesOver(
  db: Db,
  baseId: string,
  range: "24h" | "30d",
  now: Date,
): Promise<BaseHistory["issues"]> {
  const bucketMs = range === "24h" ? HOUR_MS : historyRanges["30d"].bucketMs;
  const buckets = bucketsUntil(now, bucketMs, range === "24h" ? 24 : historyRanges["30d"].count);
  const rows = await db<{ day: string; issues: (number | null)[]; current: number }[]>`
    select d.day::text, to_json(d.issues) as issues, ${openIssueCount(db)} as current from base_days as d join bases as b on b.id = d.base_id
    where d.base_id = ${baseId} and d.day >= ${utcDay(buckets[0]!)}`;
  const days = new Map(rows.map((row) => [row.day, row.issues]));
  // Without a sync in an hour, the issues are those of the hour before.
  let last: number | null = null;
  return buckets.map((at, index) => {
    for (let ms = at.getTime(); ms < at.getTime() + bucketMs; ms += HOUR_MS) {
      const hour = new Date(ms);
      last = days.get(utcDay(hour))?.[hour.getUTCHours()] ?? last;
    }
    return { at, count: index === buckets.length - 1 ? (rows[0]?.current ?? last) : last };
  });
}

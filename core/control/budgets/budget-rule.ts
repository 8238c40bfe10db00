/**
 * The arithmetic of a call budget: how many calls sync may still make, how fast, and where the month will end.
 * Without a clock and without SQL.
 *
 * Sync never uses the clients' reserve, nor the last hundredth: the month ends within the cap unless clients alone
 * exceed their reserve late in the month. No rule here ever rejects a client's request.
 */
import { nextMonth } from "../../source";
import { DAY_MS } from "../../time-units";

interface Cap {
  /** Null: no cap. */
  callsPerMonth: number | null;
  /** Calls of the month that are reserved for clients. */
  reserve: number;
}

export interface MonthUse {
  sync: number;
  client: number;
}

/** The calls of one whole day, UTC. */
export interface DayUse extends MonthUse {
  at: Date;
}

export interface Forecast {
  /** When the month ends. */
  at: Date;
  /** At the end of the month. */
  calls: number | null;
  /** On the next whole day. */
  nextDay: number | null;
  /** Whether the month ends within the cap. */
  endsInside: boolean | null;
  /** Why the others are null: there are fewer whole days than `FORECAST_DAYS`, or they differ too much. */
  missing: "history" | "regularity" | null;
}

/** Covers concurrent requests of several workers, and calls that the source counts and we do not see. */
const KEPT_BACK = 0.01;
/** Whole days that a forecast needs, and looks at: a week has every kind of day. */
export const FORECAST_DAYS = 7;
/**
 * How wrong a forecast may be. There is none if days are half as far from the mean of their kind, on both sides of which
 * the next one may be, or if today is already as far beyond it.
 */
const PRECISION = 0.25;
/** Lower limit of the time until the month's end, ms: the rate does not rise further in the last seconds. */
const SHORTEST_REST_MS = 60_000;

/** Calls that sync may still make this month; Infinity without a cap. */
export function leftForSync(cap: Cap, used: MonthUse): number {
  if (cap.callsPerMonth === null) return Infinity;
  const forClients = Math.max(cap.reserve, used.client);
  return Math.max(0, cap.callsPerMonth - keptBack(cap.callsPerMonth) - forClients - used.sync);
}

/** Calls a second for each base, if `bases` bases spend `left` evenly until the month's end. */
export function rateOf(left: number, now: Date, bases: number): number {
  const restMs = Math.max(SHORTEST_REST_MS, nextMonth(now).getTime() - now.getTime());
  return left / (restMs / 1000) / Math.max(1, bases);
}

/**
 * Forecasts the month's calls if each day left is like those of its kind (working days, weekends) in the last week, and
 * sync keeps to the budget. There is no forecast where the last week would have given a wrong one.
 *
 * @param days the last whole days since which the same bases have been synced, the oldest first, without gaps
 * @param today the calls since midnight
 */
export function forecastOf(cap: Cap, used: MonthUse, days: DayUse[], today: MonthUse, now: Date): Forecast {
  const at = nextMonth(now);
  const isOver = cap.callsPerMonth !== null && used.sync + used.client > cap.callsPerMonth;
  const none = (missing: Forecast["missing"]): Forecast => {
    const endsInside = cap.callsPerMonth === null ? true : isOver ? false : null;
    return { at, calls: null, nextDay: null, endsInside, missing };
  };
  if (days.length < FORECAST_DAYS) return none("history");
  const week = days.slice(-FORECAST_DAYS);
  const usual = {
    true: meanOf(week.filter(isWeekend)),
    false: meanOf(week.filter((day) => !isWeekend(day))),
  };
  const usualOn = (day: { at: Date }) => usual[`${isWeekend(day)}`];
  if (
    week.some(
      (day) => Math.abs(totalOf(day) - totalOf(usualOn(day))) > (PRECISION / 2) * totalOf(usualOn(day)),
    )
  )
    return none("regularity");
  if (totalOf(today) > (1 + PRECISION) * totalOf(usualOn({ at: now }))) return none("regularity");

  let [sync, client] = [0, 0];
  const midnight = Math.floor(now.getTime() / DAY_MS) * DAY_MS;
  for (let ms = midnight; ms < at.getTime(); ms += DAY_MS) {
    const part = ms === midnight ? 1 - (now.getTime() - midnight) / DAY_MS : 1;
    const day = usualOn({ at: new Date(ms) });
    [sync, client] = [sync + part * day.sync, client + part * day.client];
  }
  const affordable = leftForSync(cap, { sync: used.sync, client: used.client + client });
  const calls = Math.round(used.client + client + used.sync + Math.min(sync, affordable));
  const next = usualOn({ at: new Date(midnight + DAY_MS) });
  const nextDay = Math.round(next.client + Math.min(next.sync, affordable));
  const endsInside = cap.callsPerMonth === null || calls <= cap.callsPerMonth;
  return { at, calls, nextDay, endsInside, missing: null };
}

function isWeekend({ at }: { at: Date }): boolean {
  return at.getUTCDay() % 6 === 0;
}

function meanOf(days: MonthUse[]): MonthUse {
  const mean = (kind: keyof MonthUse) => days.reduce((sum, day) => sum + day[kind], 0) / days.length;
  return { sync: mean("sync"), client: mean("client") };
}

function totalOf({ sync, client }: MonthUse): number {
  return sync + client;
}

function keptBack(callsPerMonth: number): number {
  return Math.ceil(callsPerMonth * KEPT_BACK);
}

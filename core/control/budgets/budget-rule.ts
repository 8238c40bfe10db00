/**
 * The arithmetic of a call budget: how many calls sync may still make, how fast, and where the month will end.
 * Without a clock and without SQL.
 *
 * Sync never uses the clients' reserve, nor the last hundredth: the month ends within the cap unless clients alone
 * exceed their reserve late in the month. No rule here ever rejects a client's request.
 */

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

export interface Forecast {
  /** At the end of the month. */
  calls: number;
  at: Date;
  /** Whether that is within the cap. */
  endsInside: boolean;
}

/** Covers concurrent requests of several workers, and calls that the source counts and we do not see. */
const KEPT_BACK = 0.01;
/** A rate over a shorter period is not meaningful, ms. */
const SHORTEST_PAST_MS = 24 * 3600_000;
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
 * Forecasts the month's calls if clients and sync continue at their rates, and sync keeps to the budget.
 *
 * @param since when counting began, if that was this month
 */
export function forecastOf(cap: Cap, used: MonthUse, since: Date, now: Date): Forecast {
  const at = nextMonth(now);
  const monthStart = Date.UTC(now.getUTCFullYear(), now.getUTCMonth());
  const pastMs = Math.max(SHORTEST_PAST_MS, now.getTime() - Math.max(monthStart, since.getTime()));
  const rest = Math.max(0, at.getTime() - now.getTime()) / pastMs;
  const client = used.client * (1 + rest);
  const affordable = leftForSync(cap, { sync: used.sync, client });
  const sync = used.sync + Math.min(used.sync * rest, affordable);
  const calls = Math.round(sync + client);
  return { calls, at, endsInside: cap.callsPerMonth === null || calls <= cap.callsPerMonth };
}

function keptBack(callsPerMonth: number): number {
  return Math.ceil(callsPerMonth * KEPT_BACK);
}

/** When the next month of the source's call caps begins: on the first, UTC. */
export function nextMonth(now: Date): Date {
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1));
}

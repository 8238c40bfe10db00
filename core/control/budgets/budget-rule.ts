/**
 * The arithmetic of a call budget: what sync may still use, how fast, and where the month will end. No clock and no SQL.
 *
 * Sync never takes what is kept for clients, nor the last hundredth: the month ends inside the cap unless clients
 * alone go beyond their reserve late in it. Nothing here ever refuses a client.
 */

export interface Cap {
  /** Null: no cap. */
  callsPerMonth: number | null;
  /** Calls of the month that are kept for clients. */
  reserve: number;
}

export interface MonthUse {
  sync: number;
  client: number;
}

export interface Forecast {
  /** At the month's end. */
  calls: number;
  at: Date;
  /** Is that within the cap? */
  endsInside: boolean;
}

/** What several workers may ask for at the same moment, and what the source counts and we do not see. */
const KEPT_BACK = 0.01;
/** A rate over less time than this says little, ms. */
const SHORTEST_PAST_MS = 24 * 3600_000;
/** The last seconds of a month are not worth a rush, ms. */
const SHORTEST_REST_MS = 60_000;

/** Calls that sync may still make this month; Infinity without a cap. */
export function leftForSync(cap: Cap, used: MonthUse): number {
  if (cap.callsPerMonth === null) return Infinity;
  const forClients = Math.max(cap.reserve, used.client);
  return Math.max(0, cap.callsPerMonth - keptBack(cap.callsPerMonth) - forClients - used.sync);
}

/** Calls a second for each of so many bases that spend evenly what is left until the month's end. */
export function rateOf(left: number, now: Date, bases: number): number {
  const restMs = Math.max(SHORTEST_REST_MS, nextMonth(now).getTime() - now.getTime());
  return left / (restMs / 1000) / Math.max(1, bases);
}

/**
 * What the month ends with if clients and sync go on as they did, and sync keeps to the budget.
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

/** When the source's monthly caps on calls are counted anew: the first of the next month, UTC. */
export function nextMonth(now: Date): Date {
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1));
}

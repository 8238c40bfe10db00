/**
 * How often a base asks its source for what, by its mode and by what its budget leaves it. No clock and no state.
 *
 * Without a cap a base goes at the pace of its mode. With one, each interval is the longer of that and of what keeps
 * its calls within their part of the rate: the parts of a mode add up to less than one, so whoever keeps to them
 * never spends more than the rate, and what is saved in quiet hours makes the rate rise.
 */

export interface CadenceFacts {
  /** Calls a second that the budget leaves this base until the month's end; Infinity without a cap. */
  ratePerSecond: number;
  mode: "live" | "rapid" | "sweep";
  /** Live: the source notifies us, and need not be polled. */
  hasNotifications: boolean;
  /** Live: has anything changed lately (`ACTIVE_FOR_MS`)? */
  isActive: boolean;
  /** Calls that one sweep of all tables takes. */
  sweepCalls: number;
  tables: number;
  /** Are there cells that change without anybody changing a record (NOW(), signed URLs)? Only sweeps see those. */
  changesByItself: boolean;
  /**
   * Live: calls that a read of the feed has lately cost, with the records that were read again because of it; a mean
   * over reads, at least 1.
   */
  batchCalls?: number;
}

/** All in ms. */
export interface Cadence {
  /** From one read of the feed to the next when nobody notifications. */
  pollMs: number;
  /** Notifications may cause a read in so many ms; see `CallBucket` for how unused ones are saved up. */
  notificationGapMs: number;
  /** Between two comparisons of SQL with the source. */
  freshnessMs: number;
  /** Between two looks at the schema that nothing has asked for; 0: as configured. */
  schemaMs: number;
  /** From the beginning of a sweep of all tables to that of the next. */
  sweepEveryMs: number;
  /** Between two calls of a sweep beside live rounds. */
  sweepCallMs: number;
  /** From the beginning of a turn of rapid mode to that of the next. */
  cycleMs: number;
}

/** Calls of one sweep of all tables: pages of a hundred records, at least one of each table. */
export function sweepCallsOf(tables: readonly { records: number }[]): number {
  return tables.reduce((calls, { records }) => calls + Math.max(1, Math.ceil(records / RECORDS_PER_PAGE)), 0);
}

/** A base is active for so long after a change, ms. */
export const ACTIVE_FOR_MS = 10 * 60_000;
/** Reads of the feed that may be saved up for notifications that come close together. */
export const NOTIFICATION_BURST = 20;

const RECORDS_PER_PAGE = 100;

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
/** The longest that a timer can wait. */
const LONGEST_MS = 2 ** 31 - 1;

/** Nothing is swept, polled or asked for in turns more often than this. */
const SHORTEST_MS = SECOND_MS;
/** Without a cap: a read per notification, as long as the reads leave room for what they tell of. */
const PING_GAP_MS = 250;
/**
 * An idle live base with notifications makes 300 calls a day, and those of one sweep: 290 reads of the feed, so that
 * `_sync_meta` is never older than five minutes (2 s are left to the read itself), four comparisons, two looks at the
 * schema, and four at the webhook.
 */
const IDLE_POLL_MS = 5 * MINUTE_MS - 2 * SECOND_MS;
const IDLE_FRESHNESS_MS = 6 * HOUR_MS;
const IDLE_SCHEMA_MS = 12 * HOUR_MS;
const IDLE_SWEEP_MS = DAY_MS;
/** A live base that is polled, and idle. */
const POLLED_FRESHNESS_MS = 12 * MINUTE_MS;
const ACTIVE_FRESHNESS_MS = MINUTE_MS;
const LIVE_SCHEMA_MS = HOUR_MS;
/** Signed URLs end after two hours, and what NOW() says should not be an hour old. */
const CHANGING_SWEEP_MS = 45 * MINUTE_MS;

/** Parts of the rate, by mode. What is left of one is for tries that failed, and for keeping the webhook. */
const LIVE_PARTS = { polls: 0.45, sweeps: 0.3, freshness: 0.1, schema: 0.05 };
const RAPID_PARTS = { turns: 0.55, sweeps: 0.3, schema: 0.05 };
const SWEEP_PARTS = { sweeps: 0.85, schema: 0.05 };

export function cadenceOf(facts: CadenceFacts): Cadence {
  if (facts.mode === "live") return live(facts);
  const isRapid = facts.mode === "rapid";
  const parts = isRapid ? RAPID_PARTS : SWEEP_PARTS;
  return {
    pollMs: LONGEST_MS,
    notificationGapMs: LONGEST_MS,
    freshnessMs: LONGEST_MS,
    schemaMs: paced(facts, parts.schema, 1, 0),
    sweepEveryMs: paced(facts, parts.sweeps, facts.sweepCalls, SHORTEST_MS),
    sweepCallMs: 0,
    cycleMs: isRapid ? paced(facts, RAPID_PARTS.turns, facts.tables, SHORTEST_MS) : LONGEST_MS,
  };
}

function live(facts: CadenceFacts): Cadence {
  const { hasNotifications, isActive, batchCalls = 1 } = facts;
  const round = Math.max(1, batchCalls);
  const isIdle = hasNotifications && !isActive;
  return {
    pollMs: paced(facts, LIVE_PARTS.polls, round, hasNotifications ? IDLE_POLL_MS : SHORTEST_MS),
    notificationGapMs: paced(facts, LIVE_PARTS.polls, round, PING_GAP_MS),
    freshnessMs: paced(facts, LIVE_PARTS.freshness, 1, freshnessMs(facts)),
    schemaMs: paced(facts, LIVE_PARTS.schema, 1, isIdle ? IDLE_SCHEMA_MS : LIVE_SCHEMA_MS),
    sweepEveryMs: paced(facts, LIVE_PARTS.sweeps, facts.sweepCalls, unhurriedSweepMs(facts)),
    // A third of what sync may have, or less: calls of the feed find room between two of these.
    sweepCallMs: SECOND_MS,
    cycleMs: LONGEST_MS,
  };
}

function freshnessMs({ hasNotifications, isActive }: CadenceFacts): number {
  if (isActive) return ACTIVE_FRESHNESS_MS;
  return hasNotifications ? IDLE_FRESHNESS_MS : POLLED_FRESHNESS_MS;
}

/** Live, without a cap: sweeps follow one another while polls take calls anyway, or while something changes. */
function unhurriedSweepMs({ hasNotifications, isActive, changesByItself }: CadenceFacts): number {
  if (isActive || !hasNotifications) return SHORTEST_MS;
  return changesByItself ? CHANGING_SWEEP_MS : IDLE_SWEEP_MS;
}

/** The interval between things of so many calls each, which may use that part of the rate. */
function paced({ ratePerSecond }: CadenceFacts, part: number, calls: number, shortestMs: number): number {
  const perSecond = ratePerSecond * part;
  const affordableMs = perSecond > 0 ? (SECOND_MS * calls) / perSecond : LONGEST_MS;
  return Math.min(LONGEST_MS, Math.max(shortestMs, affordableMs));
}

/** Saves up what was not used, up to `NOTIFICATION_BURST`: a few notifications after quiet hours are all answered at once. */
export class CallBucket {
  #saved = NOTIFICATION_BURST;
  #at: number | undefined;

  /** How long until the next one, ms; 0: now. */
  waitMs(now: number, gapMs: number): number {
    this.#fill(now, gapMs);
    return this.#saved >= 1 ? 0 : Math.ceil((1 - this.#saved) * gapMs);
  }

  take(now: number, gapMs: number): void {
    this.#fill(now, gapMs);
    this.#saved = Math.max(0, this.#saved - 1);
  }

  #fill(now: number, gapMs: number): void {
    const passedMs = Math.max(0, now - (this.#at ?? now));
    this.#at = now;
    this.#saved = Math.min(NOTIFICATION_BURST, this.#saved + passedMs / gapMs);
  }
}

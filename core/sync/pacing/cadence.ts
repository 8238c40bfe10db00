/**
 * How often a base sends each kind of request to the source, by its mode and budget. No clock and no state.
 *
 * Without a cap, a base runs at the pace of its mode. With one, each interval is the longer of that pace and the
 * interval that keeps its calls within their part of the rate. The parts of a mode add up to less than one, so a base
 * never spends more than the rate, and calls that are saved in quiet hours make the rate rise.
 */
import { LONGEST_TIMER_MS } from "../../async";
import { strictest } from "../../source";
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../time-units";
import type { NotificationState } from "../host";
import { REST_MS, SHORTEST_MS, TICK_MS, TWICE_A_DAY_MS, UNPROMPTED_MS } from "./limits";

export interface CadenceFacts {
  /** Calls a second that the budget leaves this base until the end of the month; Infinity without a cap. */
  ratePerSecond: number;
  mode: "live" | "rapid" | "sweep";
  /** Live: whether the source notifies us, so that the feed need not be polled. */
  notifications: NotificationState;
  /** Live: whether anything changed lately (`ACTIVE_FOR_MS`). */
  isActive: boolean;
  /** Live: time from the last change, or from the beginning of live mode, to the last read of the feed, ms. */
  quietMs: number;
  /** Calls that one sweep of all tables takes. */
  sweepCalls: number;
  tables: number;
  /**
   * Whether there are cells that change although no record is edited (NOW(), signed URLs). Only sweeps see those
   * changes.
   */
  changesByItself: boolean;
  /**
   * Live: the average number of calls that recent reads of the feed caused, including the records that were read
   * again; at least 1.
   */
  batchCalls?: number;
}

/** All in ms. */
export interface Cadence {
  /** Interval between reads of the feed without notifications. */
  pollMs: number;
  /**
   * The shortest interval between reads that notifications cause; see `CallBucket` for how unused ones are saved up.
   */
  notificationGapMs: number;
  /** Interval between comparisons of SQL with the source. */
  freshnessMs: number;
  /** Interval between unrequested schema checks; 0: as configured. */
  schemaMs: number;
  /** Interval between the starts of two sweeps of all tables. */
  sweepEveryMs: number;
  /** Interval between two calls of a background sweep in live mode. */
  sweepCallMs: number;
  /** Interval between the starts of two cycles of rapid mode. */
  cycleMs: number;
}

/** Returns the number of calls of one sweep of all tables: pages of records, at least one per table. */
export function sweepCallsOf(tables: readonly { records: number }[]): number {
  const { pageSize } = strictest();
  return tables.reduce((calls, { records }) => calls + Math.max(1, Math.ceil(records / pageSize)), 0);
}

/** A base counts as active for this long after a change. */
export const ACTIVE_FOR_MS = 5 * MINUTE_MS;
/** The number of reads that notifications may cause at once after a quiet period. */
export const NOTIFICATION_BURST = 20;

/**
 * An idle live base with notifications makes 300 calls a day plus those of one sweep: 290 reads of the feed, so that
 * `_sync_meta` is never older than five minutes (with 2 s left for the read itself), four comparisons, two schema
 * checks, and four checks of the webhook.
 */
const IDLE_POLL_MS = 5 * MINUTE_MS - 2 * SECOND_MS;
const IDLE_SWEEP_MS = DAY_MS;
/**
 * Without notifications, the interval between polls grows with the time since the last change, up to this after
 * `ACTIVE_FOR_MS`: a change is found within a fiftieth of the time that the base was quiet.
 */
const LONGEST_POLL_MS = 6 * SECOND_MS;
/**
 * While notifications are expected but none has arrived, each poll is this many times later than the one before, counted
 * from the last change: after 10 s, after a minute, then every five minutes.
 */
const EXPECTED_GROWTH = 6;
const ACTIVE_FRESHNESS_MS = MINUTE_MS;
const LIVE_SCHEMA_MS = HOUR_MS;
/** Signed URLs expire after two hours, and the value of NOW() should not be an hour old. */
const CHANGING_SWEEP_MS = 45 * MINUTE_MS;

/** Parts of the rate, by mode. The remainder is for retries and for maintaining the webhook. */
const LIVE_PARTS = { polls: 0.45, sweeps: 0.3, freshness: 0.1, schema: 0.05 };
const RAPID_PARTS = { cycles: 0.55, sweeps: 0.3, schema: 0.05 };
const SWEEP_PARTS = { sweeps: 0.85, schema: 0.05 };

export function cadenceOf(facts: CadenceFacts): Cadence {
  if (facts.mode === "live") return live(facts);
  const isRapid = facts.mode === "rapid";
  const parts = isRapid ? RAPID_PARTS : SWEEP_PARTS;
  return {
    pollMs: LONGEST_TIMER_MS,
    notificationGapMs: LONGEST_TIMER_MS,
    freshnessMs: LONGEST_TIMER_MS,
    schemaMs: paced(facts, parts.schema, 1, 0),
    sweepEveryMs: paced(facts, parts.sweeps, facts.sweepCalls, SHORTEST_MS),
    sweepCallMs: 0,
    cycleMs: isRapid ? paced(facts, RAPID_PARTS.cycles, facts.tables, SHORTEST_MS) : LONGEST_TIMER_MS,
  };
}

function live(facts: CadenceFacts): Cadence {
  const { notifications, isActive, batchCalls = 1 } = facts;
  const calls = Math.max(1, batchCalls);
  const isIdle = notifications !== "none" && !isActive;
  return {
    pollMs: paced(facts, LIVE_PARTS.polls, calls, quietPollMs(facts)),
    notificationGapMs: paced(facts, LIVE_PARTS.polls, calls, TICK_MS),
    freshnessMs: paced(facts, LIVE_PARTS.freshness, 1, isIdle ? UNPROMPTED_MS : ACTIVE_FRESHNESS_MS),
    schemaMs: paced(facts, LIVE_PARTS.schema, 1, isIdle ? TWICE_A_DAY_MS : LIVE_SCHEMA_MS),
    sweepEveryMs: paced(facts, LIVE_PARTS.sweeps, facts.sweepCalls, unhurriedSweepMs(facts)),
    // A third of sync's share or less: calls for the feed fit between two calls of the sweep.
    sweepCallMs: SECOND_MS,
    cycleMs: LONGEST_TIMER_MS,
  };
}

/** Live mode without a cap: the less the source can be expected to notify us of a change, the more often it is polled. */
export function quietPollMs({
  notifications,
  quietMs,
}: Pick<CadenceFacts, "notifications" | "quietMs">): number {
  const grown = (fromMs: number, growth: number, toMs: number) =>
    Math.min(toMs, Math.max(fromMs, quietMs * growth));
  if (notifications === "none") return grown(SHORTEST_MS, LONGEST_POLL_MS / ACTIVE_FOR_MS, LONGEST_POLL_MS);
  return notifications === "expected" ? grown(REST_MS, EXPECTED_GROWTH - 1, IDLE_POLL_MS) : IDLE_POLL_MS;
}

/** Live mode without a cap: one sweep follows another while records change. */
function unhurriedSweepMs({ isActive, changesByItself }: CadenceFacts): number {
  if (isActive) return SHORTEST_MS;
  return changesByItself ? CHANGING_SWEEP_MS : IDLE_SWEEP_MS;
}

/** Returns the interval between actions of `calls` calls each that together may use `part` of the rate. */
function paced({ ratePerSecond }: CadenceFacts, part: number, calls: number, shortestMs: number): number {
  const perSecond = ratePerSecond * part;
  const affordableMs = perSecond > 0 ? (SECOND_MS * calls) / perSecond : LONGEST_TIMER_MS;
  return Math.min(LONGEST_TIMER_MS, Math.max(shortestMs, affordableMs));
}

/**
 * Saves up unused reads, up to `NOTIFICATION_BURST`: after quiet hours, a few notifications are all answered at once.
 */
export class CallBucket {
  #saved = NOTIFICATION_BURST;
  #at: number | undefined;

  /** Returns the time until the next read is allowed, ms; 0: now. */
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

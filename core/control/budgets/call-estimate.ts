/**
 * Estimates the calls that syncing a base would make under a budget, from the pace that a sync would really have. For
 * people who choose a plan; nothing is decided by it.
 */
import { cadenceOf } from "../../sync/pacing";
import { DAY_MS, SECOND_MS } from "../../time-units";
import { leftForSync, type MonthUse, rateOf } from "./budget-rule";

/** Calls of a batch of changes: one for the feed, one for the records that it names. */
const BATCH_CALLS = 2;

export interface EstimateInput {
  /** Of the base. */
  tables: number;
  /** Calls that read all tables once. */
  sweepCalls: number;
  /** Whether the key may read the feed of changes. */
  isLive: boolean;
  /** Whether the source can notify us; otherwise the feed is polled. */
  hasNotifications: boolean;
  /** The budget of the workspace; `callsPerMonth` null: no cap. */
  cap: { callsPerMonth: number | null; reserve: number };
  /** Calls of the workspace this month. */
  used: MonthUse;
  /** Other bases that share the budget. */
  otherBases: number;
  /** Requests a second that sync may use. */
  share: number;
  /** How often the schema is checked without a feed, ms. */
  schemaPollMs: number;
  now: Date;
}

export interface CallEstimate {
  firstSync: number;
  /** Whether the budget has calls left for the first sync. */
  isFirstSyncWithin: boolean;
  /** Calls a day while nothing changes, and while records change all day. */
  quietPerDay: number;
  busyPerDay: number;
  /** Interval between two full checks while nothing changes, ms. */
  fullCheckMs: number;
}

export function estimateCalls(input: EstimateInput): CallEstimate {
  const { tables, sweepCalls, cap, used, otherBases, now } = input;
  // The schema is read before and after.
  const firstSync = sweepCalls + 2;
  const left = leftForSync(cap, used);
  const rest = Math.max(0, left - firstSync);
  const ratePerSecond = left === Infinity ? Infinity : rateOf(rest, now, otherBases + 1);
  const facts = {
    ratePerSecond,
    sweepCalls,
    tables,
    notifications: input.hasNotifications ? ("proven" as const) : ("none" as const),
    changesByItself: false,
  };
  const mode = input.isLive ? ("live" as const) : ("sweep" as const);
  const quiet = cadenceOf({ ...facts, mode, isActive: false, quietMs: Number.POSITIVE_INFINITY });
  const busy = cadenceOf({ ...facts, mode, isActive: true, quietMs: 0, batchCalls: BATCH_CALLS });
  const first = { firstSync, isFirstSyncWithin: left >= firstSync };
  // The month may end before a day has passed.
  const most = Math.min(rest / (otherBases + 1), (Math.min(input.share, ratePerSecond) * DAY_MS) / SECOND_MS);
  const perDay = (calls: number) => Math.floor(Math.min(most, calls));
  const swept = (everyMs: number) => (sweepCalls * DAY_MS) / everyMs;
  const oneByOneMs = sweepCalls * (input.isLive ? quiet.sweepCallMs : SECOND_MS);
  if (!input.isLive) {
    const schemaMs = Math.max(input.schemaPollMs, quiet.schemaMs);
    const calls = perDay(swept(quiet.sweepEveryMs) + DAY_MS / schemaMs);
    const everyMs = Math.max(quiet.sweepEveryMs, oneByOneMs / input.share);
    return { ...first, quietPerDay: calls, busyPerDay: calls, fullCheckMs: everyMs };
  }
  return {
    ...first,
    quietPerDay: perDay(
      DAY_MS / quiet.pollMs +
        DAY_MS / quiet.freshnessMs +
        DAY_MS / quiet.schemaMs +
        swept(Math.max(quiet.sweepEveryMs, oneByOneMs)),
    ),
    // Reads that notifications cause follow each other as quickly as polls would.
    busyPerDay: perDay(
      (BATCH_CALLS * DAY_MS) / Math.max(SECOND_MS, busy.notificationGapMs) +
        DAY_MS / busy.freshnessMs +
        DAY_MS / busy.schemaMs +
        swept(Math.max(busy.sweepEveryMs, sweepCalls * busy.sweepCallMs)),
    ),
    fullCheckMs: Math.max(quiet.sweepEveryMs, oneByOneMs),
  };
}

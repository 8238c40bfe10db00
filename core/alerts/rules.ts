/**
 * The rules that decide when to alert, given the observed states; without a clock and without SQL.
 *
 * A1. At most one alert of a kind in QUIET_MS for one base (or workspace).
 *
 * A2. A condition is reported only after it has lasted for SETTLE_MS, and a recovery only after a reported failure.
 *
 * A3. Once nothing changes, the last report matches the state, after QUIET_MS + SETTLE_MS at the latest.
 */
import { type AlertKind, type BudgetLevel, budgetLevels } from "./kinds";

/**
 * How long a failure, or a recovery, must last before it is reported, ms. Others wait for it until then, so that simultaneous
 * failures are reported together.
 */
export const SETTLE_MS = 2 * 60_000;
/** Minimum time between two alerts of a kind about the same base, ms; changes in between are counted. */
export const QUIET_MS = 60 * 60_000;

/** The observed state for one kind, and what was reported. */
export interface KindState {
  state: string;
  /** Since when `state` holds. */
  since: Date;
  /** The state that was last reported; null: none. */
  told: string | null;
  reportedAt: Date | null;
  /** How often the condition occurred with less than QUIET_MS in between. */
  times: number;
}

const failingConditions = ["red", "needs_attention"] as const;
type FailingCondition = (typeof failingConditions)[number];
/** `frozen`: paused or being deleted, which says nothing about its health. */
export type BaseCondition = FailingCondition | "well" | "frozen";
export type Health = Record<FailingCondition | "recovered", KindState>;

interface AlertStep<State> {
  after: State;
  tell: { kind: AlertKind; since: Date; times: number } | null;
  /** Whether an alert will be due within SETTLE_MS unless the state changes. */
  isSettling: boolean;
}

/** The state of what was never observed. */
export const UNSEEN: KindState = { state: "off", since: new Date(0), told: null, reportedAt: null, times: 0 };

/** Applies the condition of a base at `now`. */
export function stepHealth(before: Health, condition: BaseCondition, now: Date): AlertStep<Health> {
  const seen = { ...before };
  for (const kind of failingConditions) seen[kind] = turned(before[kind], condition, kind, now);
  const quiet = { after: seen, tell: null, isSettling: false };
  if (condition === "frozen") return quiet;
  if (condition === "well") {
    const told = failingConditions.filter((kind) => seen[kind].told !== null);
    if (told.length === 0) return quiet;
    const since = new Date(Math.max(...failingConditions.map((kind) => seen[kind].since.getTime())));
    const { isDue, isSettling } = due(since, seen.recovered.reportedAt, now);
    if (!isDue) return { ...quiet, isSettling };
    const times = Math.max(...told.map((kind) => seen[kind].times));
    const recovered = { ...seen.recovered, state: "on", since, reportedAt: now };
    return { ...quiet, after: { ...untold(seen), recovered }, tell: { kind: "recovered", since, times } };
  }
  const { told, reportedAt, since, times } = seen[condition];
  if (told !== null) return quiet;
  const { isDue, isSettling } = due(since, reportedAt, now);
  if (!isDue) return { ...quiet, isSettling };
  const after = { ...untold(seen), [condition]: { ...seen[condition], told: "on", reportedAt: now } };
  return { ...quiet, after, tell: { kind: condition, since, times } };
}

/**
 * Applies the budget level of a workspace at `now`. Each level is reported once a month (UTC), and only if it is
 * worse.
 */
export function stepBudget(before: KindState, level: BudgetLevel, now: Date): AlertStep<KindState> {
  const isOther = before.state !== level;
  const after: KindState = { ...before, state: level, since: isOther ? now : before.since, times: 1 };
  const told = before.reportedAt && isSameMonth(before.reportedAt, now) ? before.told : null;
  if (rank(level) <= rank(told ?? "inside")) return { after, tell: null, isSettling: false };
  const { isDue, isSettling } = due(after.since, before.reportedAt, now);
  if (!isDue) return { after, tell: null, isSettling };
  const tell = { kind: "call_budget", since: after.since, times: 1 } as const;
  return { after: { ...after, told: level, reportedAt: now }, tell, isSettling: false };
}

/** Decides when a state that began at `since` may be reported. */
export function due(
  since: Date,
  reportedAt: Date | null,
  now: Date,
): { isDue: boolean; isSettling: boolean } {
  const at = Math.max(since.getTime() + SETTLE_MS, (reportedAt?.getTime() ?? -Infinity) + QUIET_MS);
  const waitMs = at - now.getTime();
  return { isDue: waitMs <= 0, isSettling: waitMs > 0 && waitMs <= SETTLE_MS };
}

function turned(before: KindState, condition: BaseCondition, kind: FailingCondition, now: Date): KindState {
  // A failure that was reported before the pause counts as known; one that was not starts again after it.
  const isOn = condition === "frozen" ? before.state === "on" && before.told !== null : condition === kind;
  if (isOn === (before.state === "on")) return before;
  if (!isOn) return { ...before, state: "off", since: now };
  const isNew = now.getTime() - before.since.getTime() > QUIET_MS;
  return { ...before, state: "on", since: now, times: isNew ? 1 : before.times + 1 };
}

/** The next report replaces all earlier ones. */
function untold(health: Health): Health {
  const after = { ...health };
  for (const kind of failingConditions) after[kind] = { ...health[kind], told: null };
  return after;
}

function rank(level: string): number {
  return (budgetLevels as readonly string[]).indexOf(level);
}

function isSameMonth(one: Date, other: Date): boolean {
  return one.toISOString().slice(0, 7) === other.toISOString().slice(0, 7);
}

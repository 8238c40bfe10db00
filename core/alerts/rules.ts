/**
 * When something is worth telling: rules over what is seen, without a clock and without SQL.
 *
 * A1. Of one base (or workspace) at most one alert of a kind in QUIET_MS.
 * A2. Nothing is told that has not lasted for SETTLE_MS; recovered only where trouble was told.
 * A3. Once nothing changes any more, what was told last is what is, QUIET_MS + SETTLE_MS later at the latest.
 */
import { type AlertKind, type BudgetLevel, budgetLevels } from "./kinds";

/** How long red, and being well again, must last before people are told, ms. */
export const SETTLE_MS = 2 * 60_000;
/** Shortest time between two alerts of a kind about the same base, ms: what comes and goes within it is counted. */
export const QUIET_MS = 60 * 60_000;
/** What is to be told within this time is waited for, so that what fails together is told together, ms. */
export const GATHER_MS = 2 * 60_000;

/** What is seen of one kind, and what was told of it. */
export interface KindState {
  state: string;
  /** Since when `state` is so. */
  since: Date;
  /** The state that people believe in; null: none. */
  told: string | null;
  reportedAt: Date | null;
  /** How often it came, never QUIET_MS apart. */
  times: number;
}

export const failingConditions = ["red", "needs_attention"] as const;
export type FailingCondition = (typeof failingConditions)[number];
/** `frozen`: paused or being deleted, which says nothing of how well it is. */
export type BaseCondition = FailingCondition | "well" | "frozen";
export type Health = Record<FailingCondition | "recovered", KindState>;

export interface AlertStep<State> {
  after: State;
  tell: { kind: AlertKind; since: Date; times: number } | null;
  /** Is something to be told within GATHER_MS unless it changes? */
  isSettling: boolean;
}

/** Of what nobody has ever seen. */
export const UNSEEN: KindState = { state: "off", since: new Date(0), told: null, reportedAt: null, times: 0 };

/** A base that is in this condition at `now`. */
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

/** A workspace whose budget is so at `now`. Each level is told once a month (UTC), and only from bad to worse. */
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

/** When something that has been so since `since` may be told. */
export function due(
  since: Date,
  reportedAt: Date | null,
  now: Date,
): { isDue: boolean; isSettling: boolean } {
  const at = Math.max(since.getTime() + SETTLE_MS, (reportedAt?.getTime() ?? -Infinity) + QUIET_MS);
  const waitMs = at - now.getTime();
  return { isDue: waitMs <= 0, isSettling: waitMs > 0 && waitMs <= GATHER_MS };
}

function turned(before: KindState, condition: BaseCondition, kind: FailingCondition, now: Date): KindState {
  // Who has paused a base knows how it was; one that nobody was told of begins anew.
  const isOn = condition === "frozen" ? before.state === "on" && before.told !== null : condition === kind;
  if (isOn === (before.state === "on")) return before;
  if (!isOn) return { ...before, state: "off", since: now };
  const isNew = now.getTime() - before.since.getTime() > QUIET_MS;
  return { ...before, state: "on", since: now, times: isNew ? 1 : before.times + 1 };
}

/** What is told next takes the place of all that was told before. */
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

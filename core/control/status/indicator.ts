/**
 * The indicator of a base: green, yellow or red, and the reason as text for a tooltip and a screen reader.
 *
 * The usual duration is the median of the last 20 sweeps, or in rapid mode of the last 20 cycles. Yellow: slower
 * than twice that, late, waiting or paused. Red: slower than five times, five times as late, or failing. In rapid
 * mode the background sweep must not be late either, because only it finds deletions and changes of computed
 * fields. Live mode is judged by how fresh SQL is; a pause for the call budget is not a delay.
 *
 * S2. Green means progress: it is not green while a table of the source is not in SQL (a first sync shows that by its
 *     progress), while the schema cannot be read, while live mode is on and there is no feed, or while anything waits
 *     for longer than usual (`problem-indicator.ts`).
 */

import { nextStep } from "../../errors";
import { formatDuration } from "../../format";
import type { Base } from "../bases";
import { GRACE_MS, RED_FACTOR, RED_MS, YELLOW_FACTOR } from "./limits";
import { liveIndicator } from "./live-indicator";
import { namesOf, problemIndicators, STALLED_MS, stalledMs } from "./problem-indicator";

export interface Indicator {
  color: "green" | "yellow" | "red";
  reason: string;
  /** What the judgment is about. */
  cause: Cause;
  /** Since when, the source's names of the tables that it concerns, and the next attempt, if known. */
  since?: Date | null;
  tables?: string[];
  nextAt?: Date | null;
}

/** `ok`: nothing to report. The others name what is going on; `status.ts` has the words for each. */
export type Cause =
  | "ok"
  | "first"
  | "stalled"
  | "queued"
  | "paced"
  | "paused"
  | "moving"
  | "deleting"
  | "read_only"
  | "error"
  | "blocked"
  | "clock"
  | "missing"
  | "outdated"
  | "failing_table"
  | "schema"
  | "settings"
  | "live_off"
  | "write"
  | "late"
  | "slow"
  | "unread"
  | "drift"
  | "uncompared"
  | "gap"
  | "waiting";

/** Fewer sweeps than this do not define a usual duration. */
const MIN_SWEEPS = 3;
/** A sync this short is never called slow: small bases take a fraction of a second, with larger variation. */
const NEVER_SLOW_MS = 2_000;
/** A first sync without progress for this long is red. */
const RED_STALLED_MS = 2 * RED_MS;

export type IndicatorFacts = Pick<
  Base,
  | "state"
  | "sync"
  | "sweep"
  | "error"
  | "failingTables"
  | "schemaError"
  | "progress"
  | "recentSweepMs"
  | "createdAt"
  | "live"
  | "restsUntil"
  | "blocked"
  | "isReadOnly"
  | "problems"
  | "progressAt"
  | "repairsSince"
  | "catchUpRequestedAt"
> & { settings: Pick<Base["settings"], "live" | "rapid"> };

export function indicatorOf(base: IndicatorFacts, now: Date): Indicator {
  if (base.state === "deleting") return { color: "yellow", reason: "Being deleted", cause: "deleting" };
  if (base.state === "moving") {
    return { color: "yellow", reason: "Being moved to another control plane", cause: "moving" };
  }
  if (base.state === "paused") return { color: "yellow", reason: "Syncing is paused", cause: "paused" };
  if (base.isReadOnly) {
    const reason = "The control plane is read-only, so nothing is synced";
    return { color: "red", reason, cause: "read_only" };
  }
  if (base.error) return failing(base.error, base.state, now);
  if (!base.sync) return first(base, now);
  const pace = isLive(base) ? liveIndicator(base, now) : sweepIndicator(base, now);
  const found = [ahead(base, now) ?? [], ...problemIndicators(base, now), pace].flat();
  const red = found.find(({ color }) => color === "red");
  return red ?? blocked(base, now) ?? found.find(({ color }) => color === "yellow") ?? pace;
}

/** Times that lie ahead say nothing: the clock of the control plane's database was set back. */
function ahead({ sync, sweep, live }: IndicatorFacts, now: Date): Indicator | null {
  const times = [sync?.completedAt, sweep?.completedAt, live?.readAt, live?.comparedAt];
  const aheadMs = Math.max(...times.map((time) => (time?.getTime() ?? 0) - now.getTime()));
  if (aheadMs <= GRACE_MS) return null;
  const reason = `The clock of the control plane's database is ${formatDuration(aheadMs)} behind the last sync, so how fresh the data is cannot be told`;
  return { color: "yellow", reason, cause: "clock" };
}

function sweepIndicator(base: IndicatorFacts, now: Date): Indicator {
  return (
    noLonger(base, now) ??
    resting(base, now) ??
    late(base, now) ??
    slow(base) ??
    lateSweep(base, now) ?? { color: "green", reason: inTime(base.sync!.durationMs), cause: "ok" }
  );
}

/**
 * Whether changes are read from the source's feed: not in rapid mode, without permission, or before the first read.
 */
export function isLive<Facts extends Pick<IndicatorFacts, "settings" | "live">>(
  base: Facts,
): base is Facts & { live: NonNullable<Facts["live"]> } {
  const { live, settings } = base;
  if (!settings.live || settings.rapid || !live) return false;
  return live.readAt !== null && live.state !== "refused" && live.state !== "failing";
}

/** Returns the middle value, the mean of the two middle ones for an even number, or null for none. */
export function median(values: number[]): number | null {
  if (values.length === 0) return null;
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

function first(base: IndicatorFacts, now: Date): Indicator {
  const ageMs = now.getTime() - base.createdAt.getTime();
  const idleMs = stalledMs(base, now);
  const schema = problemIndicators(base, now).find(({ cause }) => cause === "schema");
  const inTheWay = blocked(base, now) ?? schema;
  if (inTheWay) return inTheWay;
  if (base.progress && idleMs > STALLED_MS) return stalled(base, idleMs, now);
  if (base.progress || ageMs <= GRACE_MS) {
    return { color: "green", reason: "The first sync is running", cause: "first" };
  }
  const reason = `The first sync has been waiting to start for ${formatDuration(ageMs)}`;
  return { color: "yellow", reason, cause: "queued" };
}

function stalled({ progress }: IndicatorFacts, idleMs: number, now: Date): Indicator {
  const tables = progress!.tables.filter(({ done }) => !done).map(({ source_name: name }) => ({ name }));
  const missing = tables.length > 0 ? `. Not in the database yet: ${namesOf(tables)}` : "";
  return {
    color: idleMs > RED_STALLED_MS ? "red" : "yellow",
    reason: `The first sync has made no progress for ${formatDuration(idleMs)}${missing}`,
    cause: "stalled",
    since: new Date(now.getTime() - idleMs),
    tables: tables.map(({ name }) => name),
  };
}

function failing(error: NonNullable<Base["error"]>, state: Base["state"], now: Date): Indicator {
  const since = formatDuration(now.getTime() - error.since.getTime());
  const isWaiting = state !== "needs_attention" && nextStep[error.code] === "wait";
  return {
    color: isWaiting ? "yellow" : "red",
    reason: `${isWaiting ? "Waiting" : "Failing"} for ${since}: ${error.message}`,
    cause: "error",
    since: error.since,
  };
}

function blocked({ blocked: block }: IndicatorFacts, now: Date): Indicator | null {
  if (!block || block.until <= now) return null;
  const left = formatDuration(block.until.getTime() - now.getTime());
  const reason =
    block.reason === "rate_limited"
      ? `Airtable asked for a pause; requests resume in ${left}`
      : `Airtable's monthly limit of API calls is reached; the next attempt is in ${left}`;
  return { color: "yellow", reason, cause: "blocked" };
}

function resting({ restsUntil }: IndicatorFacts, now: Date): Indicator | null {
  if (!restsUntil || now > restsUntil) return null;
  const waitMs = restsUntil.getTime() - now.getTime();
  return {
    color: "green",
    reason: `Paced by the call budget; the next sync starts in ${formatDuration(waitMs)}`,
    cause: "paced",
  };
}

function late(base: IndicatorFacts, now: Date): Indicator | null {
  const dueAt = Math.max(base.sync!.completedAt.getTime(), base.restsUntil?.getTime() ?? 0);
  const ageMs = now.getTime() - dueAt;
  const expectedMs = median(base.recentSweepMs) ?? base.sync!.durationMs;
  if (ageMs <= YELLOW_FACTOR * expectedMs + GRACE_MS) return null;
  const color = ageMs > RED_FACTOR * (expectedMs + GRACE_MS) ? "red" : "yellow";
  const sinceMs = now.getTime() - base.sync!.completedAt.getTime();
  return {
    color,
    reason: `No sync has completed for ${formatDuration(sinceMs)}; usually it takes ${formatDuration(expectedMs)}`,
    cause: "late",
  };
}

/** Without changes for hours, live mode completed no sync: that does not make the sweeps after it late. */
function noLonger({ sync }: IndicatorFacts, now: Date): Indicator | null {
  if (sync!.kind !== "live") return null;
  const ageMs = now.getTime() - sync!.completedAt.getTime();
  if (ageMs <= GRACE_MS) return null;
  const reason = "Live sync has ended; every record is being re-read";
  return { color: "yellow", reason, cause: "gap" };
}

function slow(base: IndicatorFacts): Indicator | null {
  const usualMs = median(base.recentSweepMs);
  const { kind, durationMs } = base.sync!;
  // A rebuild takes longer than a sweep and says nothing about the base's health.
  if ((kind !== "sweep" && kind !== "rapid") || usualMs === null || base.recentSweepMs.length < MIN_SWEEPS)
    return null;
  if (durationMs <= NEVER_SLOW_MS || durationMs <= YELLOW_FACTOR * usualMs) return null;
  const color = durationMs > RED_FACTOR * usualMs ? "red" : "yellow";
  return {
    color,
    reason: `The last sync took ${formatDuration(durationMs)}; usually it takes ${formatDuration(usualMs)}`,
    cause: "slow",
  };
}

/** In rapid mode: checks whether deletions and changes of computed fields are found in time. */
function lateSweep({ sync, sweep }: IndicatorFacts, now: Date): Indicator | null {
  if (sync!.kind !== "rapid" || !sweep) return null;
  const ageMs = now.getTime() - sweep.completedAt.getTime();
  if (ageMs <= YELLOW_FACTOR * sweep.backgroundMs + GRACE_MS) return null;
  const color = ageMs > RED_FACTOR * (sweep.backgroundMs + GRACE_MS) ? "red" : "yellow";
  return {
    color,
    reason: `Deletes and computed fields were last checked ${formatDuration(ageMs)} ago; usually it takes ${formatDuration(sweep.backgroundMs)}`,
    cause: "late",
  };
}

function inTime(durationMs: number): string {
  return `In sync; the last sync took ${formatDuration(durationMs)}`;
}

/**
 * The health of a base in live mode, judged by the measured freshness of SQL and never by the time since a sync.
 *
 * Without changes no sync completes for hours. The base is healthy as long as the feed is read when it is due, SQL
 * was compared with the source recently, and no changed record waits for long.
 */
import { formatDuration } from "../../format";
import { MINUTE_MS } from "../../time-units";
import type { Base, LiveState } from "../bases";
import type { Indicator } from "./indicator";
import { GRACE_MS, RED_FACTOR, RED_MS, YELLOW_FACTOR } from "./limits";

/** A base in live mode. */
type LiveBase = Pick<Base, "createdAt" | "sweep"> & { live: LiveState };

/**
 * A base that is polled or in use is compared every minute or every 12 minutes; one that relies on notifications,
 * every 6 hours; if a budget slows all that down, once in five reads.
 */
const UNCOMPARED_MS = 60 * 60_000;
const RESTING_UNCOMPARED_MS = 6.5 * 60 * 60_000;
const UNCOMPARED_READS = 6;

/** Returns the worst problem; green if there is none. */
export function liveIndicator(base: LiveBase, now: Date): Indicator {
  const problems = [unread, stale, uncompared, gap, waiting].flatMap((judge) => judge(base, now) ?? []);
  return problems.find(({ color }) => color === "red") ?? problems[0] ?? well(base, now);
}

function unread({ live: { readAt, dueAt } }: LiveBase, now: Date): Indicator | null {
  const lateMs = dueAt ? now.getTime() - dueAt.getTime() : 0;
  if (lateMs <= GRACE_MS) return null;
  const since = readAt ? `for ${formatDuration(now.getTime() - readAt.getTime())}` : "yet";
  return {
    color: colorAfter(lateMs),
    reason: `Airtable has not been checked for changes ${since}`,
    cause: "unread",
  };
}

function stale({ live: { driftedSince } }: LiveBase, now: Date): Indicator | null {
  if (!driftedSince) return null;
  const ageMs = now.getTime() - driftedSince.getTime();
  return {
    color: colorAfter(ageMs),
    reason: `The database was found to lag behind Airtable ${formatDuration(ageMs)} ago`,
    cause: "drift",
  };
}

/** Counts sweeps too, because they compare everything. */
function uncompared(base: LiveBase, now: Date): Indicator | null {
  const { by, readAt, dueAt } = base.live;
  const paceMs = readAt && dueAt ? dueAt.getTime() - readAt.getTime() : 0;
  const usualMs = by === "notification" ? RESTING_UNCOMPARED_MS : UNCOMPARED_MS;
  const limitMs = Math.max(usualMs, UNCOMPARED_READS * paceMs);
  const ageMs = now.getTime() - (lastCompared(base) ?? base.createdAt).getTime();
  if (ageMs <= limitMs) return null;
  const reason = `The database has not been compared with Airtable for ${formatDuration(ageMs)}`;
  return { color: ageMs > RED_FACTOR * limitMs ? "red" : "yellow", reason, cause: "uncompared" };
}

function gap({ live: { gapSince }, sweep }: LiveBase, now: Date): Indicator | null {
  if (!gapSince) return null;
  const ageMs = now.getTime() - gapSince.getTime();
  // While it is unknown, that of 10,000 records.
  const sweepMs = (sweep?.backgroundMs ?? MINUTE_MS) + GRACE_MS;
  if (ageMs <= YELLOW_FACTOR * sweepMs) return null;
  return {
    color: ageMs > RED_FACTOR * sweepMs ? "red" : "yellow",
    reason: `Airtable cannot report what changed before ${formatDuration(ageMs)} ago; every record is being re-read`,
    cause: "gap",
  };
}

/** Many changed records take as long as a sweep of their tables, which is not a problem until then. */
function waiting({ live, sweep }: LiveBase, now: Date): Indicator | null {
  if (live.waiting === 0 || !live.waitingSince) return null;
  const ageMs = now.getTime() - live.waitingSince.getTime();
  if (ageMs <= GRACE_MS) return null;
  const records = live.waiting === 1 ? "1 changed record waits" : `${live.waiting} changed records wait`;
  return {
    color: ageMs > Math.max(RED_MS, YELLOW_FACTOR * (sweep?.backgroundMs ?? 0)) ? "red" : "yellow",
    reason: `${records} to be read, the oldest for ${formatDuration(ageMs)}`,
    cause: "waiting",
  };
}

function well(base: LiveBase, now: Date): Indicator {
  const compared = lastCompared(base);
  const reason = compared
    ? `Live; the database matched Airtable ${formatDuration(now.getTime() - compared.getTime())} ago`
    : "Live; changes are read as Airtable reports them";
  return paced(base, now) ?? { color: "green", reason, cause: "ok" };
}

/** Without notifications, the call budget decides how often changes are read. */
function paced({ live: { by, readAt, dueAt } }: LiveBase, now: Date): Indicator | null {
  const paceMs = readAt && dueAt ? dueAt.getTime() - readAt.getTime() : 0;
  // Reads of the feed that are a minute apart are due to the call budget.
  if (by === "notification" || paceMs < MINUTE_MS) return null;
  const waitMs = Math.max(0, dueAt!.getTime() - now.getTime());
  const reason = `Paced by the call budget; changes are read again in ${formatDuration(waitMs)}`;
  return { color: "green", reason, cause: "paced" };
}

export function lastCompared({ live, sweep }: LiveBase): Date | null {
  const times = [live.comparedAt, sweep?.startedAt].flatMap((time) => time?.getTime() ?? []);
  return times.length === 0 ? null : new Date(Math.max(...times));
}

function colorAfter(ms: number): "yellow" | "red" {
  return ms > RED_MS ? "red" : "yellow";
}

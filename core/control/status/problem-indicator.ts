/**
 * What keeps a base from being current although its syncs complete: tables that are not in SQL, a schema that cannot be
 * read, live mode that is off, and work that waits for too long. Each is worse than what the times of syncs show.
 */
import { formatDuration } from "../../format";
import type { Base, ProblemKind, SyncProblem } from "../bases";
import type { Cause, Indicator } from "./indicator";
import { GRACE_MS, RED_MS } from "./limits";

type Facts = Pick<
  Base,
  | "problems"
  | "failingTables"
  | "schemaError"
  | "progress"
  | "progressAt"
  | "createdAt"
  | "live"
  | "repairsSince"
  | "catchUpRequestedAt"
  | "sync"
  | "sweep"
> & { settings: Pick<Base["settings"], "live" | "rapid"> };

/** A build that has not got further for this long is not making progress. */
export const STALLED_MS = 2 * 60_000;
/** A schema check that failed once is made again before this. */
const SCHEMA_GRACE_MS = 30_000;
/** The most tables that a text names. */
const MOST_NAMES = 3;

interface Rule {
  cause: Cause;
  /** What is the case, for tables whose names are `names`; `count` of them. */
  text(names: string, count: number): string;
  /** Whether it is no problem while a build makes progress. */
  isBuild?: boolean;
}

const rules: Record<ProblemKind, Rule> = {
  missing_table: {
    cause: "missing",
    text: (names, count) =>
      count === 1
        ? `A table of Airtable is not in the database: ${names}`
        : `${count} tables of Airtable are not in the database: ${names}`,
  },
  outdated_table: {
    cause: "outdated",
    text: (names) => `A changed schema is not in the database yet: ${names}`,
    isBuild: true,
  },
  settings: { cause: "settings", text: () => "Changed settings are not applied to the database yet" },
};

/** Returns the problems of a base whose first sync has completed, the worst first. */
export function problemIndicators(base: Facts, now: Date): Indicator[] {
  const found = Object.entries(rules).flatMap(
    ([kind, rule]) => problemOf(base, kind as ProblemKind, rule, now) ?? [],
  );
  const judges = [failing, schemaUnread, liveOff, repairs, catchUp];
  const all = [...found, ...judges.flatMap((judge) => judge(base, now) ?? [])];
  return [...all.filter(({ color }) => color === "red"), ...all.filter(({ color }) => color !== "red")];
}

/** Returns how long the current build of a base has not got further, ms. */
export function stalledMs({ progress, progressAt, createdAt }: Facts, now: Date, since = 0): number {
  const begunAt = progress ? Date.parse(progress.started_at) : createdAt.getTime();
  return now.getTime() - Math.max(since, progressAt?.getTime() ?? begunAt);
}

/** `Orders, People and 3 more`. */
export function namesOf(tables: readonly { name: string }[]): string {
  const names = tables.slice(0, MOST_NAMES).map(({ name }) => name);
  const more = tables.length - names.length;
  return more > 0 ? `${names.join(", ")} and ${more} more` : names.join(", ");
}

function problemOf(base: Facts, kind: ProblemKind, rule: Rule, now: Date): Indicator | null {
  const problems = base.problems.filter((problem) => problem.kind === kind);
  const [oldest] = problems.toSorted((a, b) => a.since.getTime() - b.since.getTime());
  if (!oldest) return null;
  const since = oldest.since.getTime();
  const isStalled = stalledMs(base, now, since) > STALLED_MS;
  if (rule.isBuild && !isStalled) return null;
  const ageMs = Math.max(0, now.getTime() - since);
  const isWaiting = kind === "missing_table" && !isStalled && problems.every(({ message }) => message === "");
  const why = isWaiting ? "It is being copied" : (problems.find(({ message }) => message)?.message ?? "");
  return {
    color: ageMs > RED_MS && !isWaiting ? "red" : "yellow",
    reason: sentence(`${rule.text(namesOf(problems), problems.length)}, for ${formatDuration(ageMs)}`, why),
    cause: rule.cause,
    since: oldest.since,
    tables: problems.flatMap(({ name }) => name || []),
    nextAt: nextOf(problems, now),
  };
}

/** The earliest attempt that is still to come. */
function nextOf(problems: readonly SyncProblem[], now: Date): Date | null {
  return earliest(
    problems.flatMap(({ nextAt }) => nextAt ?? []),
    now,
  );
}

function earliest(times: Date[], now: Date): Date | null {
  const ahead = times.filter((time) => time > now).map((time) => time.getTime());
  return ahead.length > 0 ? new Date(Math.min(...ahead)) : null;
}

/** Tables that cannot be read, or cannot get their new columns: the others are synced as usual. */
function failing({ failingTables: tables }: Facts, now: Date): Indicator | null {
  const [first] = tables.toSorted((a, b) => Date.parse(a.since) - Date.parse(b.since));
  if (!first) return null;
  const age = formatDuration(Math.max(0, now.getTime() - Date.parse(first.since)));
  const isUnread = tables.some(({ code }) => code !== "needs_attention");
  const text =
    tables.length === 1
      ? `The table "${first.name}" has ${isUnread ? "not been readable" : "needed attention"} for ${age}; the other tables are in sync`
      : `${tables.length} tables ${isUnread ? "are not readable" : "need attention"}, "${first.name}" for ${age}; the other tables are in sync`;
  return {
    color: "yellow",
    reason: sentence(text, first.message),
    cause: "failing_table",
    since: new Date(first.since),
    tables: tables.map(({ name }) => name),
    nextAt: earliest(
      tables.map(({ next_try_at }) => new Date(next_try_at)),
      now,
    ),
  };
}

/** The schema cannot be read: the rows of known tables are synced as usual. */
function schemaUnread({ schemaError }: Facts, now: Date): Indicator | null {
  if (!schemaError) return null;
  const ageMs = now.getTime() - Date.parse(schemaError.since);
  if (ageMs <= SCHEMA_GRACE_MS) return null;
  return {
    color: ageMs > RED_MS ? "red" : "yellow",
    reason: sentence(
      `The schema of the base could not be checked for ${formatDuration(ageMs)}`,
      schemaError.message,
    ),
    cause: "schema",
    since: new Date(schemaError.since),
  };
}

/** Live mode is on, and there is no feed: the base is swept meanwhile. */
function liveOff({ live, settings, sync, sweep }: Facts, now: Date): Indicator | null {
  if (!settings.live || settings.rapid || !live) return null;
  if (live.state === "refused" || live.state === "failing" || live.offSince) {
    const age = live.offSince ? `, for ${formatDuration(now.getTime() - live.offSince.getTime())}` : "";
    return {
      color: "yellow",
      reason: sentence(`Live sync is off${age}`, live.reason),
      cause: "live_off",
      since: live.offSince,
      nextAt: live.retryAt && live.retryAt > now ? live.retryAt : null,
    };
  }
  // A new webhook begins with a gap, and is read as soon as the first sync is complete.
  const since = Math.max(live.gapSince?.getTime() ?? Infinity, (sweep ?? sync)?.completedAt.getTime() ?? 0);
  const ageMs = now.getTime() - since;
  if (live.readAt !== null || !(ageMs > GRACE_MS)) return null;
  return {
    color: "yellow",
    reason: `Live sync has not started for ${formatDuration(ageMs)}`,
    cause: "live_off",
    since: new Date(since),
  };
}

function repairs({ repairsSince }: Facts, now: Date): Indicator | null {
  return waiting(repairsSince, now, "A record that was written through the proxy is not in the database");
}

function catchUp({ catchUpRequestedAt }: Facts, now: Date): Indicator | null {
  return waiting(catchUpRequestedAt, now, "A write through the proxy is being looked for in Airtable");
}

function waiting(since: Date | null, now: Date, text: string): Indicator | null {
  const ageMs = since ? now.getTime() - since.getTime() : 0;
  if (!since || ageMs <= GRACE_MS) return null;
  return {
    color: ageMs > RED_MS ? "red" : "yellow",
    reason: `${text}, for ${formatDuration(ageMs)}`,
    cause: "write",
    since,
  };
}

/** The reason after its explanation: neither ends with a period, because the caller adds one. */
function sentence(text: string, why: string): string {
  const trimmed = why.trim().replace(/\.$/, "");
  return trimmed ? `${text}. ${trimmed}` : text;
}

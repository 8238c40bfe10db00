/**
 * The status of a base as people read it: one word, how old its data is, one cause, and what to do.
 *
 * S1. Only a base without a problem is `current`. A page of any other base shows no figure that suggests its data is
 *     fresh, and says as of when the data is.
 */
import type { ErrorCode } from "../../errors";
import { attentionPauseMs, type Base } from "../bases";
import { nextMonth } from "../budgets";
import { asOf } from "./as-of";
import { type Indicator, type IndicatorFacts, indicatorOf, isLive } from "./indicator";
import { type Remedy, statusOfError } from "./status-words";

export interface BaseStatus {
  color: Indicator["color"] | "neutral";
  /** For the badge. */
  word: string;
  /** One sentence: what is going on. */
  headline: string;
  /** What the owner can do; null: nothing, or nothing is wrong. */
  remedy: Remedy | null;
  /** The answer of the source or of a server, word for word. */
  details: string | null;
  /** The data is complete as of then; null before the first sync. */
  asOf: Date | null;
  /** Nothing is wrong, and no sync waits for anything. */
  isCurrent: boolean;
  /** When Basetide tries again; null: at once, in a moment, or only after someone acted. */
  nextAt: Date | null;
  /** The same without a time: "Retries automatically within a minute". Empty if there is nothing to say. */
  next: string;
}

/** What is needed in addition to the indicator's facts; `attemptedAt` is absent in lists. */
export type StatusFacts = IndicatorFacts & Pick<Partial<Base>, "attemptedAt">;

const runs: Remedy = { text: "See the latest runs", to: "runs" };
const checkFeed: Remedy = { text: "I added it: check again", to: "feed" };
const SOON = "Basetide retries automatically, at least once a minute.";

export function statusOf(base: StatusFacts, now: Date): BaseStatus {
  const indicator = indicatorOf(base, now);
  const facts = {
    color: indicator.color,
    headline: `${indicator.reason}.`,
    remedy: null,
    details: null,
    asOf: asOf(base),
    isCurrent: false,
    nextAt: null,
    next: "",
  };
  switch (indicator.cause) {
    case "ok":
      return { ...facts, word: isLive(base) ? "Live" : "In sync", isCurrent: true };
    case "first":
      return { ...facts, word: "First sync", color: "neutral" };
    case "stalled":
      return { ...facts, word: "Stalled", remedy: runs, next: SOON };
    case "clock":
      return { ...facts, word: "Unknown", next: "Set the server's clock, or wait until it has caught up." };
    case "missing":
      return { ...facts, word: "Table missing", ...nextAttempt(indicator) };
    case "outdated":
      return { ...facts, word: "Schema waits", ...nextAttempt(indicator) };
    case "failing_table":
      return { ...facts, word: "Table failing", ...nextAttempt(indicator) };
    case "schema":
      return { ...facts, word: "Schema unread", ...nextAttempt(indicator) };
    case "settings":
      return {
        ...facts,
        word: "Settings wait",
        next: "Basetide retries every 5 seconds. End the queries that hold the tables or views.",
      };
    case "live_off":
      return { ...facts, word: "Not live", ...liveAgain(base, indicator) };
    case "write":
      return { ...facts, word: "Write waits", ...nextAttempt(indicator) };
    case "queued":
      return { ...facts, word: "Queued", next: "The first sync starts as soon as a worker is free." };
    case "paced":
      return {
        ...facts,
        word: "Paced",
        color: "neutral",
        headline: "Syncs are spread out so that this month's call budget lasts.",
        remedy: { text: "Change the budget", to: "budget" },
        nextAt: isLive(base) ? base.live.dueAt : base.restsUntil,
      };
    case "paused":
      return {
        ...facts,
        word: "Paused",
        headline: "Syncing is paused. Changes in Airtable do not reach the database.",
        remedy: { text: "Resume", to: "resume" },
        next: "No sync runs until you resume it.",
      };
    case "moving":
      return {
        ...facts,
        word: "Being moved",
        headline:
          "The operator is moving this account to another control plane. The database stays readable.",
        next: "Syncing resumes there when the move is complete.",
      };
    case "deleting":
      return { ...facts, word: "Being deleted", headline: "This base is being deleted." };
    case "read_only":
      return {
        ...facts,
        word: "Not syncing",
        headline: "Basetide's own database accepts no writes at the moment, so nothing is synced.",
        next: SOON,
      };
    case "blocked":
      return { ...facts, word: "Waiting for Airtable", nextAt: base.blocked!.until };
    case "error":
      return { ...facts, ...failed(base, base.error!, now) };
    case "slow":
      return { ...facts, word: "Slow", next: "The next sync follows right away." };
    case "late":
    case "unread":
      return {
        ...facts,
        word: "Late",
        next: "The next sync starts as soon as a worker is free.",
      };
    case "drift":
    case "gap":
      return { ...facts, word: "Catching up", next: "Every record is being re-read now." };
    case "uncompared":
      return { ...facts, word: "Unverified", next: "The next comparison starts as soon as calls are free." };
    case "waiting":
      return { ...facts, word: "Behind", next: "The changed records are being read now." };
  }
}

function nextAttempt({ nextAt = null }: Indicator): Pick<BaseStatus, "nextAt" | "next"> {
  return { nextAt, next: nextAt ? "" : SOON };
}

/** A refusal ends when the key may do more; anything else by itself. */
function liveAgain({ live }: StatusFacts, indicator: Indicator): Partial<BaseStatus> {
  const next = "Every table is polled meanwhile. Basetide tries again within a minute.";
  if (live?.state !== "refused") return { nextAt: indicator.nextAt ?? null, next };
  return { nextAt: indicator.nextAt ?? null, next: "Every table is polled meanwhile.", remedy: checkFeed };
}

function failed(base: StatusFacts, error: NonNullable<Base["error"]>, now: Date) {
  const { word, headline, remedy } = statusOfError(error.code);
  return { word, headline, remedy, details: error.message, ...nextTry(base, error.code, now) };
}

/** Errors that wait for a person are retried every few minutes, a spent budget when the month ends. */
function nextTry(base: StatusFacts, code: ErrorCode, now: Date): Pick<BaseStatus, "nextAt" | "next"> {
  if (code === "budget_spent") return { nextAt: nextMonth(now), next: "" };
  if (code === "source_rate_limited" && base.blocked) return { nextAt: base.blocked.until, next: "" };
  if (base.state !== "needs_attention") return { nextAt: null, next: SOON };
  const next =
    code === "source_billing_limit"
      ? "Basetide retries every hour."
      : "Basetide retries at least every 3 minutes.";
  const attemptedMs = base.attemptedAt?.getTime();
  const nextAt =
    attemptedMs === undefined ? null : new Date(attemptedMs + attentionPauseMs(base.error, attemptedMs));
  return { nextAt: nextAt && nextAt > now ? nextAt : null, next };
}

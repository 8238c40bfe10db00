/**
 * The text of alerts, the same in mails and for webhooks: what happened, since when, why, what to do, and where to
 * look.
 *
 * Names and reasons come from other people. Each is reduced to one line, so that it cannot imitate a line of ours.
 */
import { cutText } from "../cut-text";
import { visibleText } from "../visible-text";
import type { Alert, AlertFacts, AlertKind } from "./kinds";

/** The most alerts of one message that are described one by one. */
const MOST_TOLD = 20;
const MAX_NAME_LENGTH = 80;
const MAX_REASON_LENGTH = 500;
/** A message that arrives this long after it was created says so, ms. */
const LATE_MS = 2 * 60_000;

/** The text of an alert; `url` is the page with more details. */
interface AlertText {
  title: string;
  /** Since when and why. */
  detail: string;
  /** Empty if there is nothing to do. */
  advice: string;
  url: string;
}

export function alertText(alert: Alert, consoleUrl: string): AlertText {
  return {
    title: titleOf(alert),
    detail: detailOf(alert),
    advice: adviceOf(alert),
    url: urlOf(alert, consoleUrl),
  };
}

/** `Inventory has turned red`; for several alerts `3 alerts: 2 bases have turned red, 1 has recovered`. */
export function subjectOf(alerts: Alert[]): string {
  const [first] = alerts;
  if (first && alerts.length === 1) return titleOf(first);
  return summaryOf(alerts);
}

/** The whole message, without its recipient. */
export function textOf(alerts: Alert[], consoleUrl: string): string {
  const [first] = alerts;
  if (first && alerts.length === 1) {
    const { title, detail, advice, url } = alertText(first, consoleUrl);
    return [`${title}.`, detail, advice === "" ? "" : `What to do: ${advice}`, url]
      .filter(Boolean)
      .join("\n\n");
  }
  const told = alerts.slice(0, MOST_TOLD).map((alert) => {
    const { title, detail, url } = alertText(alert, consoleUrl);
    return `- ${title}. ${detail}\n  ${url}`;
  });
  const rest = alerts.length - told.length;
  const advices = [...new Set(alerts.map(adviceOf))].filter(Boolean);
  return [
    `${summaryOf(alerts)}.`,
    told.join("\n"),
    rest > 0 ? `And ${rest} more: ${consoleUrl}/bases` : "",
    ...(advices.length === 1 ? [`What to do: ${advices[0]}`] : []),
    ...(advices.length > 1 ? [`What to do:\n${advices.map((advice) => `- ${advice}`).join("\n")}`] : []),
  ]
    .filter(Boolean)
    .join("\n\n");
}

/** The notice before a message that could not be delivered in time: the state may have changed since. */
export function lateNotice(at: Date, now: Date): string {
  if (now.getTime() - at.getTime() < LATE_MS) return "";
  return `This message is from ${inUtc(at.toISOString())} and could not be delivered earlier.\n\n`;
}

const summaries: Record<AlertKind, (count: number) => string> = {
  red: (count) => `${bases(count)} turned red`,
  recovered: (count) => `${bases(count)} recovered`,
  needs_attention: (count) => `${count} ${count === 1 ? "base needs" : "bases need"} attention`,
  call_budget: (count) => `${count} call ${count === 1 ? "budget runs" : "budgets run"} out`,
  new_table: (count) => `new tables in ${count === 1 ? "1 base" : `${count} bases`}`,
  proposal_waiting: (count) => `proposals wait in ${count === 1 ? "1 base" : `${count} bases`}`,
  breaking_change: (count) => `breaking schema changes in ${count === 1 ? "1 base" : `${count} bases`}`,
  schema_changed: (count) => `${bases(count)} changed ${count === 1 ? "its" : "their"} schema`,
};

function summaryOf(alerts: Alert[]): string {
  const counts = new Map<AlertKind, number>();
  for (const { kind } of alerts) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return [...counts].map(([kind, count]) => summaries[kind](count)).join(", ");
}

function bases(count: number): string {
  return count === 1 ? "1 base has" : `${count} bases have`;
}

function titleOf({ kind, facts }: Alert): string {
  const name = oneLine(facts.name, MAX_NAME_LENGTH);
  switch (kind) {
    case "red":
      return `${name} has turned red`;
    case "recovered":
      return `${name} has recovered`;
    case "needs_attention":
      return isAboutKey(facts) ? `${name} needs a working API key` : `${name} needs attention`;
    case "call_budget":
      return `${name}: ${budgetTitles[facts.level ?? "forecast"]}`;
    case "new_table":
      return `${name} has new tables in Airtable`;
    case "proposal_waiting":
      return facts.changeCount === 1
        ? `${name}: a proposal waits for a decision`
        : `${name}: ${facts.changeCount} proposals wait for a decision`;
    case "breaking_change":
      return `${name}: a schema change may break queries`;
    case "schema_changed":
      return `${name} has changed its schema`;
  }
}

/** What these report is listed one by one. */
const LISTS: ReadonlySet<AlertKind> = new Set([
  "new_table",
  "schema_changed",
  "breaking_change",
  "proposal_waiting",
]);

const budgetTitles: Record<NonNullable<AlertFacts["level"]>, string> = {
  inside: "its calls last",
  forecast: "its calls will not last all month",
  spent: "sync has used its share of this month's calls",
  over: "all of this month's calls are used",
};

function detailOf({ kind, facts }: Alert): string {
  const since = `Since ${inUtc(facts.since)}`;
  const reason = oneLine(facts.reason, MAX_REASON_LENGTH);
  if (LISTS.has(kind)) {
    const { changes = [], changeCount = changes.length } = facts;
    const rest = changeCount - changes.length;
    const named = changes.map((change) => oneLine(change, MAX_REASON_LENGTH)).join("; ");
    return `${since}: ${named}${rest > 0 ? `; and ${rest} more` : ""}.`;
  }
  const again = facts.times > 1 ? ` It has failed ${facts.times} times, never more than an hour apart.` : "";
  return `${since}: ${reason.replace(/\.$/, "")}.${again}`;
}

const remedies: Record<string, string> = {
  source_key_refused: "add a new API key under Settings on the base's page.",
  source_forbidden:
    "give the key access to the base again, with the scopes data.records:read and schema.bases:read, or add another key under Settings on the base's page.",
  source_billing_limit:
    "upgrade the Airtable plan, or wait until the month ends. The count restarts on the first of the month (UTC).",
  destination_invalid:
    "fix the problem described above in your database, then click Resync on the base's page.",
  secret_unreadable: "contact the operator of this service.",
  sync_crashed:
    "nothing. Basetide retries after increasing delays. Contact the operator of this service if the problem persists.",
};

function adviceOf({ kind, facts }: Alert): string {
  switch (kind) {
    case "red":
      return "usually nothing. Basetide retries automatically, and the data from the last sync stays queryable.";
    case "recovered":
      return "";
    case "needs_attention":
      return remedies[facts.code ?? ""] ?? "see the base's page, which says what is missing.";
    case "call_budget":
      return facts.level === "spent"
        ? `nothing, if your data can stay as it is until ${inUtc(facts.endsAt ?? facts.since)}; your apps can keep calling. Otherwise upgrade the plan in Airtable and on the workspace's page.`
        : "reduce the calls of your apps, or upgrade the plan in Airtable and on the workspace's page.";
    case "new_table":
      return "choose under Copied data on the base's page whether to copy them.";
    case "proposal_waiting":
      return "look at what would change, and approve or reject it. Nothing changes before.";
    case "breaking_change":
      return "check whether your queries use a table or column that was dropped, renamed or given another type.";
    case "schema_changed":
      return "nothing; the new tables and columns can be queried.";
  }
}

function isAboutKey({ code }: AlertFacts): boolean {
  return code === "source_key_refused" || code === "source_forbidden";
}

function urlOf({ kind, baseId, workspaceId, facts }: Alert, consoleUrl: string): string {
  if (kind === "proposal_waiting")
    return facts.proposal === undefined
      ? `${consoleUrl}/account/proposals`
      : `${consoleUrl}/bases/${baseId}/changes/${facts.proposal}`;
  return baseId === null
    ? `${consoleUrl}/account/workspaces/${workspaceId}`
    : `${consoleUrl}/bases/${baseId}`;
}

/** `2026-11-20 22:48 UTC`. */
function inUtc(iso: string): string {
  return `${iso.slice(0, 10)} ${iso.slice(11, 16)} UTC`;
}

function oneLine(text: string, maxLength: number): string {
  const line = visibleText(text).replace(/\s+/g, " ").trim();
  return line.length <= maxLength ? line : `${cutText(line, maxLength - 1)}…`;
}

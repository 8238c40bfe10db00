/** What one line of the audit log says: the action, a link to what it is about, and the details in words. */
import { alertKindLabels } from "../../core/alerts";
import type { AuditEntry, AuditSubject } from "../../core/control/audit";
import { auditActions } from "../../core/control/audit";
import { settingByName } from "../../core/control/bases";
import { Link } from "../components";
import { inDigits } from "../format";

export type Subjects = ReadonlyMap<string, AuditSubject>;

/** Ids in the details of an entry. */
const ID_DETAILS = ["workspace_id", "database"] as const;

/** The ids whose names an entry shows. */
export function subjectsOf({ subject, details }: AuditEntry): string[] {
  return [subject, ...ID_DETAILS.map((name) => details[name])].filter((id) => typeof id === "string");
}

export function What({ entry, subjects }: { entry: AuditEntry; subjects: Subjects }) {
  const text = auditActions[entry.action] ?? entry.action;
  const about = aboutOf(entry, subjects);
  if (!about) return <>{text}</>;
  const name = <bdi>{about.name}</bdi>;
  return (
    <>
      {text}: {about.href ? <Link href={about.href}>{name}</Link> : name}
    </>
  );
}

/** The name of what the entry is about, and its page. */
function aboutOf(entry: AuditEntry, subjects: Subjects): { name: string; href?: string } | undefined {
  const { action, actor, details } = entry;
  const subject = entry.subject === null ? undefined : subjects.get(entry.subject);
  const name = typeof details.name === "string" ? details.name : details.email;
  if (subject) {
    // Users sign in and change their own password.
    if (subject.kind === "user" && subject.name === actor) return undefined;
    const href = pageOf(entry.subject!, subject);
    return { name: subject.name, ...(href && { href }) };
  }
  if (action.startsWith("request.")) return { name: String(details.kind ?? "a request"), href: "/requests" };
  if (typeof name === "string" && name !== actor) return { name };
  return action.startsWith("base.") ? { name: "a base that was deleted" } : undefined;
}

function pageOf(id: string, { kind, baseId }: AuditSubject): string | undefined {
  if (kind === "base") return `/bases/${id}`;
  if (kind === "change_set") return `/bases/${baseId}/changes/${id}`;
  if (kind === "database") return baseId === null ? undefined : `/bases/${baseId}/connect`;
  if (kind === "sql_user") return baseId === null ? undefined : `/bases/${baseId}/connect?user=${id}`;
  if (kind === "workspace") return `/account/workspaces/${id}`;
  if (kind === "agent") return `/account/agents/${id}`;
  if (kind === "webhook") return `/account/alerts/webhooks/${id}`;
  return kind === "token" ? "/account/tokens" : "/account/members";
}

/** `Turbo: on, API key: replaced`; names that `What` shows are left out. */
export function detailsOf(entry: AuditEntry, subjects: Subjects): string {
  const about = aboutOf(entry, subjects)?.name;
  return Object.entries(entry.details)
    .filter(([name, value]) => value !== null && value !== undefined && !isSaid(entry, name, value, about))
    .map(([name, value]) => detail(name, value, subjects))
    .join(", ");
}

function isSaid(entry: AuditEntry, name: string, value: unknown, about: string | undefined): boolean {
  if (name === "is_operator") return !value;
  if (name === "times") return value === 1;
  // The database's own name, where the entry leads to its base.
  if (name === "name") return value === about || entry.action.startsWith("credentials.");
  return (
    (name === "email" || name === "user" || name === "kind") && (value === about || value === entry.actor)
  );
}

const labels: Record<string, string> = {
  api_key: "API key",
  source_base: "Airtable base",
  workspace_id: "workspace",
  calls_per_month: "calls a month",
  last_from: "last from",
};

function detail(name: string, value: unknown, subjects: Subjects): string {
  if (name === "times") return `${value} times`;
  if (name === "from") return `from ${value}`;
  if (name === "browser") return value === "new" ? "new browser" : "known browser";
  if (name === "expires_in_days") return value === "never" ? "never expires" : `expires in ${value} days`;
  if (name === "scopes") return `scopes: ${String(value).replaceAll(" ", ", ")}`;
  if (name === "kinds") return `alerts: ${kindsIn(String(value))}`;
  if (name === "destination" && value === "new") return "new database";
  const label = settingByName(name)?.label ?? labels[name] ?? name.replaceAll("_", " ");
  return `${label}: ${inText(value, subjects)}`;
}

/** `red, recovered, key`, as the page of alerts has them. */
function kindsIn(words: string): string {
  const kinds = new Map(Object.entries(alertKindLabels));
  return words
    .split(" ")
    .map((kind) => kinds.get(kind)?.short ?? kind)
    .join(", ");
}

function inText(value: unknown, subjects: Subjects): string {
  if (typeof value === "boolean") return value ? "on" : "off";
  if (typeof value === "number") return inDigits(value);
  return subjects.get(String(value))?.name ?? String(value);
}

/** Filters of the audit log: by kind of action, by actor, by base. */
import type { Actor, Db } from "../../context";
import { isId } from "../../ids";

/** The kinds of actions, by the prefixes of their names. */
export const auditKinds = {
  bases: ["base.", "change_set."],
  access: ["credentials.", "sql_user.", "database."],
  people: ["sign_in.", "two_factor.", "password.", "session.", "member.", "invitation.", "account."],
  tokens: ["token.", "agent."],
  alerts: ["alerts.", "alert_webhook.", "status_page."],
  budgets: ["workspace."],
  operator: ["request.", "cluster.", "secrets.", "service."],
} as const;

export type AuditKind = keyof typeof auditKinds;

/** Kinds of actors whose names the account does not see are one actor each. */
export type AuditActor = NamedActor | { kind: "operator" } | { kind: "system" };

interface NamedActor {
  kind: "user" | "token";
  name: string;
}

export interface AuditFilter {
  kind?: AuditKind | undefined;
  actor?: AuditActor | undefined;
  /** Id of a base: its own entries, and those of its database and the database's SQL users. */
  baseId?: string | undefined;
}

/** Entries that are searched for actors. */
const SEARCHED = 2000;

/** The condition on `audit_log as l`. */
export function matching(db: Db, { kind, actor, baseId }: AuditFilter) {
  const prefixes = kind ? auditKinds[kind].map((prefix) => `${prefix}%`) : [];
  const ofKind = kind ? db`l.action like any(${prefixes})` : db`true`;
  const isBase = baseId !== undefined && isId("base", baseId);
  const ofBase =
    baseId === undefined
      ? db`true`
      : isBase
        ? db`(l.subject = ${baseId} or exists (select from bases as b
            where b.id = ${baseId} and b.account_id = l.account_id and b.database_id in (l.subject, l.details ->> 'database')))`
        : db`false`;
  return db`${ofKind} and ${ofActor(db, actor)} and ${ofBase}`;
}

function ofActor(db: Db, actor: AuditActor | undefined) {
  if (!actor) return db`true`;
  if (actor.kind === "operator") return db`l.actor_kind in ('operator', 'cli')`;
  if (actor.kind === "system") return db`l.actor_kind = 'system'`;
  return db`l.actor_kind = ${actor.kind} and l.actor = ${actor.name}`;
}

/** The actors of the account's latest entries. */
export async function listActors(db: Db, accountId: string): Promise<AuditActor[]> {
  const found = await db<{ kind: Actor["kind"]; name: string }[]>`
    select distinct actor_kind as kind, case when actor_kind in ('user', 'token') then actor else '' end as name
    from (select actor_kind, actor from audit_log where account_id = ${accountId}
      order by id desc limit ${SEARCHED}) as latest
    order by 1 desc, 2`;
  const named = found.flatMap(({ kind, name }) =>
    kind === "user" || kind === "token" ? [{ kind, name }] : [],
  );
  const has = (...kinds: Actor["kind"][]) => found.some(({ kind }) => kinds.includes(kind));
  return [
    ...named.sort((a, b) => b.kind.localeCompare(a.kind)),
    ...(has("operator", "cli") ? [{ kind: "operator" } as const] : []),
    ...(has("system") ? [{ kind: "system" } as const] : []),
  ];
}

/** Most bases to choose from. */
const MOST_BASES = 100;

/** The bases that the account's latest entries are about, as far as they still exist. */
export async function listAuditedBases(db: Db, accountId: string): Promise<{ id: string; name: string }[]> {
  return db<{ id: string; name: string }[]>`
    select id, coalesce(nullif(name, ''), source_base_id) as name from bases
    where account_id = ${accountId} and id in (
      select subject from audit_log where account_id = ${accountId} order by audit_log.id desc limit ${SEARCHED})
    order by 2, 1 limit ${MOST_BASES}`;
}

/**
 * The audit log: who changed what, written with the change itself, so that neither is there without the other.
 *
 * What is told is for people: names and settings, never a key, a password or a cell.
 */
import type { Sql, TransactionSql } from "postgres";
import type { Actor, Db } from "../../context";
import { BasetideError } from "../../errors";
import { jsonParameter } from "../../postgres";
import type { AuditAction } from "./audit-actions";

/** Long enough to look back on a year from the month after it. */
const KEPT = "400 days";

export type { AuditAction };

export type AuditDetails = Record<string, string | number | boolean | null | undefined>;

export interface Change {
  /** Null: the service as a whole. */
  accountId: string | null;
  action: AuditAction;
  /** Id of what was changed. */
  subject?: string;
  details?: AuditDetails;
}

export interface AuditEntry {
  id: string;
  at: Date;
  /** E-mail address of the account; null where it is gone, and for what concerns the whole service. */
  account: string | null;
  accountId: string | null;
  actorKind: Actor["kind"];
  actor: string;
  action: AuditAction;
  subject: string | null;
  details: Record<string, string | number | boolean | null>;
}

/** Notes a change: in the transaction of the change itself. @param by the service itself unless given */
export async function recordChange(
  db: Sql | TransactionSql,
  by: Actor | undefined,
  { accountId, action, subject, details = {} }: Change,
): Promise<void> {
  const { kind, name } = by ?? { kind: "system", name: "basetide" };
  await db`
    insert into audit_log (account_id, actor_kind, actor, action, subject, details)
    values (${accountId}, ${kind}, ${name}, ${action}, ${subject ?? null}, ${jsonParameter(details)}::text::jsonb)`;
}

/**
 * The newest first.
 *
 * @param filter.before id of an entry: only what is older
 * @throws BasetideError `invalid_request` for a `before` that is none
 */
export async function listChanges(
  db: Db,
  filter: { accountId?: string | undefined; before?: string | undefined; limit: number },
): Promise<AuditEntry[]> {
  const { accountId, before, limit } = filter;
  if (before !== undefined && !/^\d{1,18}$/.test(before)) {
    throw new BasetideError("invalid_request", "`before` is the id of an entry");
  }
  return db<AuditEntry[]>`
    select l.id, l.at, a.email as account, l.account_id as "accountId", l.actor_kind as "actorKind", l.actor,
      l.action, l.subject, l.details
    from audit_log as l left join accounts as a on a.id = l.account_id
    where ${accountId === undefined ? db`true` : db`l.account_id = ${accountId}`}
      and ${before === undefined ? db`true` : db`l.id < ${before}::bigint`}
    order by l.id desc limit ${limit}`;
}

/** Clears away what is too old. @returns entries deleted */
export async function trimAudit(db: Db): Promise<number> {
  const { count } = await db`delete from audit_log where at < now() - ${KEPT}::interval`;
  return count;
}

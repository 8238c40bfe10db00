/**
 * The audit log: who changed what, written in the transaction of the change, so that neither exists without the
 * other.
 *
 * Its details are for people: names and settings, never a key, a password or a cell.
 */
import type { Sql, TransactionSql } from "postgres";
import type { Actor, Db } from "../../context";
import { invalid } from "../../errors";
import { jsonParameter } from "../../postgres";
import type { AuditAction } from "./audit-actions";
import { type AuditFilter, matching } from "./filter";

export type { AuditAction };

export type AuditDetails = Record<string, string | number | boolean | null | undefined>;

interface Change {
  /** Null: the service as a whole. */
  accountId: string | null;
  action: AuditAction;
  /** Id of the changed object. */
  subject?: string;
  details?: AuditDetails;
}

export interface AuditEntry {
  id: string;
  at: Date;
  /** The account's e-mail address; null if the account was deleted or the change concerns the whole service. */
  account: string | null;
  accountId: string | null;
  actorKind: Actor["kind"];
  actor: string;
  action: AuditAction;
  subject: string | null;
  details: Record<string, string | number | boolean | null>;
}

/** Records a change, in the transaction of the change itself. @param by defaults to the service itself */
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
 * Lists changes, the newest first.
 *
 * @param filter.before id of an entry: lists only older ones
 * @throws BasetideError `invalid_request` for an invalid `before`
 */
export async function listChanges(
  db: Db,
  filter: AuditFilter & { accountId?: string | undefined; before?: string | undefined; limit: number },
): Promise<AuditEntry[]> {
  const { accountId, before, limit } = filter;
  if (before !== undefined && !/^\d{1,18}$/.test(before)) {
    throw invalid("`before` is the id of an entry");
  }
  return db<AuditEntry[]>`
    select l.id, l.at, a.email as account, l.account_id as "accountId", l.actor_kind as "actorKind", l.actor,
      l.action, l.subject, l.details
    from audit_log as l left join accounts as a on a.id = l.account_id
    where ${accountId === undefined ? db`true` : db`l.account_id = ${accountId}`}
      and ${before === undefined ? db`true` : db`l.id < ${before}::bigint`}
      and ${matching(db, filter)}
    order by l.id desc limit ${limit}`;
}

/**
 * Audit entries about a user: sign-ins, failed sign-ins, passwords. Each is written to the log of every account
 * that the user belongs to, since the user's password gives access to all of them.
 */
import type { Sql, TransactionSql } from "postgres";
import type { Actor } from "../../context";
import { jsonParameter } from "../../postgres";
import type { AuditDetails } from "./audit";
import type { AuditAction } from "./audit-actions";

export interface UserEvent {
  action: AuditAction;
  details?: AuditDetails;
}

/** Records one event. @param actor defaults to the user */
export async function recordUserEvent(
  db: Sql | TransactionSql,
  user: { id: string; email: string },
  { action, details = {} }: UserEvent,
  actor: Actor = { kind: "user", name: user.email },
): Promise<void> {
  await db`
    insert into audit_log (account_id, actor_kind, actor, action, subject, details)
    select account_id, ${actor.kind}, ${actor.name}, ${action}, ${user.id}, ${jsonParameter(details)}::text::jsonb
    from account_members where user_id = ${user.id}`;
}

/**
 * Counts an event that strangers can cause, in one entry per hour, so that they cannot fill the log. Does nothing
 * for an address without a user.
 *
 * @param email as it was typed
 */
export async function countUserEvent(
  db: Sql | TransactionSql,
  email: string,
  { action, details = {} }: UserEvent,
): Promise<void> {
  await db`
    insert into audit_log as l (account_id, actor_kind, actor, action, subject, details, period)
    select m.account_id, 'system', 'basetide', ${action}, u.id,
      jsonb_build_object('user', u.email, 'times', 1) || ${jsonParameter(details)}::text::jsonb,
      date_trunc('hour', now())
    from users as u join account_members as m on m.user_id = u.id
    where u.email = ${email.trim().toLowerCase()}
    on conflict (account_id, action, subject, actor, period) where period is not null do update
      set details = l.details || excluded.details
        || jsonb_build_object('times', (l.details ->> 'times')::integer + 1)`;
}

/** Does the same for changes that a program of the account may make every minute. */
export async function countChange(
  db: Sql | TransactionSql,
  { kind, name }: Actor,
  change: { accountId: string; action: AuditAction; subject: string; details: AuditDetails },
): Promise<void> {
  const { accountId, action, subject, details } = change;
  await db`
    insert into audit_log as l (account_id, actor_kind, actor, action, subject, details, period)
    values (${accountId}, ${kind}, ${name}, ${action}, ${subject},
      ${jsonParameter({ ...details, times: 1 })}::text::jsonb, date_trunc('hour', now()))
    on conflict (account_id, action, subject, actor, period) where period is not null do update
      set details = l.details || jsonb_build_object('times', (l.details ->> 'times')::integer + 1)`;
}

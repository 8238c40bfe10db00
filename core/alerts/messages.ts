/**
 * The outbox: messages that wait, were sent or were given up, and their list for the console. It is also the queue: any
 * process delivers what is due.
 */
import type { Db } from "../context";
import type { Alert } from "./kinds";
import type { Message, WebhookForm } from "./payload";

type MessageState = "waiting" | "sent" | "given_up" | "dropped";

/** A message as the console shows it. */
export interface SentMessage {
  id: string;
  at: Date;
  /** E-mail address of a member, or name of a webhook. */
  to: string;
  userId: string | null;
  webhookId: string | null;
  subject: string;
  state: MessageState;
  attempts: number;
  error: string | null;
  endedAt: Date | null;
}

/** Returns the account's latest messages, the newest first. */
export async function listMessages(
  db: Db,
  accountId: string,
  filter: { limit: number; webhookId?: string },
): Promise<SentMessage[]> {
  const { limit, webhookId } = filter;
  return db<SentMessage[]>`
    select m.id, m.at, coalesce(u.email, w.name) as "to", m.user_id as "userId", m.webhook_id as "webhookId",
      m.subject, m.state, m.attempts, m.error, m.ended_at as "endedAt"
    from alert_messages as m left join users as u on u.id = m.user_id
      left join alert_webhooks as w on w.id = m.webhook_id
    where m.account_id = ${accountId} and ${webhookId === undefined ? db`true` : db`m.webhook_id = ${webhookId}`}
    order by m.at desc, m.id limit ${limit}`;
}

/** How long a process may take to deliver a message: longer than receivers and mail servers may. Then another one may send it. */
const HELD_FOR = "2 minutes";

/** When a message that could not be delivered is sent again: after twice the time at each failure. */
export interface Retries {
  limit: number;
  firstSeconds: number;
  longestSeconds: number;
}

/** A message that this process is delivering. */
export interface TakenMessage extends Message {
  accountId: string;
  userId: string | null;
  webhookId: string | null;
  /** Of the webhook; null for a mail. */
  form: WebhookForm | null;
  /** With this one. */
  attempts: number;
}

/**
 * Takes the next message that is due, and counts one more attempt. Those to one target are taken one after the other, in
 * chronological order: a recovery must not arrive before the failure.
 */
export async function takeMessage(db: Db): Promise<TakenMessage | undefined> {
  const [message] = await db<Omit<TakenMessage, "alerts">[]>`
    update alert_messages set attempts = attempts + 1, held_until = now() + ${HELD_FOR}::interval
    where id = (
      select id from alert_messages as m
      where state = 'waiting' and due_at <= now() and (held_until is null or held_until < now()) and not exists (
        select from alert_messages as other
        where other.state = 'waiting' and other.account_id = m.account_id
          and (other.user_id = m.user_id or other.webhook_id = m.webhook_id)
          and (other.held_until > now() or other.due_at <= now() and (other.at, other.id) < (m.at, m.id)))
      order by at, id limit 1 for update skip locked)
    returning id, at, account_id as "accountId", user_id as "userId", webhook_id as "webhookId", attempts,
      (select form from alert_webhooks where id = webhook_id) as form`;
  return message && { ...message, alerts: await alertsOf(db, message.id) };
}

export async function alertsOf(db: Db, messageId: string): Promise<Alert[]> {
  return db<Alert[]>`
    select a.id, a.kind, a.at, a.base_id as "baseId", a.workspace_id as "workspaceId", a.facts
    from alert_notices as n join alerts as a on a.id = n.alert_id where n.message_id = ${messageId} order by a.id`;
}

export async function endMessage(db: Db, id: string, state: "sent" | "dropped"): Promise<void> {
  await db`update alert_messages set state = ${state}, ended_at = now() where id = ${id} and state = 'waiting'`;
}

/**
 * Records why the message was not delivered. All that is due for its target has failed with it: it would fail as well, and
 * must not overtake the message.
 *
 * @returns the ids of those that are given up
 */
export async function recordFailure(
  db: Db,
  { id, accountId, userId, webhookId }: TakenMessage,
  error: string,
  { limit, firstSeconds, longestSeconds }: Retries,
): Promise<string[]> {
  const rows = await db<{ id: string; state: MessageState }[]>`
    update alert_messages as m set error = ${error}, held_until = null, attempts = f.attempts,
      state = case when f.attempts > ${limit} then 'given_up' else state end,
      ended_at = case when f.attempts > ${limit} then now() end,
      due_at = now() + least(${longestSeconds}, ${firstSeconds} * power(2, f.attempts - 1)) * interval '1 second'
    from (
      select id, attempts + (id <> ${id})::int as attempts from alert_messages
      where state = 'waiting' and (id = ${id} or due_at <= now()) and account_id = ${accountId}
        and user_id is not distinct from ${userId} and webhook_id is not distinct from ${webhookId}) as f
    where m.id = f.id
    returning m.id, m.state`;
  return rows.filter(({ state }) => state === "given_up").map((row) => row.id);
}

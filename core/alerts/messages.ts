/** The outbox: messages that wait, were sent or were given up, and their list for the console. */
import type { Db } from "../context";
import type { Alert } from "./kinds";
import type { Message } from "./payload";

/** Messages queued, and bases read, in one batch; between batches the process does other work. */
export const BATCH = 500;

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

interface Unqueued {
  id: string;
  jobId: string;
}

/** Returns the messages that are not in the queue yet. */
export async function unqueuedMessages(db: Db): Promise<Unqueued[]> {
  return db<Unqueued[]>`
    select id, job_id as "jobId" from alert_messages where queued_at is null order by at, id limit ${BATCH}`;
}

export async function recordQueued(db: Db, ids: string[]): Promise<void> {
  await db`update alert_messages set queued_at = now() where id = any (${ids})`;
}

/** Groups messages by target, each group in chronological order. */
export async function byTarget(db: Db, ids: string[]): Promise<string[][]> {
  const rows = await db<{ ids: string[] }[]>`
    select array_agg(id order by at, id) as ids from alert_messages
    where id = any (${ids}) group by account_id, user_id, webhook_id`;
  return rows.map((row) => row.ids);
}

/** A message that this process is delivering. */
export interface TakenMessage extends Message {
  accountId: string;
  userId: string | null;
  webhookId: string | null;
}

/** Counts one more attempt. @returns null if the message has ended or was deleted with its target */
export async function takeMessage(db: Db, id: string): Promise<TakenMessage | null> {
  const [message] = await db<Omit<TakenMessage, "alerts">[]>`
    update alert_messages set attempts = attempts + 1 where id = ${id} and state = 'waiting'
    returning id, at, account_id as "accountId", user_id as "userId", webhook_id as "webhookId"`;
  if (!message) return null;
  return { ...message, alerts: await alertsOf(db, id) };
}

export async function alertsOf(db: Db, messageId: string): Promise<Alert[]> {
  return db<Alert[]>`
    select a.id, a.kind, a.at, a.base_id as "baseId", a.workspace_id as "workspaceId", a.facts
    from alert_notices as n join alerts as a on a.id = n.alert_id where n.message_id = ${messageId} order by a.id`;
}

/** @returns whether it was still waiting */
export async function endMessage(
  db: Db,
  id: string,
  state: Exclude<MessageState, "waiting">,
): Promise<boolean> {
  const { count } = await db`
    update alert_messages set state = ${state}, ended_at = now(),
      error = case when ${state} = 'given_up' then coalesce(error, 'The cause is not known') end
    where id = ${id} and state = 'waiting'`;
  return count > 0;
}

export async function recordFailure(db: Db, id: string, error: string): Promise<void> {
  await db`update alert_messages set error = ${error} where id = ${id} and state = 'waiting'`;
}

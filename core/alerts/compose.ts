/**
 * Composes messages: everything that waits for one target goes into one message.
 *
 * A5. A target gets at most MOST_PER_HOUR messages in an hour. Further alerts wait, and go into one message then.
 *
 * A6. Alerts of an account wait up to SETTLE_MS for others that are about to follow: when a source is down for all
 * bases, one message says so.
 */
import type { TransactionSql } from "postgres";
import { newId } from "../ids";
import { HOUR_MS } from "../time-units";
import { subjectOf } from "./format";
import type { Alert } from "./kinds";
import { SETTLE_MS } from "./rules";

/** The most messages that a target gets in an hour: few for a person, more for a program. */
const MOST_PER_HOUR = { user: 6, webhook: 30 };

interface Pending {
  accountId: string;
  userId: string | null;
  webhookId: string | null;
  alerts: (Omit<Alert, "at"> & { at: string })[];
  oldestAt: Date;
  /** Messages of the last hour. */
  recent: number;
}

/** @param settling accounts for which further alerts are about to follow */
export async function composeMessages(tx: TransactionSql, settling: Set<string>, now: Date): Promise<void> {
  for (const pending of await pendingNotices(tx, now)) {
    const { accountId, userId, webhookId, alerts, oldestAt, recent } = pending;
    const isGathering = settling.has(accountId) && now.getTime() - oldestAt.getTime() < SETTLE_MS;
    if (isGathering || recent >= MOST_PER_HOUR[userId === null ? "webhook" : "user"]) continue;
    const id = newId("alert_message");
    const subject = subjectOf(alerts.map((alert) => ({ ...alert, at: new Date(alert.at) })));
    await tx`
      insert into alert_messages (id, account_id, user_id, webhook_id, at, subject)
      values (${id}, ${accountId}, ${userId}, ${webhookId}, ${now}, ${subject})`;
    await tx`
      update alert_notices set message_id = ${id}
      where message_id is null and alert_id = any (${alerts.map((alert) => alert.id)}::bigint[])
        and user_id is not distinct from ${userId} and webhook_id is not distinct from ${webhookId}`;
  }
}

/** Returns the pending alerts of each target, the oldest first. */
function pendingNotices(tx: TransactionSql, now: Date): Promise<Pending[]> {
  const hourAgo = new Date(now.getTime() - HOUR_MS);
  return tx<Pending[]>`
    select n.account_id as "accountId", n.user_id as "userId", n.webhook_id as "webhookId",
      json_agg(json_build_object('id', a.id::text, 'kind', a.kind, 'at', a.at, 'baseId', a.base_id,
        'workspaceId', a.workspace_id, 'facts', a.facts) order by a.id) as alerts,
      min(a.at) as "oldestAt",
      (select count(*)::int from alert_messages as m
        where m.at > ${hourAgo} and (m.user_id = n.user_id and m.account_id = n.account_id
          or m.webhook_id = n.webhook_id)) as recent
    from alert_notices as n join alerts as a on a.id = n.alert_id
    where n.message_id is null
    group by n.account_id, n.user_id, n.webhook_id`;
}

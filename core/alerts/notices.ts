/**
 * Assigns alerts to targets, each target once (guaranteed by the key of `alert_notices`).
 *
 * A7. A target learns of every reported failure that persists, even if the target is newer than the failure. It
 * learns of a recovery only after the failure.
 */
import type { PendingQuery, Row, TransactionSql } from "postgres";
import { usualKinds } from "./kinds";

/** Adds members with a confirmed address, by their preferences, and the account's active webhooks. */
export async function addNotices(
  tx: TransactionSql,
  alertIds: string[],
  { hasMail }: { hasMail: boolean },
): Promise<void> {
  if (alertIds.length === 0) return;
  const alerts = tx`select * from alerts where id = any (${alertIds}::bigint[])`;
  await add(tx, alerts, hasMail);
}

/** Adds the last reported failure of each base that still fails, for targets that have not got it. */
export async function addStandingNotices(
  tx: TransactionSql,
  { hasMail }: { hasMail: boolean },
): Promise<void> {
  // A paused base keeps its state, but is not failing now.
  const alerts = tx`
    select a.* from alert_states as s
      join bases as b on b.id = s.base_id and b.state not in ('paused', 'deleting'),
      lateral (select * from alerts where base_id = s.base_id and kind = s.kind order by id desc limit 1) as a
    where s.kind in ('red', 'needs_attention') and s.state = 'on' and s.told is not null`;
  await add(tx, alerts, hasMail);
}

/** @param alerts a query of rows of `alerts` */
async function add(tx: TransactionSql, alerts: PendingQuery<Row[]>, hasMail: boolean): Promise<void> {
  if (hasMail) {
    await tx`
      insert into alert_notices (alert_id, account_id, user_id)
      select a.id, a.account_id, m.user_id
      from (${alerts}) as a
        join account_members as m on m.account_id = a.account_id
        join users as u on u.id = m.user_id
        left join alert_preferences as p on p.account_id = m.account_id and p.user_id = m.user_id
        cross join lateral (select coalesce(p.kinds, ${usualKinds}::text[]) as kinds) as w
      where u.email_verified and a.kind = any (w.kinds)
        and ${isConsistent(tx, tx`n.user_id = m.user_id`)}
      on conflict do nothing`;
  }
  await tx`
    insert into alert_notices (alert_id, account_id, webhook_id)
    select a.id, a.account_id, w.id
    from (${alerts}) as a join alert_webhooks as w on w.account_id = a.account_id
    where w.is_on and a.kind = any (w.kinds) and ${isConsistent(tx, tx`n.webhook_id = w.id`)}
    on conflict do nothing`;
}

/** Not the recovery from a failure that the target `w` wants to know, and was not told of. */
function isConsistent(tx: TransactionSql, isForTarget: PendingQuery<Row[]>) {
  return tx`(a.kind <> 'recovered' or not exists (
    select from (
      select f.id, f.kind from alerts as f
      where f.base_id = a.base_id and f.id < a.id and f.kind in ('red', 'needs_attention')
      order by f.id desc limit 1
    ) as f
    where f.kind = any (w.kinds)
      and not exists (select from alert_notices as n where n.alert_id = f.id and ${isForTarget})))`;
}

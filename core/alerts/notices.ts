/** Assigns alerts to targets, each target once (guaranteed by the key of `alert_notices`). */
import type { TransactionSql } from "postgres";
import { usualKinds } from "./kinds";

/** Adds members with a confirmed address, by their preferences, and the account's active webhooks. */
export async function addNotices(
  tx: TransactionSql,
  alertIds: string[],
  { hasMail }: { hasMail: boolean },
): Promise<void> {
  if (alertIds.length === 0) return;
  if (hasMail) {
    await tx`
      insert into alert_notices (alert_id, account_id, user_id)
      select a.id, a.account_id, m.user_id
      from alerts as a
        join account_members as m on m.account_id = a.account_id
        join users as u on u.id = m.user_id
        left join alert_preferences as p on p.account_id = m.account_id and p.user_id = m.user_id
      where a.id = any (${alertIds}::bigint[]) and u.email_verified
        and a.kind = any (coalesce(p.kinds, ${usualKinds}::text[]))
      on conflict do nothing`;
  }
  await tx`
    insert into alert_notices (alert_id, account_id, webhook_id)
    select a.id, a.account_id, w.id
    from alerts as a join alert_webhooks as w on w.account_id = a.account_id
    where a.id = any (${alertIds}::bigint[]) and w.is_on and a.kind = any (w.kinds)
    on conflict do nothing`;
}

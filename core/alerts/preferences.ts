/** The kinds of alerts that each member of an account gets by e-mail. */
import type { Context, Db } from "../context";
import { recordChange } from "../control/audit";
import { notFound } from "../errors";
import { type AlertKind, inOrder, usualKinds } from "./kinds";

export interface Preference {
  userId: string;
  email: string;
  /** Nothing is sent to an unconfirmed address. */
  isEmailVerified: boolean;
  kinds: AlertKind[];
}

/** Of all members, the owner first. */
export async function listPreferences(db: Db, accountId: string): Promise<Preference[]> {
  return db<Preference[]>`
    select m.user_id as "userId", u.email, u.email_verified as "isEmailVerified",
      coalesce(p.kinds, ${usualKinds}::text[]) as kinds
    from account_members as m
      join users as u on u.id = m.user_id
      left join alert_preferences as p on p.account_id = m.account_id and p.user_id = m.user_id
    where m.account_id = ${accountId} order by m.role = 'owner' desc, u.email`;
}

/** Sets those of several members, all or none. @throws BasetideError `not_found` if one is not a member */
export async function setPreferences(
  { db, actor }: Pick<Context, "db" | "actor">,
  accountId: string,
  changes: Pick<Preference, "userId" | "kinds">[],
): Promise<void> {
  await db.begin(async (tx) => {
    for (const { userId, kinds: given } of changes) {
      const kinds = inOrder(given);
      const [member] = await tx<{ email: string }[]>`
        select u.email from account_members as m join users as u on u.id = m.user_id
        where m.account_id = ${accountId} and m.user_id = ${userId} for key share of m`;
      if (!member) throw notFound("This member does not exist");
      await tx`
        insert into alert_preferences (account_id, user_id, kinds) values (${accountId}, ${userId}, ${kinds})
        on conflict (account_id, user_id) do update set kinds = excluded.kinds`;
      const details = { email: member.email, kinds: kinds.join(" ") || "none" };
      await recordChange(tx, actor, { accountId, action: "alerts.changed", subject: userId, details });
    }
  });
}

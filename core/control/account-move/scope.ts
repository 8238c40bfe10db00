/** The rows that belong to an account: its id, its people, and the keys of its bases in the quota ledger. */
import type { Sql, TransactionSql } from "postgres";
import { ownCallsKey, quotaKeyOf } from "../budgets";

type AnyDb = Sql | TransactionSql;

export interface AccountScope {
  accountId: string;
  /** Its people who belong to no other account: their logins leave with them. */
  leaving: string[];
  /** Its people who also belong to others: they keep their logins, and get the same ones in the target. */
  copied: string[];
  quotaKeys: string[];
}

export async function accountScopeOf(db: AnyDb, accountId: string): Promise<AccountScope> {
  const people = await db<{ id: string; is_shared: boolean }[]>`
    select u.id,
      exists (select from account_members as m where m.user_id = u.id and m.account_id <> ${accountId})
        or exists (select from api_tokens as k where k.created_by = u.id and k.account_id <> ${accountId}) as is_shared
    from users as u
    where u.id in (
      select user_id from account_members where account_id = ${accountId}
      union select created_by from api_tokens where account_id = ${accountId}
      union select invited_by from invitations where account_id = ${accountId})
    order by u.id`;
  return {
    accountId,
    leaving: people.filter((user) => !user.is_shared).map(({ id }) => id),
    copied: people.filter((user) => user.is_shared).map(({ id }) => id),
    quotaKeys: await quotaKeysOf(db, accountId),
  };
}

export async function quotaKeysOf(db: AnyDb, accountId: string): Promise<string[]> {
  const bases = await db<{ id: string; platform: string; sourceBaseId: string }[]>`
    select id, platform, source_base_id as "sourceBaseId" from bases where account_id = ${accountId} order by id`;
  const workspaces = await db<{ id: string }[]>`
    select id from workspaces where account_id = ${accountId} order by id`;
  return [
    ...bases.flatMap((base) => [quotaKeyOf(base), ownCallsKey(base.id)]),
    // The month's calls of bases that have left a workspace (`quota_carry_over`).
    ...workspaces.map(({ id }) => `left:${id}`),
  ];
}

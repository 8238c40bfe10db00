/** Accounts, which own bases or operate the service. Each is created with the user who owns it. */
import type { Actor, Db } from "../../context";
import { BasetideError, invalid, notFound } from "../../errors";
import { newId } from "../../ids";
import { isUniqueViolation } from "../../postgres";
import { recordChange } from "../audit";
import { checkPassword, hashPassword } from "./passwords";

const EMAIL = /^[^\s@\p{Cc}]{1,64}@[^\s@\p{Cc}]{1,255}$/u;

export interface Account {
  id: string;
  /** The owner's address. */
  email: string;
  isOperator: boolean;
}

/**
 * Creates an account, and the user who owns it and signs in to the console with this password. The address counts
 * as verified, because an operator vouches for it.
 *
 * @param hash hashes the password
 * @throws BasetideError `invalid_request` for an invalid address or password, `already_exists` if the address has
 *   an account, regardless of case
 */
export async function createAccount(
  db: Db,
  account: { email: string; password: string; isOperator?: boolean },
  actor?: Actor,
  hash = (password: string) => hashPassword(password),
): Promise<Account> {
  const email = checkEmail(account.email);
  checkPassword(account.password, account.email);
  const password = await hash(account.password);
  const id = newId("account");
  const userId = newId("user");
  const isOperator = account.isOperator ?? false;
  try {
    await db.begin(async (tx) => {
      await tx`
        insert into users (id, name, email, email_verified)
        values (${userId}, ${nameOf(email)}, ${email}, true)`;
      await tx`
        insert into user_logins (id, user_id, provider_id, account_id, password)
        values (${newId("user_login")}, ${userId}, 'credential', ${userId}, ${password})`;
      await tx`insert into accounts (id, email, is_operator) values (${id}, ${email}, ${isOperator})`;
      await tx`insert into account_members (account_id, user_id, role) values (${id}, ${userId}, 'owner')`;
      const details = { email, is_operator: isOperator };
      await recordChange(tx, actor, { accountId: id, action: "account.created", subject: id, details });
    });
  } catch (error) {
    if (!isUniqueViolation(error)) throw error;
    throw new BasetideError("already_exists", `An account for ${email} already exists`);
  }
  return { id, email, isOperator };
}

/** @throws BasetideError `not_found` */
export async function accountByEmail(db: Db, email: string): Promise<Account> {
  const [account] = await db<Account[]>`
    select id, email, is_operator as "isOperator" from accounts where lower(email) = lower(${email.trim()})`;
  if (!account) throw notFound(`There is no account for ${email.trim()}`);
  return account;
}

/** Returns the address in the form in which it is stored. @throws BasetideError `invalid_request` */
export function checkEmail(text: string): string {
  const email = text.trim().toLowerCase();
  if (EMAIL.test(email)) return email;
  throw invalid(`"${text.trim()}" is not an e-mail address`);
}

/** The default name of a user. */
export function nameOf(email: string): string {
  return email.split("@")[0] ?? email;
}

/** An account with its size, for the operator. */
export interface AccountSummary {
  id: string;
  email: string;
  isOperator: boolean;
  /** The region of its new databases; null: any. */
  region: string | null;
  bases: number;
  records: number;
  databases: number;
  sqlUsers: number;
  createdAt: Date;
}

/** All accounts, the newest first. */
export async function listAccounts(db: Db): Promise<AccountSummary[]> {
  return db<AccountSummary[]>`
    with held as (
      select b.account_id, count(*)::int as bases,
        sum((select coalesce(sum((t ->> 'records')::float8), 0) from jsonb_array_elements(b.tables) as t)) as records
      from bases as b group by b.account_id
    )
    select a.id, a.email, a.is_operator as "isOperator", a.region, a.created_at as "createdAt",
      coalesce(h.bases, 0) as bases, coalesce(h.records, 0) as records,
      (select count(*)::int from databases as d where d.account_id = a.id) as databases,
      (select count(*)::int from sql_users as u join databases as d on d.id = u.database_id
        where d.account_id = a.id) as "sqlUsers"
    from accounts as a left join held as h on h.account_id = a.id
    order by a.created_at desc, a.id`;
}

/** Accounts: who owns bases, and who operates the service. */
import type { Db } from "../context";
import { BasetideError } from "../errors";
import { isUniqueViolation } from "./db";
import { newId } from "./ids";

const MIN_PASSWORD_LENGTH = 8;
/** argon2 reads it all: without a limit, a long password is a way to keep the process busy. */
const MAX_PASSWORD_LENGTH = 1000;
const EMAIL = /^[^\s@\p{Cc}]{1,64}@[^\s@\p{Cc}]{1,255}$/u;

export interface Account {
  id: string;
  email: string;
  isOperator: boolean;
}

/**
 * @throws BasetideError `invalid_request` for an address or password that cannot be used, `already_exists` when
 *   the address has an account, however it is capitalised
 */
export async function createAccount(
  db: Db,
  account: { email: string; password: string; isOperator?: boolean },
): Promise<Account> {
  const email = account.email.trim();
  if (!EMAIL.test(email)) throw new BasetideError("invalid_request", `"${email}" is not an e-mail address`);
  if (account.password.length < MIN_PASSWORD_LENGTH || account.password.length > MAX_PASSWORD_LENGTH) {
    throw new BasetideError(
      "invalid_request",
      `A password has ${MIN_PASSWORD_LENGTH} to ${MAX_PASSWORD_LENGTH} characters`,
    );
  }
  const passwordHash = await Bun.password.hash(account.password, "argon2id");
  const id = newId("account");
  const isOperator = account.isOperator ?? false;
  try {
    await db`
      insert into accounts (id, email, password_hash, is_operator)
      values (${id}, ${email}, ${passwordHash}, ${isOperator})`;
  } catch (error) {
    if (!isUniqueViolation(error, "accounts_email_key")) throw error;
    throw new BasetideError("already_exists", `There is an account for ${email} already`);
  }
  return { id, email, isOperator };
}

/** @throws BasetideError `not_found` */
export async function accountByEmail(db: Db, email: string): Promise<Account> {
  const [account] = await db<Account[]>`
    select id, email, is_operator as "isOperator" from accounts where lower(email) = lower(${email.trim()})`;
  if (!account) throw new BasetideError("not_found", `There is no account for ${email.trim()}`);
  return account;
}

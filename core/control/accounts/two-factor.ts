/** The second factor of a user's sign-in. The sign-in library verifies it; this module says whether it is on. */
import type { Actor, Db } from "../../context";
import { notFound } from "../../errors";
import { recordUserEvent } from "../audit";
import { type PasswordPlace, verifyPassword } from "./passwords";

/** Whether sign-ins of the user ask for a code. */
export async function hasTwoFactor(db: Db, userId: string): Promise<boolean> {
  const [user] = await db<{ isOn: boolean }[]>`
    select two_factor_enabled as "isOn" from users where id = ${userId}`;
  return user?.isOn ?? false;
}

/** Whether this is the user's password. A user without one has no second factor. */
export async function isPasswordOf(
  db: Db,
  userId: string,
  password: string,
  place: PasswordPlace,
): Promise<boolean> {
  const [login] = await db<{ hash: string | null }[]>`
    select password as hash from user_logins where user_id = ${userId} and provider_id = 'credential'`;
  return login?.hash ? verifyPassword(password, login.hash, { isUrgent: true, place }) : false;
}

/** Longer than a code of an app is valid: its own 30 seconds, and those before and after. */
const CODE_VALID = "5 minutes";

/** Claims a valid code of the user's app. @returns false if it was used before: a code works once (RFC 6238, 5.2) */
export async function claimCode(db: Db, userId: string, code: string): Promise<boolean> {
  const { count } = await db`
    with expired as (
      delete from used_codes where user_id = ${userId} and used_at < now() - ${CODE_VALID}::interval)
    insert into used_codes (user_id, code) values (${userId}, ${code}) on conflict do nothing`;
  return count > 0;
}

/**
 * Turns the second factor of a user off who has lost the app and the backup codes. The operator vouches for them.
 *
 * @throws BasetideError `not_found`, also if the user has no second factor
 */
export async function removeTwoFactor(db: Db, email: string, actor?: Actor): Promise<void> {
  const address = email.trim().toLowerCase();
  await db.begin(async (tx) => {
    const [user] = await tx<{ id: string; email: string }[]>`
      update users set two_factor_enabled = false where email = ${address} and two_factor_enabled
      returning id, email`;
    if (!user) throw notFound(`There is no user ${address} with a second factor`);
    await tx`delete from two_factors where user_id = ${user.id}`;
    await recordUserEvent(tx, user, { action: "two_factor.removed" }, actor);
  });
}

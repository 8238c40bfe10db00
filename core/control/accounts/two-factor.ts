/** The second factor of a user's sign-in. The sign-in library verifies it; this module says whether it is on. */
import type { Actor, Db } from "../../context";
import { BasetideError } from "../../errors";
import { recordUserEvent } from "../audit";

/** Whether sign-ins of the user ask for a code. */
export async function hasTwoFactor(db: Db, userId: string): Promise<boolean> {
  const [user] = await db<{ isOn: boolean }[]>`
    select two_factor_enabled as "isOn" from users where id = ${userId}`;
  return user?.isOn ?? false;
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
    if (!user) throw new BasetideError("not_found", `There is no user ${address} with a second factor`);
    await tx`delete from two_factors where user_id = ${user.id}`;
    await recordUserEvent(tx, user, { action: "two_factor.removed" }, actor);
  });
}

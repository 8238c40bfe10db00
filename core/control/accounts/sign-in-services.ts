/** The services that a user signs in with besides a password. The sign-in library links them. */
import type { Db } from "../../context";
import { conflict, notFound } from "../../errors";
import { recordUserEvent } from "../audit";
import type { CurrentUser } from "./current-user";

/** The ids of the linked services. */
export async function linkedServices(db: Db, userId: string): Promise<string[]> {
  const rows = await db<{ id: string }[]>`
    select provider_id as id from user_logins where user_id = ${userId} and provider_id <> 'credential'`;
  return rows.map(({ id }) => id);
}

/**
 * Unlinks a service: it no longer signs the user in. Open sessions stay.
 *
 * @throws BasetideError `not_found`, `conflict` if the user could not sign in any more
 */
export async function unlinkService(
  db: Db,
  { userId, email }: Pick<CurrentUser, "userId" | "email">,
  service: string,
): Promise<void> {
  await db.begin(async (tx) => {
    const logins = await tx<{ id: string; service: string }[]>`
      select id, provider_id as service from user_logins where user_id = ${userId} for update`;
    const kept = logins.filter((login) => login.service !== service);
    if (kept.length === logins.length) throw notFound("This service is not linked");
    if (kept.length === 0) {
      throw conflict(
        "You have no password yet. Sign out, set one with “Forgot your password?”, then unlink the service",
      );
    }
    await tx`delete from user_logins where user_id = ${userId} and provider_id = ${service}`;
    const details = { service };
    await recordUserEvent(tx, { id: userId, email }, { action: "sign_in.unlinked", details });
  });
}

/** Links to set a password: creates those that operators hand out, and completes the use of any link. */
import { createHash } from "node:crypto";
import { SharedLookup } from "../../async";
import type { Actor, Db } from "../../context";
import { notFound } from "../../errors";
import { newId } from "../../ids";
import { newSecret } from "../../secrets";
import { recordUserEvent } from "../audit";

const LIFE = "1 hour";

/**
 * Creates a link that works once. Setting a password with it confirms the user's address: the operator vouches for
 * the person who gets it.
 *
 * @returns the path with the token, which cannot be read again later
 * @throws BasetideError `not_found`
 */
export async function makeResetLink(db: Db, email: string, actor?: Actor): Promise<string> {
  const address = email.trim().toLowerCase();
  const token = newSecret();
  await db.begin(async (tx) => {
    const [user] = await tx<{ id: string; email: string }[]>`
      select id, email from users where email = ${address}`;
    if (!user) throw notFound(`There is no user ${address}`);
    await tx`
      insert into verifications (id, identifier, value, expires_at)
      values (${newId("verification")}, ${identifierOf(token)}, ${user.id}, now() + ${LIFE}::interval)`;
    await recordUserEvent(tx, user, { action: "password.reset_link_made" }, actor);
  });
  return `/reset-password?${new URLSearchParams({ token })}`;
}

/** @returns a function that returns whether a link still works: it exists, was not used and has not expired */
export function validResetLinks(db: Db): (token: string) => Promise<boolean> {
  const links = new SharedLookup(async (identifiers) => {
    const found = await db<{ identifier: string }[]>`
      select identifier from verifications where identifier = any (${identifiers}) and expires_at > now()`;
    return new Map(found.map(({ identifier }) => [identifier, true]));
  });
  return async (token) => (await links.get(identifierOf(token))) === true;
}

/**
 * Applies the consequences of a password that was set by a link. The link went to the user's mailbox, so it
 * confirms the address. All sessions and all other links of the user end.
 */
export async function completeReset(db: Db, user: { id: string; email: string }): Promise<void> {
  await db.begin(async (tx) => {
    await tx`update users set email_verified = true where id = ${user.id}`;
    await tx`delete from verifications where value = ${user.id}`;
    await tx`delete from sessions where user_id = ${user.id}`;
    await recordUserEvent(tx, user, { action: "password.reset" });
  });
}

/**
 * Hashed, as the sign-in library stores it, so that the table reveals no token. A test checks that both are equal.
 */
function identifierOf(token: string): string {
  return createHash("sha256").update(`reset-password:${token}`).digest("base64url");
}

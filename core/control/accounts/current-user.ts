/** The user who is signed in to the console, and the account that their session shows. */
import type { Actor, Db } from "../../context";
import { BasetideError, notFound } from "../../errors";
import { newId } from "../../ids";
import { isUniqueViolation } from "../../postgres";
import { recordChange } from "../audit";
import type { Account } from "./accounts";
import type { Role } from "./permissions";

export interface CurrentUser {
  userId: string;
  sessionId: string;
  /** The user's own address; an account's address is that of its owner. */
  email: string;
  isEmailVerified: boolean;
  /** The account that the pages show. */
  account: Account & { role: Role };
  /** All accounts of the user, their own first. */
  accounts: (Account & { role: Role })[];
}

/** Returns the user as an actor of the audit log. */
export function actorOf(currentUser: Pick<CurrentUser, "email">): Actor {
  return { kind: "user", name: currentUser.email };
}

interface SignedInUser {
  id: string;
  email: string;
  emailVerified: boolean;
}

/** Returns the user of a session; a user's first session creates an account of their own. */
export async function currentUserOf(db: Db, user: SignedInUser, sessionId: string): Promise<CurrentUser> {
  let rows = await accountsOf(db, user.id, sessionId);
  if (!rows.some((row) => row.role === "owner")) {
    await ensureOwnAccount(db, user);
    rows = await accountsOf(db, user.id, sessionId);
  }
  const accounts = rows.map(({ is_current, ...account }) => account);
  const account =
    accounts[
      Math.max(
        0,
        rows.findIndex((row) => row.is_current),
      )
    ];
  if (!account) throw new BasetideError("internal", `User ${user.id} has no account`);
  return {
    userId: user.id,
    sessionId,
    email: user.email,
    isEmailVerified: user.emailVerified,
    account,
    accounts,
  };
}

/** Switches the session to another of its user's accounts. @throws BasetideError `not_found` */
export async function switchAccount(db: Db, currentUser: CurrentUser, accountId: string): Promise<void> {
  if (!currentUser.accounts.some((account) => account.id === accountId)) {
    throw notFound("You are not a member of that account");
  }
  await db`update sessions set account_id = ${accountId} where id = ${currentUser.sessionId}`;
}

/** Creates the account that every user owns, unless it exists. Safe to call concurrently. */
async function ensureOwnAccount(db: Db, user: SignedInUser): Promise<void> {
  try {
    await db.begin(async (tx) => {
      const id = newId("account");
      await tx`insert into accounts (id, email) values (${id}, ${user.email})`;
      await tx`insert into account_members (account_id, user_id, role) values (${id}, ${user.id}, 'owner')`;
      const details = { email: user.email };
      await recordChange(tx, actorOf(user), {
        accountId: id,
        action: "account.created",
        subject: id,
        details,
      });
    });
  } catch (error) {
    if (!isUniqueViolation(error)) throw error;
  }
}

/** Only memberships that still exist count, whatever the session says. */
async function accountsOf(db: Db, userId: string, sessionId: string) {
  return db<(Account & { role: Role; is_current: boolean })[]>`
    select a.id, a.email, a.is_operator as "isOperator", m.role,
      a.id is not distinct from (select s.account_id from sessions as s where s.id = ${sessionId}) as is_current
    from account_members as m join accounts as a on a.id = m.account_id
    where m.user_id = ${userId}
    order by m.role = 'owner' desc, m.created_at, a.id`;
}

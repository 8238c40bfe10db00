/** Who looks at the console: a user, and the account that their session looks at. */
import type { Actor, Db } from "../../context";
import { BasetideError } from "../../errors";
import { newId } from "../../ids";
import { isUniqueViolation } from "../../postgres";
import { recordChange } from "../audit";
import type { Account } from "./accounts";

/** The owner may invite and remove members; all else a member may do too. */
export type Role = "owner" | "member";

export interface CurrentUser {
  userId: string;
  sessionId: string;
  /** The user's own address; the account's is that of its owner. */
  email: string;
  isEmailVerified: boolean;
  /** The account that the pages show. */
  account: Account & { role: Role };
  /** All accounts of the user, their own first. */
  accounts: (Account & { role: Role })[];
}

/** The currentUser as the audit log names them. */
export function actorOf(currentUser: Pick<CurrentUser, "email">): Actor {
  return { kind: "user", name: currentUser.email };
}

interface SignedInUser {
  id: string;
  email: string;
  emailVerified: boolean;
}

/** The currentUser of a session; a user who comes for the first time gets an account of their own. */
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

/** From now on the session looks at another of its user's accounts. @throws BasetideError `not_found` */
export async function switchAccount(db: Db, currentUser: CurrentUser, accountId: string): Promise<void> {
  if (!currentUser.accounts.some((account) => account.id === accountId)) {
    throw new BasetideError("not_found", "You are not a member of that account");
  }
  await db`update sessions set account_id = ${accountId} where id = ${currentUser.sessionId}`;
}

/** Makes the account that every user owns, if it is not there. Safe to call twice at once. */
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

/** A membership that was taken away no longer counts, whatever the session still says. */
async function accountsOf(db: Db, userId: string, sessionId: string) {
  return db<(Account & { role: Role; is_current: boolean })[]>`
    select a.id, a.email, a.is_operator as "isOperator", m.role,
      a.id is not distinct from (select s.account_id from sessions as s where s.id = ${sessionId}) as is_current
    from account_members as m join accounts as a on a.id = m.account_id
    where m.user_id = ${userId}
    order by m.role = 'owner' desc, m.created_at, a.id`;
}

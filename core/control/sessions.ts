/** Where a user is signed in. Sessions are made by the library for sign-in; here they are shown and ended. */
import type { Db } from "../context";
import { BasetideError } from "../errors";
import { isId } from "./ids";

export interface Session {
  id: string;
  createdAt: Date;
  /** Last time that it was prolonged: to the day. */
  seenAt: Date;
  ipAddress: string | null;
  userAgent: string | null;
}

/** The newest first. */
export async function listSessions(db: Db, userId: string): Promise<Session[]> {
  return db<Session[]>`
    select id, created_at as "createdAt", updated_at as "seenAt", ip_address as "ipAddress",
      user_agent as "userAgent"
    from sessions where user_id = ${userId} and expires_at > now() order by created_at desc, id`;
}

/** Its cookie opens nothing from now on. @throws BasetideError `not_found`, also when it is another user's */
export async function revokeSession(db: Db, userId: string, sessionId: string): Promise<void> {
  const gone = isId("session", sessionId)
    ? await db`delete from sessions where id = ${sessionId} and user_id = ${userId} returning id`
    : [];
  if (gone.length === 0) throw new BasetideError("not_found", "There is no such session");
}

/** Ends all of the user's sessions but one. */
export async function revokeOtherSessions(db: Db, userId: string, sessionId: string): Promise<void> {
  await db`delete from sessions where user_id = ${userId} and id <> ${sessionId}`;
}

/** Takes away what has expired: it opens nothing, and would only pile up. */
export async function forgetExpired(db: Db): Promise<void> {
  await db`delete from sessions where expires_at < now()`;
  await db`delete from verifications where expires_at < now()`;
  await db`delete from invitations where expires_at < now()`;
  await db`delete from attempts where ends_at < now()`;
}

/** Sessions of users. The sign-in library creates them; this module lists and ends them. */
import type { Db } from "../../context";
import { notFound } from "../../errors";
import { isId } from "../../ids";
import { recordUserEvent } from "../audit";
import type { CurrentUser } from "./current-user";

export interface Session {
  id: string;
  createdAt: Date;
  /** When it was last extended, accurate to a day. */
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

type SessionUser = Pick<CurrentUser, "userId" | "sessionId" | "email">;

/** Ends a session: its cookie no longer works. @throws BasetideError `not_found`, also if it is another user's */
export async function revokeSession(db: Db, currentUser: SessionUser, sessionId: string): Promise<void> {
  const { userId: id, email } = currentUser;
  await db.begin(async (tx) => {
    const gone = isId("session", sessionId)
      ? await tx`delete from sessions where id = ${sessionId} and user_id = ${id} returning id`
      : [];
    if (gone.length === 0) throw notFound("This session does not exist");
    await recordUserEvent(tx, { id, email }, { action: "session.ended", details: { sessions: 1 } });
  });
}

/** Ends all of the user's sessions except the current one. */
export async function revokeOtherSessions(db: Db, currentUser: SessionUser): Promise<void> {
  const { userId: id, sessionId, email } = currentUser;
  await db.begin(async (tx) => {
    const { count } = await tx`delete from sessions where user_id = ${id} and id <> ${sessionId}`;
    if (count === 0) return;
    await recordUserEvent(tx, { id, email }, { action: "session.ended", details: { sessions: count } });
  });
}

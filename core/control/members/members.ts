/**
 * Members of an account: its owner invites them by e-mail (and removes them: `remove-member.ts`).
 *
 * An invitation is a link with 32 random bytes, of which only the SHA-256 is stored. It is bound to the invited
 * address: only a user who is signed in with that address can accept it, so a forwarded link is useless.
 */
import { SharedLookup } from "../../async";
import type { Actor, Db } from "../../context";
import { BasetideError, conflict, invalid, notFound } from "../../errors";
import { isId, newId } from "../../ids";
import { newSecret } from "../../secrets";
import {
  actorOf,
  type CurrentUser,
  can,
  checkEmail,
  denial,
  type GivenRole,
  givenRoles,
  hashToken,
  type Role,
} from "../accounts";
import { recordChange } from "../audit";

const INVITATION_LIFE = "7 days";
/** Members and open invitations of one account: more is a mistake, or an attempt to send mail through our server. */
const MAX_PEOPLE = 100;

export interface Member {
  userId: string;
  email: string;
  role: Role;
  since: Date;
}

export interface Invitation {
  id: string;
  email: string;
  role: GivenRole;
  expiresAt: Date;
}

/** The owner first. */
export async function listMembers(db: Db, accountId: string): Promise<Member[]> {
  return db<Member[]>`
    select m.user_id as "userId", u.email, m.role, m.created_at as since
    from account_members as m join users as u on u.id = m.user_id
    where m.account_id = ${accountId} order by m.role = 'owner' desc, u.email`;
}

/** Open invitations, without expired ones. */
export async function listInvitations(db: Db, accountId: string): Promise<Invitation[]> {
  return db<Invitation[]>`
    select id, email, role, expires_at as "expiresAt" from invitations
    where account_id = ${accountId} and expires_at > now() order by email`;
}

/**
 * Invites an address, or replaces its invitation by a new link.
 *
 * @param permit called with the address once the invitation is known to be possible; if it throws, nothing changes
 * @returns the token for the link, which cannot be read again later, and the result of `permit`
 * @throws BasetideError `forbidden` if the user does not own the account, `invalid_request` for an invalid address,
 *   `already_exists` for a member, `conflict` if the account has too many
 */
export async function inviteMember<Permit>(
  db: Db,
  currentUser: CurrentUser,
  { address, role }: { address: string; role: GivenRole },
  permit: (email: string) => Promise<Permit>,
): Promise<{ email: string; token: string; permit: Permit }> {
  requireOwner(currentUser.account.role);
  const email = checkEmail(address);
  const accountId = currentUser.account.id;
  const members = await listMembers(db, accountId);
  if (members.some((member) => member.email === email)) {
    throw new BasetideError("already_exists", `${email} is already a member`);
  }
  const invitations = await listInvitations(db, accountId);
  if (members.length + invitations.length >= MAX_PEOPLE) {
    throw conflict(`An account has at most ${MAX_PEOPLE} members and open invitations`);
  }
  const given = await permit(email);
  const token = newSecret();
  await db.begin(async (tx) => {
    await tx`
      insert into invitations (id, account_id, email, role, token_hash, invited_by, expires_at)
      values (${newId("invitation")}, ${accountId}, ${email}, ${role}, ${hashToken(token)}, ${currentUser.userId},
        now() + ${INVITATION_LIFE}::interval)
      on conflict (account_id, email) do update
        set role = excluded.role, token_hash = excluded.token_hash, invited_by = excluded.invited_by,
          expires_at = excluded.expires_at`;
    const details = { email, role };
    await recordChange(tx, actorOf(currentUser), { accountId, action: "member.invited", details });
  });
  return { email, token, permit: given };
}

/** @throws BasetideError `forbidden`, `not_found` */
export async function withdrawInvitation(
  db: Db,
  currentUser: CurrentUser,
  invitationId: string,
): Promise<void> {
  requireOwner(currentUser.account.role);
  const accountId = currentUser.account.id;
  await db.begin(async (tx) => {
    const [gone] = isId("invitation", invitationId)
      ? await tx<{ email: string }[]>`
          delete from invitations where id = ${invitationId} and account_id = ${accountId} returning email`
      : [];
    if (!gone) throw notFound("This invitation does not exist");
    const details = { email: gone.email };
    await recordChange(tx, actorOf(currentUser), { accountId, action: "invitation.withdrawn", details });
  });
}

interface FoundInvitation {
  id: string;
  accountId: string;
  /** The account's address. */
  account: string;
  email: string;
  role: GivenRole;
}

/** @returns a function that returns the invitation of a link, null if it does not exist or has expired */
export function linkedInvitations(db: Db): (token: string) => Promise<FoundInvitation | null> {
  const invitations = new SharedLookup(async (hashes) => {
    const found = await db<(FoundInvitation & { hash: string })[]>`
      select i.id, i.account_id as "accountId", a.email as account, i.email, i.role, i.token_hash as hash
      from invitations as i join accounts as a on a.id = i.account_id
      where i.token_hash = any (${hashes}) and i.expires_at > now()`;
    return new Map(found.map((invitation) => [invitation.hash, invitation]));
  });
  return async (token) => (await invitations.get(hashToken(token))) ?? null;
}

/**
 * Makes the user a member, and switches their session to the account.
 *
 * @throws BasetideError `not_found` for a link that is used up or expired, `forbidden` for one to another address
 */
export async function acceptInvitation(db: Db, currentUser: CurrentUser, token: string): Promise<void> {
  await db.begin(async (tx) => {
    // Deleted first: one that was withdrawn or used meanwhile is not valid.
    const [invitation] = await tx<Omit<FoundInvitation, "account">[]>`
      delete from invitations where token_hash = ${hashToken(token)} and expires_at > now()
      returning id, account_id as "accountId", email, role`;
    if (!invitation) throw notFound("This invitation has expired or was withdrawn");
    if (invitation.email !== currentUser.email) {
      throw new BasetideError(
        "forbidden",
        `This invitation went to ${invitation.email}; you are signed in as ${currentUser.email}`,
      );
    }
    const { accountId, role } = invitation;
    await tx`
      insert into account_members (account_id, user_id, role)
      values (${accountId}, ${currentUser.userId}, ${role}) on conflict do nothing`;
    await tx`update sessions set account_id = ${accountId} where id = ${currentUser.sessionId}`;
    await recordChange(tx, actorOf(currentUser), {
      accountId,
      action: "member.joined",
      subject: currentUser.userId,
      details: { role },
    });
  });
}

/**
 * Gives a member another role, which holds from the next request on, also for the tokens that they created.
 *
 * @throws BasetideError `forbidden`, `not_found`, `conflict` for the owner, `invalid_request` for an unknown role
 */
export async function changeRole(
  db: Db,
  { accountId, role: own, actor }: { accountId: string; role: Role; actor: Actor },
  userId: string,
  given: string,
): Promise<Member> {
  requireOwner(own);
  const unknown = () => notFound("This member does not exist");
  if (!isId("user", userId)) throw unknown();
  return db.begin(async (tx) => {
    const [member] = await tx<Member[]>`
      select u.id as "userId", u.email, m.role, m.created_at as since
      from account_members as m join users as u on u.id = m.user_id
      where m.account_id = ${accountId} and m.user_id = ${userId} for update of m`;
    if (!member) throw unknown();
    if (member.role === "owner") throw conflict("The owner's role cannot be changed");
    const role = checkRole(given);
    if (member.role === role) return member;
    await tx`
      update account_members set role = ${role} where account_id = ${accountId} and user_id = ${userId}`;
    const details = { email: member.email, role };
    await recordChange(tx, actor, { accountId, action: "member.role_changed", subject: userId, details });
    return { ...member, role };
  });
}

/** @throws BasetideError `invalid_request` */
export function checkRole(given: string): GivenRole {
  const role = givenRoles.find((one) => one === given);
  if (role) return role;
  throw invalid(`A member is one of: ${givenRoles.join(", ")}`);
}

function requireOwner(role: Role): void {
  if (!can(role, "members")) throw new BasetideError("forbidden", denial(role, "members"));
}

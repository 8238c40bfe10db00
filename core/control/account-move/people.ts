/**
 * Which user of the target each person of an account is.
 *
 * A person whom the target does not know is created there, with password, sign-in services and second factor. One with
 * the same id came with an earlier move. A user with the same address and another id is another login, of somebody who
 * may not be the same person: the operator must say so (`isMerging`), and that user keeps the target's login.
 */
import type { Sql, TransactionSql } from "postgres";
import { conflict } from "../../errors";
import type { MovedRow } from "./rows";

export interface People {
  /** By the id in the source: the id in the target. */
  idOf: Map<string, string>;
  /** Users to create. */
  created: string[];
  /** Addresses of users who keep the target's login. */
  merged: string[];
}

/** @throws BasetideError `conflict` */
export async function matchPeople(
  target: Sql | TransactionSql,
  users: MovedRow[],
  isMerging: boolean,
): Promise<People> {
  const people = users.map(({ values }) => ({ id: String(values.id), email: String(values.email) }));
  const known = await target<{ id: string; email: string }[]>`
    select id, email from users
    where id = any (${people.map(({ id }) => id)}) or email = any (${people.map(({ email }) => email)})`;
  const ids = new Set(known.map(({ id }) => id));
  const byEmail = new Map(known.map(({ id, email }) => [email, id]));
  const found: People = { idOf: new Map(), created: [], merged: [] };
  for (const { id, email } of people) {
    const other = ids.has(id) ? id : byEmail.get(email);
    found.idOf.set(id, other ?? id);
    if (other === undefined) found.created.push(id);
    else if (other !== id) found.merged.push(email);
  }
  if (found.merged.length > 0 && !isMerging) {
    throw conflict(
      `The other control plane has users of its own with these addresses: ${found.merged.join(", ")}. If they are the same people, give --merge-users: they keep the password and the second factor that they have there`,
    );
  }
  return found;
}

/** @throws BasetideError `conflict` if the target has an account of that address, or of that owner */
export async function requireFreeAccount(
  target: Sql | TransactionSql,
  account: { id: string; email: string },
  ownerId: string | undefined,
): Promise<void> {
  const [taken] = await target<{ id: string; email: string }[]>`
    select a.id, a.email from accounts as a
    where a.id <> ${account.id} and (lower(a.email) = lower(${account.email}) or exists (
      select from account_members as m
      where m.account_id = a.id and m.role = 'owner' and m.user_id = ${ownerId ?? ""}))`;
  if (!taken) return;
  throw conflict(
    `The other control plane has an account ${taken.id} for ${taken.email}, and a person owns one account at most. Move or delete that one first`,
  );
}

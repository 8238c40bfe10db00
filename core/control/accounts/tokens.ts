/**
 * API tokens: `bt_` and 32 random bytes. Only their SHA-256 is stored, so the table reveals no token; a token is
 * shown once, when it is created.
 */
import { createHash, randomBytes } from "node:crypto";
import type { Actor, Db } from "../../context";
import { BasetideError } from "../../errors";
import { isId, newId } from "../../ids";
import { isNotWritable } from "../../postgres";
import { recordChange } from "../audit";
import type { Account } from "./accounts";

const TOKEN = /^bt_[A-Za-z0-9_-]{43}$/;

/**
 * @param by.userId the member who creates it: it is revoked when they leave the account
 * @returns the token itself; it cannot be read again later
 */
export async function createToken(
  db: Db,
  accountId: string,
  name: string,
  by: { actor?: Actor | undefined; userId?: string } = {},
): Promise<string> {
  const token = newToken();
  const id = newId("api_token");
  await db.begin(async (tx) => {
    await tx`
      insert into api_tokens (id, account_id, name, token_hash, created_by)
      values (${id}, ${accountId}, ${name}, ${hashToken(token)}, ${by.userId ?? null})`;
    await recordChange(tx, by.actor, { accountId, action: "token.created", subject: id, details: { name } });
  });
  return token;
}

export interface ApiToken {
  id: string;
  name: string;
  createdAt: Date;
  /** Accurate to an hour; null: never. */
  lastUsedAt: Date | null;
}

/** The account's tokens, the newest first, without the tokens themselves. */
export async function listTokens(db: Db, accountId: string): Promise<ApiToken[]> {
  return db<ApiToken[]>`
    select id, name, created_at as "createdAt", last_used_at as "lastUsedAt"
    from api_tokens where account_id = ${accountId} order by created_at desc, id`;
}

/**
 * Revokes a token, which stops working at once.
 *
 * @throws BasetideError `not_found`, also if it is another account's
 */
export async function revokeToken(db: Db, accountId: string, tokenId: string, actor?: Actor): Promise<void> {
  await db.begin(async (tx) => {
    const [gone] = isId("api_token", tokenId)
      ? await tx<{ name: string }[]>`
          delete from api_tokens where id = ${tokenId} and account_id = ${accountId} returning name`
      : [];
    if (!gone) throw new BasetideError("not_found", "This token does not exist");
    const details = { name: gone.name };
    await recordChange(tx, actor, { accountId, action: "token.revoked", subject: tokenId, details });
  });
}

/** The account that a token authenticates. */
interface Bearer extends Account {
  token: {
    id: string;
    name: string;
    /** Created by the account's owner, or by the operator for them: may manage members. */
    isOwners: boolean;
  };
}

/**
 * Returns the account of a request's `Authorization` header, and the token.
 *
 * @throws BasetideError `unauthorized` for a missing, malformed or unknown token
 */
export async function authenticate(db: Db, authorization: string | null | undefined): Promise<Bearer> {
  const token = /^Bearer +(\S+)$/i.exec(authorization ?? "")?.[1];
  if (token === undefined || !TOKEN.test(token)) throw new BasetideError("unauthorized");
  const [found] = await db<(Account & TokenRow)[]>`
    select a.id, a.email, a.is_operator as "isOperator", t.id as token_id, t.name as token_name,
      t.created_by is null or exists (
        select from account_members as m
        where m.account_id = a.id and m.user_id = t.created_by and m.role = 'owner') as is_owners,
      coalesce(t.last_used_at < now() - interval '1 hour', true) as is_stale
    from api_tokens as t join accounts as a on a.id = t.account_id
    where t.token_hash = ${hashToken(token)}`;
  if (!found) throw new BasetideError("unauthorized");
  if (found.is_stale) await recordUse(db, found.token_id);
  const { id, email, isOperator } = found;
  return {
    id,
    email,
    isOperator,
    token: { id: found.token_id, name: found.token_name, isOwners: found.is_owners },
  };
}

/** Never fails: a read-only control plane can still be read with a token. */
async function recordUse(db: Db, tokenId: string): Promise<void> {
  try {
    await db`update api_tokens set last_used_at = now() where id = ${tokenId}`;
  } catch (error) {
    if (!isNotWritable(error)) throw error;
  }
}

interface TokenRow {
  token_id: string;
  token_name: string;
  is_owners: boolean;
  is_stale: boolean;
}

export function newToken(): string {
  return `bt_${randomBytes(32).toString("base64url")}`;
}

export function hashToken(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}

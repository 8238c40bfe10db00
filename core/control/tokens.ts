/**
 * API tokens: `bt_` and 32 random bytes. Only their SHA-256 is kept, so the table opens nothing; a token is
 * shown once, when it is made.
 */
import { createHash, randomBytes } from "node:crypto";
import type { Db } from "../context";
import { BasetideError } from "../errors";
import type { Account } from "./accounts";
import { isId, newId } from "./ids";

const TOKEN = /^bt_[A-Za-z0-9_-]{43}$/;

/** @returns the token itself; it cannot be read again later */
export async function createToken(db: Db, accountId: string, name: string): Promise<string> {
  const token = newToken();
  await db`
    insert into api_tokens (id, account_id, name, token_hash)
    values (${newId("api_token")}, ${accountId}, ${name}, ${hashToken(token)})`;
  return token;
}

export interface ApiToken {
  id: string;
  name: string;
  createdAt: Date;
  /** To the hour; null: never. */
  lastUsedAt: Date | null;
}

/** The account's tokens, the newest first; never the tokens themselves. */
export async function listTokens(db: Db, accountId: string): Promise<ApiToken[]> {
  return db<ApiToken[]>`
    select id, name, created_at as "createdAt", last_used_at as "lastUsedAt"
    from api_tokens where account_id = ${accountId} order by created_at desc, id`;
}

/** The token opens nothing from now on. @throws BasetideError `not_found`, also when it is another account's */
export async function revokeToken(db: Db, accountId: string, tokenId: string): Promise<void> {
  const gone = isId("api_token", tokenId)
    ? await db`delete from api_tokens where id = ${tokenId} and account_id = ${accountId} returning id`
    : [];
  if (gone.length === 0) throw new BasetideError("not_found", "There is no such token");
}

/**
 * The account of a request's `Authorization` header.
 *
 * @throws BasetideError `unauthorized` for a missing, malformed or unknown token
 */
export async function authenticate(db: Db, authorization: string | null | undefined): Promise<Account> {
  const token = /^Bearer +(\S+)$/i.exec(authorization ?? "")?.[1];
  if (token === undefined || !TOKEN.test(token)) throw new BasetideError("unauthorized");
  const [found] = await db<(Account & { token_id: string; is_stale: boolean })[]>`
    select a.id, a.email, a.is_operator as "isOperator", t.id as token_id,
      coalesce(t.last_used_at < now() - interval '1 hour', true) as is_stale
    from api_tokens as t join accounts as a on a.id = t.account_id
    where t.token_hash = ${hashToken(token)}`;
  if (!found) throw new BasetideError("unauthorized");
  if (found.is_stale) await db`update api_tokens set last_used_at = now() where id = ${found.token_id}`;
  return { id: found.id, email: found.email, isOperator: found.isOperator };
}

export function newToken(): string {
  return `bt_${randomBytes(32).toString("base64url")}`;
}

export function hashToken(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}

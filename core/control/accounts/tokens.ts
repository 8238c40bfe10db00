/**
 * API tokens: `bt_` and 32 random bytes. Only their SHA-256 and their first characters are stored, so the table
 * reveals no token; a token is shown once, when it is created.
 *
 * A token has scopes, and never more permissions than its creator has in the account at the time of the call.
 */
import { createHash } from "node:crypto";
import type { Sql, TransactionSql } from "postgres";
import { SharedLookup } from "../../async";
import type { Actor, Db } from "../../context";
import { BasetideError, invalid, notFound } from "../../errors";
import { isId, newId } from "../../ids";
import { isNotWritable } from "../../postgres";
import { newSecret } from "../../secrets";
import { recordChange } from "../audit";
import type { Account } from "./accounts";
import { type AgentScope, agentScopes, scopes as allScopes, type Role, type TokenScope } from "./permissions";

/** `bt_` and the first 6 of its 43 random characters, which leave 222 bits unknown. */
const PREFIX_LENGTH = 9;
const TOKEN = /^bt_[A-Za-z0-9_-]{43}$/;

interface TokenOptions {
  actor?: Actor | undefined;
  /** The member who creates it: it is revoked when they leave the account. */
  userId?: string;
  /** Default: all. */
  scopes?: readonly TokenScope[];
  /** Default: never. */
  expiresInDays?: number | undefined;
}

/** @returns the token itself; it cannot be read again later */
export async function createToken(
  db: Db,
  accountId: string,
  name: string,
  options: TokenOptions = {},
): Promise<string> {
  const { actor, userId, expiresInDays } = options;
  const scopes = allScopes.filter((scope) => (options.scopes ?? allScopes).includes(scope));
  if (scopes.length === 0) throw invalid("A token needs at least one scope");
  const token = newToken();
  const id = newId("api_token");
  await db.begin(async (tx) => {
    await tx`
      insert into api_tokens (id, account_id, name, prefix, token_hash, scopes, expires_at, created_by)
      values (${id}, ${accountId}, ${name}, ${token.slice(0, PREFIX_LENGTH)}, ${hashToken(token)}, ${scopes},
        now() + ${expiresInDays ?? null}::int * interval '1 day', ${userId ?? null})`;
    const details = { name, scopes: scopes.join(" "), expires_in_days: expiresInDays ?? "never" };
    await recordChange(tx, actor, { accountId, action: "token.created", subject: id, details });
  });
  return token;
}

/**
 * Creates the token of an agent, and revokes the one that it had.
 *
 * @param options.userId the member who sees it: it is revoked when they leave the account. Null: the operator
 * @returns the token itself; it cannot be read again later
 */
export async function createAgentToken(
  db: Db,
  agent: { id: string; accountId: string; name: string },
  options: { scopes: readonly AgentScope[]; userId?: string | null },
): Promise<string> {
  const scopes = agentScopes.filter((scope) => options.scopes.includes(scope));
  const token = newToken();
  await db.begin(async (tx) => {
    // Of concurrent calls the last one wins, and an agent that is being revoked gets none.
    const [locked] = await tx`select from agents where id = ${agent.id} for update`;
    if (!locked) throw notFound("This agent does not exist");
    await tx`delete from api_tokens where agent_id = ${agent.id}`;
    await tx`
      insert into api_tokens (id, account_id, name, prefix, token_hash, scopes, created_by, agent_id)
      values (${newId("api_token")}, ${agent.accountId}, ${agent.name}, ${token.slice(0, PREFIX_LENGTH)},
        ${hashToken(token)}, ${scopes}, ${options.userId ?? null}, ${agent.id})`;
  });
  return token;
}

/** Changes what the token of an agent may do, if it has one. */
export async function setAgentScopes(
  db: Sql | TransactionSql,
  agentId: string,
  scopes: readonly AgentScope[],
): Promise<void> {
  await db`update api_tokens set scopes = ${[...scopes]} where agent_id = ${agentId}`;
}

export interface ApiToken {
  id: string;
  name: string;
  /** Its first characters. */
  prefix: string;
  scopes: TokenScope[];
  createdAt: Date;
  /** It does not work after this time; null: it does not expire. */
  expiresAt: Date | null;
  /** Accurate to an hour; null: never. */
  lastUsedAt: Date | null;
}

/** The account's tokens without those of agents, the newest first, without the tokens themselves. */
export async function listTokens(db: Db, accountId: string): Promise<ApiToken[]> {
  return db<ApiToken[]>`
    select id, name, prefix, scopes, created_at as "createdAt", expires_at as "expiresAt",
      last_used_at as "lastUsedAt"
    from api_tokens where account_id = ${accountId} and agent_id is null order by created_at desc, id`;
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
          delete from api_tokens
          where id = ${tokenId} and account_id = ${accountId} and agent_id is null returning name`
      : [];
    if (!gone) throw notFound("This token does not exist");
    const details = { name: gone.name };
    await recordChange(tx, actor, { accountId, action: "token.revoked", subject: tokenId, details });
  });
}

/** The account that a token authenticates. */
export interface Bearer extends Account {
  token: {
    id: string;
    name: string;
    scopes: (TokenScope | AgentScope)[];
    /** The agent that it belongs to. */
    agentId: string | null;
    /** The member who created it; null: the operator. */
    createdBy: string | null;
    /** Of the member who created it; that of the owner if the operator created it for them. */
    role: Role;
  };
}

/** The look-ups of tokens, which anyone can make up. */
const lookups = new WeakMap<Db, SharedLookup<Account & TokenRow>>();

function lookupIn(db: Db): SharedLookup<Account & TokenRow> {
  const look = async (hashes: string[]) => {
    const found = await db<(Account & TokenRow)[]>`
      select a.id, a.email, a.is_operator as "isOperator", t.id as token_id, t.name as token_name, t.token_hash as hash,
        t.scopes, t.agent_id, t.created_by, case when t.created_by is null then 'owner' else m.role end as role,
        coalesce(t.last_used_at < now() - interval '1 hour', true) as is_stale
      from api_tokens as t join accounts as a on a.id = t.account_id
        left join account_members as m on m.account_id = a.id and m.user_id = t.created_by
      where t.token_hash = any (${hashes}) and (t.expires_at is null or t.expires_at > now())`;
    return new Map(found.map((one) => [one.hash, one]));
  };
  return lookups.getOrInsertComputed(db, () => new SharedLookup(look));
}

/**
 * Returns the account of a request's `Authorization` header, and the token.
 *
 * @throws BasetideError `unauthorized` for a missing, malformed or unknown token
 */
export async function authenticate(db: Db, authorization: string | null | undefined): Promise<Bearer> {
  const text = /^Bearer +(\S+)$/i.exec(authorization ?? "")?.[1];
  if (text === undefined || !TOKEN.test(text)) throw new BasetideError("unauthorized");
  const found = await lookupIn(db).get(hashToken(text));
  // A member's tokens are deleted with the membership; one without a member has no permissions.
  if (!found?.role) throw new BasetideError("unauthorized");
  if (found.is_stale) await recordUse(db, found.token_id);
  const { id, email, isOperator, scopes, role, agent_id: agentId, created_by: createdBy } = found;
  const token = { id: found.token_id, name: found.token_name, scopes, agentId, createdBy, role };
  return { id, email, isOperator, token };
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
  hash: string;
  token_id: string;
  token_name: string;
  scopes: (TokenScope | AgentScope)[];
  agent_id: string | null;
  created_by: string | null;
  role: Role | null;
  is_stale: boolean;
}

export function newToken(): string {
  return `bt_${newSecret()}`;
}

export function hashToken(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}

/**
 * The clients that members have connected to agents by signing in: which they are, what their tokens may do, and their end.
 *
 * The tables are those of better-auth's OAuth provider, which writes them: its lists are JSON in text columns.
 *
 * A token never has more rights than the member who connected the client has now, or than the agent has.
 */
import { SharedLookup } from "../../async";
import type { Actor, Db } from "../../context";
import { BasetideError } from "../../errors";
import { rowById } from "../../ids";
import { type AgentScope, agentScopes, can, denial, hashToken, type Role } from "../accounts";
import { recordChange } from "../audit";
import { type Agent, getAgent } from "./agents";

/** Tokens of clients begin like this, so that those of programs are told apart, and leaked ones are found. */
export const ACCESS_TOKEN_PREFIX = "bta_";
const ACCESS_TOKEN = /^bta_[A-Za-z0-9_-]{43}$/;

/** A client that acts as an agent. */
export interface AgentConnection {
  id: string;
  accountId: string;
  agentId: string;
  agentName: string;
  /** Who connected it. */
  userId: string;
  /** As the client calls itself. */
  clientName: string;
  /** The address of the document that describes the client. */
  clientId: string;
  /** E-mail address of the member who connected it. */
  connectedBy: string;
  scopes: AgentScope[];
  connectedAt: Date;
  /** When it last got a token; null: not yet. */
  refreshedAt: Date | null;
  /** It has no token that works, or could be renewed. */
  isExpired: boolean;
}

interface AccessTokenRow {
  hash: string;
  client_id: string;
  scopes: string[];
  /** Of the member's last consent. */
  consented: string[];
  resources: string[] | null;
  agent_id: string;
  account_id: string;
  role: Role | null;
}

const lookups = new WeakMap<Db, SharedLookup<AccessTokenRow>>();

function lookupIn(db: Db): SharedLookup<AccessTokenRow> {
  const look = async (hashes: string[]) => {
    const found = await db<AccessTokenRow[]>`
      select t.token as hash, t.client_id, t.scopes::jsonb as scopes, o.scopes::jsonb as consented,
        t.resources::jsonb as resources, g.id as agent_id, g.account_id, m.role
      from oauth_access_tokens as t join agents as g on g.id = t.reference_id
        -- A code that was issued before the connection ended can still be exchanged after it.
        join oauth_consents as o
          on o.reference_id = t.reference_id and o.user_id = t.user_id and o.client_id = t.client_id
        left join account_members as m on m.account_id = g.account_id and m.user_id = t.user_id
      where t.token = any (${hashes}) and t.expires_at > now() and t.revoked is null`;
    return new Map(found.map((one) => [one.hash, one]));
  };
  return lookups.getOrInsertComputed(db, () => new SharedLookup(look));
}

/** Whether the header has a token of a client that a member has connected; any other is of a program. */
export function isConnectionToken(authorization: string | null): boolean {
  return tokenIn(authorization)?.startsWith(ACCESS_TOKEN_PREFIX) === true;
}

/**
 * Returns the agent as which the client of a request acts.
 *
 * @param resource the address that the token must have been issued for
 * @throws BasetideError `unauthorized`; `forbidden` if the member may no longer connect clients
 */
export async function agentOfConnection(
  db: Db,
  authorization: string | null,
  resource: string,
): Promise<{ agent: Agent; clientId: string; scopes: AgentScope[] }> {
  const token = tokenIn(authorization) ?? "";
  if (!ACCESS_TOKEN.test(token)) throw new BasetideError("unauthorized");
  const found = await lookupIn(db).get(hashToken(token.slice(ACCESS_TOKEN_PREFIX.length)));
  if (!found?.role) throw new BasetideError("unauthorized");
  if (!found.resources?.includes(resource))
    throw new BasetideError("unauthorized", "This token was issued for another address");
  if (!can(found.role, "credentials"))
    throw new BasetideError("forbidden", denial(found.role, "credentials"));
  const agent = await getAgent(db, found.account_id, found.agent_id);
  const scopes = found.scopes.filter((scope) => found.consented.includes(scope));
  return { agent, clientId: found.client_id, scopes: grantedScopes(agent, scopes) };
}

/** Returns those of the scopes that the agent has. */
export function grantedScopes(agent: Pick<Agent, "mayPropose">, scopes: readonly string[]): AgentScope[] {
  return agentScopes.filter((one) => scopes.includes(one) && (one !== "agent:propose" || agent.mayPropose));
}

/** The clients of all agents of the account, the newest first. */
export function listConnections(db: Db, accountId: string): Promise<AgentConnection[]> {
  return selectConnections(db, db`g.account_id = ${accountId}`);
}

/** @throws BasetideError `not_found`, also if it belongs to another account */
export async function getConnection(db: Db, accountId: string, id: string): Promise<AgentConnection> {
  const find = () => selectConnections(db, db`g.account_id = ${accountId} and o.id = ${id}`);
  return rowById("connection", id, find, "This program is not connected");
}

async function selectConnections(db: Db, where: ReturnType<Db>): Promise<AgentConnection[]> {
  const rows = await db<(Omit<AgentConnection, "scopes"> & { scopes: string[]; mayPropose: boolean })[]>`
    select o.id, o.user_id as "userId", g.account_id as "accountId", g.id as "agentId", g.name as "agentName",
      g.may_propose as "mayPropose", coalesce(nullif(c.name, ''), c.client_id) as "clientName",
      c.client_id as "clientId", u.email as "connectedBy", o.scopes::jsonb as scopes,
      o.updated_at as "connectedAt", greatest(a.created_at, r.created_at) as "refreshedAt",
      a.created_at is null and r.created_at is null as "isExpired"
    from oauth_consents as o join agents as g on g.id = o.reference_id
      join oauth_clients as c on c.client_id = o.client_id join users as u on u.id = o.user_id
      left join lateral (
        select max(t.created_at) as created_at from oauth_access_tokens as t
        where t.reference_id = o.reference_id and t.user_id = o.user_id and t.client_id = o.client_id
          and t.expires_at > now() and t.revoked is null) as a on true
      left join lateral (
        select max(t.created_at) as created_at from oauth_refresh_tokens as t
        where t.reference_id = o.reference_id and t.user_id = o.user_id and t.client_id = o.client_id
          and t.expires_at > now() and t.revoked is null) as r on true
    where ${where} order by o.updated_at desc, o.id`;
  return rows.map(({ mayPropose, ...row }) => ({
    ...row,
    scopes: grantedScopes({ mayPropose }, row.scopes),
  }));
}

/** Returns the roles of the account's agents on servers, by the agent's id. */
export async function sqlUsersOfAgents(db: Db, accountId: string): Promise<Map<string, string[]>> {
  const rows = await db<{ id: string; roles: string[] }[]>`
    select g.id, array_agg(u.role_name order by u.role_name) as roles
    from agents as g join sql_users as u on u.agent_id = g.id where g.account_id = ${accountId} group by g.id`;
  return new Map(rows.map(({ id, roles }) => [id, roles]));
}

/** Records in the audit log that a member has connected a client. */
export async function recordConnected(
  db: Db,
  actor: Actor,
  agent: Agent,
  connected: { clientId: string; scopes: readonly AgentScope[] },
): Promise<void> {
  const details = { name: agent.name, client: connected.clientId, scopes: connected.scopes.join(" ") };
  await db.begin((tx) =>
    recordChange(tx, actor, {
      accountId: agent.accountId,
      action: "agent.connected",
      subject: agent.id,
      details,
    }),
  );
}

/** Ends a connection: the client's tokens stop working at once. */
export async function endConnection(db: Db, connection: AgentConnection, actor: Actor): Promise<void> {
  const { id, accountId, agentId, userId, clientId } = connection;
  await db.begin(async (tx) => {
    const { count } = await tx`delete from oauth_consents where id = ${id}`;
    if (count === 0) return;
    for (const table of ["oauth_access_tokens", "oauth_refresh_tokens"])
      await tx`
        delete from ${tx(table)}
        where reference_id = ${agentId} and user_id = ${userId} and client_id = ${clientId}`;
    const details = { name: connection.agentName, client: clientId };
    await recordChange(tx, actor, { accountId, action: "agent.disconnected", subject: agentId, details });
  });
}

function tokenIn(authorization: string | null): string | undefined {
  return /^Bearer +(\S+)$/i.exec(authorization ?? "")?.[1];
}

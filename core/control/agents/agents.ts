/**
 * Agents: AI clients, each with a token, the bases that it may read, and a SQL user of its own in each of their databases.
 *
 * Its token is of no use for the management API, so that it can approve nothing.
 */
import type { TransactionSql } from "postgres";
import type { Actor, Context, Db } from "../../context";
import { BasetideError, conflict, invalid, isBasetideError } from "../../errors";
import { newId, rowById } from "../../ids";
import { checkedName, isForeignKeyViolation, isUniqueViolation, jsonParameter } from "../../postgres";
import type { TableSpec } from "../../replica";
import { type AgentScope, type Bearer, can, createAgentToken, denial, setAgentScopes } from "../accounts";
import { recordChange } from "../audit";
import { getBase, getBases, replicaShape } from "../bases";
import { MOST_PROPOSED } from "../change-sets";
import { getDatabase, revokeAgentUsers, revokeUnusedAgentUsers } from "../placement";
import { grantAgent } from "./reads";
import type { AgentRule } from "./rules";

export interface Agent {
  id: string;
  accountId: string;
  /** Unique in the account, ignoring case. */
  name: string;
  mayPropose: boolean;
  limits: AgentLimits;
  rules: AgentRule[];
  /** E-mail address of the user, or name of the token or operator, who created it. */
  createdBy: string;
  createdAt: Date;
  /** It has a token that works. */
  hasToken: boolean;
  /** Accurate to an hour; null: never. */
  lastUsedAt: Date | null;
  bases: AgentBase[];
}

/** What an agent may read of a base. */
export interface AgentBase {
  baseId: string;
  /** The base's name. */
  name: string;
  /** The source's ids of the tables; null: all. */
  tables: string[] | null;
  /** The source's ids of fields that it may not read. */
  hidden: string[];
  /** It may read fields of types that hold personal data or links to files. */
  hasPrivate: boolean;
}

/** The most that an agent may do. */
export interface AgentLimits {
  /** Calls of tools a minute. */
  calls: number;
  /** Queries that run at once. */
  queries: number;
  /** Proposals that wait. */
  proposals: number;
  /** Of a proposal. */
  operations: number;
}

export const usualLimits: AgentLimits = { calls: 60, queries: 2, proposals: 10, operations: MOST_PROPOSED };
/** A page of a review has all operations of a proposal. */
export const highestLimits: AgentLimits = {
  calls: 600,
  queries: 10,
  proposals: 100,
  operations: MOST_PROPOSED,
};

/** A base that an agent is to read. Tables and fields by their SQL name (`table.column`), the source's name or id. */
export interface AskedBase {
  baseId: string;
  tables?: string[] | null | undefined;
  hidden?: string[] | undefined;
  hasPrivate?: boolean | undefined;
}

interface NewAgent {
  name: string;
  bases: AskedBase[];
  mayPropose: boolean;
  limits?: Partial<AgentLimits> | undefined;
}

type AgentContext = Pick<Context, "config" | "db" | "secrets" | "log"> & { actor: Actor };

/**
 * Creates an agent with its SQL users, and grants them what it may read.
 *
 * @param asked.userId the member who creates it: its token stops working when they leave. Null: the operator
 * @returns the agent and its token, which cannot be read again later
 * @throws BasetideError `invalid_request`, `already_exists`, `not_found` for a base of another account; `conflict` for a
 *   base in a database that the customer hosts
 */
export async function createAgent(
  ctx: AgentContext,
  accountId: string,
  asked: NewAgent & { userId?: string | null },
): Promise<{ agent: Agent; token: string }> {
  const agent = await createAgentWithoutToken(ctx, accountId, asked);
  const token = await tokenFor(ctx, agent, asked.userId);
  return { agent: await getAgent(ctx.db, accountId, agent.id), token };
}

/** Creates an agent as which only clients act that members connect. @throws BasetideError, as `createAgent` */
export async function createAgentWithoutToken(
  ctx: AgentContext,
  accountId: string,
  asked: NewAgent,
): Promise<Agent> {
  const name = checkedName(asked.name, "An agent");
  const rows = await resolveBases(ctx, accountId, asked.bases);
  const id = newId("agent");
  try {
    await ctx.db.begin(async (tx) => {
      await tx`
        insert into agents (id, account_id, name, may_propose, limits, created_by)
        values (${id}, ${accountId}, ${name}, ${asked.mayPropose}, ${limitsParameter(asked.limits)}::text::jsonb,
          ${ctx.actor.name})`;
      for (const row of rows) await insertReads(tx, id, row);
      const details = { name, bases: rows.length, may_propose: asked.mayPropose };
      await recordChange(tx, ctx.actor, { accountId, action: "agent.created", subject: id, details });
    });
  } catch (error) {
    throw asNameTaken(error, name);
  }
  const agent = await getAgent(ctx.db, accountId, id);
  try {
    await grantEverywhere(ctx, agent, (error) => {
      throw error;
    });
  } catch (error) {
    await revokeAgent(ctx, agent).catch((revokeError: unknown) =>
      ctx.log.warn({ error: revokeError, agentId: id }, "revoking a failed new agent failed"),
    );
    throw error;
  }
  return agent;
}

/**
 * Changes an agent. What it may no longer read it cannot read from the next call on, also if its database cannot be
 * reached now: each call grants and revokes first.
 *
 * @param asked.bases all that it may read
 * @throws BasetideError as `createAgent`
 */
export async function updateAgent(
  ctx: AgentContext,
  agent: Agent,
  asked: { [Part in keyof NewAgent]?: NewAgent[Part] | undefined },
): Promise<Agent> {
  const { id, accountId } = agent;
  const name = asked.name === undefined ? agent.name : checkedName(asked.name, "An agent");
  const { mayPropose = agent.mayPropose } = asked;
  const limits = { ...agent.limits, ...asked.limits };
  const rows = asked.bases && (await resolveBases(ctx, accountId, asked.bases, agent.bases));
  const kept = rows?.map(({ baseId }) => baseId) ?? [];
  try {
    await ctx.db.begin(async (tx) => {
      await tx`
        update agents set name = ${name}, may_propose = ${mayPropose}, limits = ${limitsParameter(limits)}::text::jsonb
        where id = ${id}`;
      await setAgentScopes(tx, id, scopesOf({ mayPropose }));
      if (rows) {
        await tx`delete from agent_bases where agent_id = ${id} and base_id <> all (${kept}::text[])`;
        for (const row of rows) await insertReads(tx, id, row);
      }
      const details = { name, bases: rows?.length ?? agent.bases.length, may_propose: mayPropose };
      await recordChange(tx, ctx.actor, { accountId, action: "agent.changed", subject: id, details });
    });
  } catch (error) {
    throw asNameTaken(error, name);
  }
  const changed = await getAgent(ctx.db, accountId, id);
  if (rows) {
    await grantEverywhere(ctx, changed, (error) => {
      if (!isBasetideError(error, "replica_unavailable") && !isBasetideError(error, "replica_busy"))
        throw error;
      // The next call grants first.
      ctx.log.warn({ error, agentId: id }, "an agent's grants could not be changed yet");
    });
    await revokeUnusedAgentUsers(ctx, { agentId: id });
  }
  return changed;
}

/** In each database of which the agent reads a base. */
async function grantEverywhere(
  ctx: AgentContext,
  agent: Agent,
  failed: (error: unknown) => void,
): Promise<void> {
  const bases = await getBases(
    ctx.db,
    agent.accountId,
    agent.bases.map(({ baseId }) => baseId),
  );
  for (const databaseId of new Set(bases.map(({ database }) => database.id)))
    await grantAgent(ctx, agent, await getDatabase(ctx.db, databaseId)).catch(failed);
}

async function insertReads(
  tx: TransactionSql,
  agentId: string,
  { baseId, tables, hidden, hasPrivate }: Omit<AgentBase, "name">,
): Promise<void> {
  await tx`
    insert into agent_bases (agent_id, base_id, tables, hidden, has_private)
    values (${agentId}, ${baseId}, ${tables}, ${hidden}, ${hasPrivate})
    on conflict (agent_id, base_id) do update
      set tables = excluded.tables, hidden = excluded.hidden, has_private = excluded.has_private`;
}

/** Only what differs from the usual limits. @throws BasetideError `invalid_request` */
function limitsParameter(asked: Partial<AgentLimits> = {}): string {
  const all = { ...usualLimits, ...asked };
  for (const name of Object.keys(usualLimits) as (keyof AgentLimits)[]) {
    const [value, highest] = [all[name], highestLimits[name]];
    const least = name === "proposals" ? 0 : 1;
    if (!Number.isInteger(value) || value < least || value > highest)
      throw invalid(`The limit ${name} must be ${least} to ${highest}`);
  }
  const own = Object.entries(all).filter(([name, value]) => value !== usualLimits[name as keyof AgentLimits]);
  return jsonParameter(Object.fromEntries(own));
}

function asNameTaken(error: unknown, name: string): unknown {
  if (!isUniqueViolation(error, "agents_name_key")) return error;
  return new BasetideError("already_exists", `An agent named "${name}" already exists`);
}

/** Gives the agent a new token, which ends with the membership of `userId`; the old one no longer works. @returns it */
export async function renewAgentToken(
  ctx: AgentContext,
  agent: Agent,
  userId?: string | null,
): Promise<string> {
  const token = await tokenFor(ctx, agent, userId);
  const { accountId, id, name } = agent;
  await ctx.db.begin((tx) =>
    recordChange(tx, ctx.actor, { accountId, action: "agent.token_renewed", subject: id, details: { name } }),
  );
  return token;
}

function tokenFor({ db }: AgentContext, agent: Agent, userId?: string | null): Promise<string> {
  return createAgentToken(db, agent, { scopes: scopesOf(agent), userId });
}

function scopesOf({ mayPropose }: Pick<Agent, "mayPropose">): AgentScope[] {
  return mayPropose ? ["agent:read", "agent:propose"] : ["agent:read"];
}

/** Ends its token, and the clients that act as it. */
async function endAccess(db: Db | TransactionSql, agentId: string): Promise<void> {
  await db`delete from api_tokens where agent_id = ${agentId}`;
  for (const table of ["oauth_consents", "oauth_access_tokens", "oauth_refresh_tokens"])
    await db`delete from ${db(table)} where reference_id = ${agentId}`;
}

/**
 * Revokes an agent: its token, the clients that act as it and what it may read at once, so that no call grants it anything
 * from then on; then its SQL users; and then deletes it. Proposals that it made stay.
 *
 * @throws BasetideError `replica_unavailable`, `replica_busy` if SQL users are left. Revoking it again completes it
 */
export async function revokeAgent(ctx: AgentContext, agent: Agent): Promise<void> {
  const { id, accountId, name } = agent;
  // At once: a call that makes its SQL user may hold the agent for long.
  await endAccess(ctx.db, id);
  await ctx.db.begin(async (tx) => {
    await tx`select from agents where id = ${id} for update`;
    await endAccess(tx, id);
    await tx`delete from agent_bases where agent_id = ${id}`;
  });
  await revokeAgentUsers(ctx, id);
  try {
    await ctx.db.begin(async (tx) => {
      const { count } = await tx`delete from agents where id = ${id}`;
      if (count === 0) return;
      await recordChange(tx, ctx.actor, {
        accountId,
        action: "agent.revoked",
        subject: id,
        details: { name },
      });
    });
  } catch (error) {
    if (!isForeignKeyViolation(error, "sql_users_agent_fkey")) throw error;
    // Another member gave it a base meanwhile, and a call its SQL user.
    await revokeAgent(ctx, agent);
  }
}

/** The account's agents, by name. */
export function listAgents(db: Db, accountId: string): Promise<Agent[]> {
  return selectAgents(db, db`g.account_id = ${accountId}`);
}

/** @throws BasetideError `not_found`, also if it belongs to another account */
export async function getAgent(db: Db, accountId: string, id: string): Promise<Agent> {
  const find = () => selectAgents(db, db`g.account_id = ${accountId} and g.id = ${id}`);
  return rowById("agent", id, find, "This agent does not exist");
}

/** @throws BasetideError `forbidden` if the token is none of an agent's, or its member may no longer create any */
export async function agentOfToken(db: Db, { id, token }: Bearer): Promise<Agent> {
  if (token.agentId !== null) {
    if (!can(token.role, "credentials"))
      throw new BasetideError("forbidden", denial(token.role, "credentials"));
    return getAgent(db, id, token.agentId);
  }
  throw new BasetideError(
    "forbidden",
    "This token belongs to no agent. Create an agent in the console under Agents, and use its token here",
  );
}

async function selectAgents(db: Db, where: ReturnType<Db>): Promise<Agent[]> {
  const rows = await db<(Omit<Agent, "limits"> & { limits: Partial<AgentLimits> })[]>`
    select g.id, g.account_id as "accountId", g.name, g.may_propose as "mayPropose", g.limits, g.created_by as "createdBy",
      g.created_at as "createdAt", t.id is not null as "hasToken", t.last_used_at as "lastUsedAt",
      (select coalesce(jsonb_agg(jsonb_build_object('baseId', b.id, 'name', coalesce(nullif(b.name, ''), b.source_base_id),
          'tables', a.tables, 'hidden', a.hidden, 'hasPrivate', a.has_private) order by b.name, b.id), '[]')
        from agent_bases as a join bases as b on b.id = a.base_id
        where a.agent_id = g.id and b.state <> 'deleting') as bases,
      (select coalesce(jsonb_agg(jsonb_build_object('id', r.id, 'baseId', r.base_id, 'tableId', r.table_id,
          'fields', r.fields, 'updatesPerHour', r.updates_per_hour, 'createdBy', r.created_by) order by r.created_at, r.id), '[]')
        from agent_rules as r where r.agent_id = g.id) as rules
    from agents as g left join api_tokens as t on t.agent_id = g.id
    where ${where} order by lower(g.name), g.id`;
  return rows.map((row) => ({ ...row, limits: { ...usualLimits, ...row.limits } }));
}

/** Finds the tables and fields by what people call them. */
async function resolveBases(
  ctx: AgentContext,
  accountId: string,
  asked: AskedBase[],
  before: AgentBase[] = [],
): Promise<Omit<AgentBase, "name">[]> {
  if (asked.length === 0) throw invalid("Choose at least one base for the agent");
  const resolved: Omit<AgentBase, "name">[] = [];
  for (const { baseId, tables, hidden = [], hasPrivate = false } of asked) {
    if (resolved.some((one) => one.baseId === baseId)) throw invalid(`The base ${baseId} is named twice`);
    const base = await getBase(ctx.db, baseId, accountId);
    if ((await getDatabase(ctx.db, base.database.id)).clusterId === null)
      throw conflict(
        `You host the database of ${base.name}, and Basetide creates no users there. Agents can read bases in databases that Basetide hosts`,
      );
    const known = tables || hidden.length > 0 ? (await replicaShape(ctx, base)).tables : [];
    // What is not copied at the moment stays as it was.
    const had = before.find((one) => one.baseId === baseId);
    resolved.push({
      baseId,
      tables:
        tables?.map((name) => (had?.tables?.includes(name) ? name : findTable(known, name).tableId)) ?? null,
      hidden: hidden.map((name) => (had?.hidden.includes(name) ? name : findField(known, name))),
      hasPrivate,
    });
  }
  return resolved;
}

export function findTable(tables: TableSpec[], asked: string): TableSpec {
  const found = tables.find((table) => [table.name, table.sourceName, table.tableId].includes(asked));
  if (found) return found;
  const names = tables.map(({ name }) => name).join(", ");
  throw invalid(`There is no table ${asked}. The base has: ${names}`);
}

function findField(tables: TableSpec[], asked: string): string {
  for (const table of tables) {
    const found = table.columns.find((column) =>
      [column.fieldId, `${table.name}.${column.name}`, `${table.sourceName}.${column.sourceName}`].includes(
        asked,
      ),
    );
    if (found) return found.fieldId;
  }
  throw invalid(`There is no field ${asked}. Name it by its id, or as table.column`);
}

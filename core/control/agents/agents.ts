/**
 * Agents: AI clients, each with a token, the bases that it may read, and a SQL user of its own in each of their databases.
 *
 * Its token is of no use for the management API, so that it can approve nothing.
 */
import type { Actor, Context, Db } from "../../context";
import { BasetideError } from "../../errors";
import { isId, newId } from "../../ids";
import { cleanText, isUniqueViolation } from "../../postgres";
import type { TableSpec } from "../../replica";
import { type Bearer, createAgentToken } from "../accounts";
import { recordChange } from "../audit";
import { getBase, replicaShape } from "../bases";
import { getDatabase, revokeAgentUsers } from "../placement";
import { applyReads } from "./reads";

const MAX_NAME_LENGTH = 60;

export interface Agent {
  id: string;
  accountId: string;
  /** Unique in the account, ignoring case. */
  name: string;
  mayPropose: boolean;
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

/** A base that an agent is to read. Tables and fields by their SQL name (`table.column`), the source's name or id. */
export interface AskedBase {
  baseId: string;
  tables?: string[] | null | undefined;
  hidden?: string[] | undefined;
  hasPrivate?: boolean | undefined;
}

type AgentContext = Pick<Context, "config" | "db" | "secrets" | "log"> & { actor: Actor };

/**
 * Creates an agent with its SQL users, and grants them what it may read.
 *
 * @param asked.userId the member who creates it: its token stops working when they leave
 * @returns the agent and its token, which cannot be read again later
 * @throws BasetideError `invalid_request`, `already_exists`, `not_found` for a base of another account; `conflict` for a
 *   base in a database that the customer hosts
 */
export async function createAgent(
  ctx: AgentContext,
  accountId: string,
  asked: { name: string; bases: AskedBase[]; mayPropose: boolean; userId?: string | undefined },
): Promise<{ agent: Agent; token: string }> {
  const agent = await createAgentWithoutToken(ctx, accountId, asked);
  const token = await tokenFor(ctx, agent, asked.userId);
  return { agent: await getAgent(ctx.db, accountId, agent.id), token };
}

/** Creates an agent as which only clients act that members connect. @throws BasetideError, as `createAgent` */
export async function createAgentWithoutToken(
  ctx: AgentContext,
  accountId: string,
  asked: { name: string; bases: AskedBase[]; mayPropose: boolean },
): Promise<Agent> {
  const name = checkName(asked.name);
  const rows = await resolveBases(ctx, accountId, asked.bases);
  const id = newId("agent");
  try {
    await ctx.db.begin(async (tx) => {
      await tx`
        insert into agents (id, account_id, name, may_propose, created_by)
        values (${id}, ${accountId}, ${name}, ${asked.mayPropose}, ${ctx.actor.name})`;
      for (const { baseId, tables, hidden, hasPrivate } of rows) {
        await tx`
          insert into agent_bases (agent_id, base_id, tables, hidden, has_private)
          values (${id}, ${baseId}, ${tables}, ${hidden}, ${hasPrivate})`;
      }
      const details = { name, bases: rows.length, may_propose: asked.mayPropose };
      await recordChange(tx, ctx.actor, { accountId, action: "agent.created", subject: id, details });
    });
  } catch (error) {
    if (!isUniqueViolation(error, "agents_name_key")) throw error;
    throw new BasetideError("already_exists", `An agent named "${name}" already exists`);
  }
  const agent = await getAgent(ctx.db, accountId, id);
  try {
    for (const { baseId } of rows) {
      const base = await getBase(ctx.db, baseId, accountId);
      await applyReads(ctx, agent, base, await replicaShape(ctx, base));
    }
  } catch (error) {
    await revokeAgent(ctx, agent).catch((revokeError: unknown) =>
      ctx.log.warn({ error: revokeError, agentId: id }, "revoking a failed new agent failed"),
    );
    throw error;
  }
  return agent;
}

/** Gives the agent a new token; the old one no longer works. @returns the token */
export async function renewAgentToken(ctx: AgentContext, agent: Agent, userId?: string): Promise<string> {
  const token = await tokenFor(ctx, agent, userId);
  const { accountId, id, name } = agent;
  await ctx.db.begin((tx) =>
    recordChange(tx, ctx.actor, { accountId, action: "agent.token_renewed", subject: id, details: { name } }),
  );
  return token;
}

function tokenFor({ db }: AgentContext, agent: Agent, userId?: string): Promise<string> {
  const scopes = agent.mayPropose ? (["agent:read", "agent:propose"] as const) : (["agent:read"] as const);
  return createAgentToken(db, agent, { scopes, userId });
}

/** Revokes its token at once, then drops its SQL users, and then deletes it. Proposals that it made stay. */
export async function revokeAgent(ctx: AgentContext, { id, accountId, name }: Agent): Promise<void> {
  await ctx.db`delete from api_tokens where agent_id = ${id}`;
  await revokeAgentUsers(ctx, id);
  await ctx.db.begin(async (tx) => {
    const { count } = await tx`delete from agents where id = ${id}`;
    if (count === 0) return;
    await recordChange(tx, ctx.actor, { accountId, action: "agent.revoked", subject: id, details: { name } });
  });
}

/** The account's agents, by name. */
export function listAgents(db: Db, accountId: string): Promise<Agent[]> {
  return selectAgents(db, db`g.account_id = ${accountId}`);
}

/** @throws BasetideError `not_found`, also if it belongs to another account */
export async function getAgent(db: Db, accountId: string, id: string): Promise<Agent> {
  const [agent] = isId("agent", id)
    ? await selectAgents(db, db`g.account_id = ${accountId} and g.id = ${id}`)
    : [];
  if (agent) return agent;
  throw new BasetideError("not_found", "This agent does not exist");
}

/** @throws BasetideError `forbidden` if the token is none of an agent's */
export async function agentOfToken(db: Db, { id, token }: Bearer): Promise<Agent> {
  if (token.agentId !== null) return getAgent(db, id, token.agentId);
  throw new BasetideError(
    "forbidden",
    "This token belongs to no agent. Create an agent in the console under Agents, and use its token here",
  );
}

function selectAgents(db: Db, where: ReturnType<Db>): Promise<Agent[]> {
  return db<Agent[]>`
    select g.id, g.account_id as "accountId", g.name, g.may_propose as "mayPropose", g.created_by as "createdBy",
      g.created_at as "createdAt", t.id is not null as "hasToken", t.last_used_at as "lastUsedAt",
      (select coalesce(jsonb_agg(jsonb_build_object('baseId', b.id, 'name', coalesce(nullif(b.name, ''), b.source_base_id),
          'tables', a.tables, 'hidden', a.hidden, 'hasPrivate', a.has_private) order by b.name, b.id), '[]')
        from agent_bases as a join bases as b on b.id = a.base_id
        where a.agent_id = g.id and b.state <> 'deleting') as bases
    from agents as g left join api_tokens as t on t.agent_id = g.id
    where ${where} order by lower(g.name), g.id`;
}

/** Finds the tables and fields by what people call them. */
async function resolveBases(
  ctx: AgentContext,
  accountId: string,
  asked: AskedBase[],
): Promise<Omit<AgentBase, "name">[]> {
  if (asked.length === 0)
    throw new BasetideError("invalid_request", "Choose at least one base for the agent");
  const resolved: Omit<AgentBase, "name">[] = [];
  for (const { baseId, tables, hidden = [], hasPrivate = false } of asked) {
    if (resolved.some((one) => one.baseId === baseId))
      throw new BasetideError("invalid_request", `The base ${baseId} is named twice`);
    const base = await getBase(ctx.db, baseId, accountId);
    if ((await getDatabase(ctx.db, base.database.id)).clusterId === null)
      throw new BasetideError(
        "conflict",
        `You host the database of ${base.name}, and Basetide creates no users there. Agents can read bases in databases that Basetide hosts`,
      );
    const known = tables || hidden.length > 0 ? (await replicaShape(ctx, base)).tables : [];
    resolved.push({
      baseId,
      tables: tables?.map((name) => findTable(known, name).tableId) ?? null,
      hidden: hidden.map((name) => findField(known, name)),
      hasPrivate,
    });
  }
  return resolved;
}

function findTable(tables: TableSpec[], asked: string): TableSpec {
  const found = tables.find((table) => [table.name, table.sourceName, table.tableId].includes(asked));
  if (found) return found;
  const names = tables.map(({ name }) => name).join(", ");
  throw new BasetideError("invalid_request", `There is no table ${asked}. The base has: ${names}`);
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
  throw new BasetideError(
    "invalid_request",
    `There is no field ${asked}. Name it by its id, or as table.column`,
  );
}

function checkName(text: string): string {
  const name = cleanText(text).replace(/\s+/g, " ").trim();
  if (name !== "" && name.length <= MAX_NAME_LENGTH) return name;
  throw new BasetideError("invalid_request", `An agent's name must have 1 to ${MAX_NAME_LENGTH} characters`);
}

/** API routes for agents: AI clients that read bases by SQL and propose changes at `/mcp`. */
import { Elysia } from "elysia";
import {
  type Agent,
  createAgent,
  getAgent,
  listAgentCalls,
  listAgents,
  renewAgentToken,
  revokeAgent,
} from "../../../core/control/agents";
import type { ManagementContext } from "../../../core/control/bases";
import { bearerAuth } from "../bearer-auth";
import { MCP_PATH } from "../mcp/path";
import * as schemas from "../schemas/agents";
import { raises } from "../schemas/parts";

const CALLS = 100;

export function agentRoutes(ctx: ManagementContext) {
  const { db } = ctx;
  const url = new URL(MCP_PATH, ctx.config.consoleUrl).toString();
  return new Elysia({ prefix: "/api/v1/agents", tags: ["Agents"] })
    .use(bearerAuth(db))
    .get("", async ({ account }) => (await listAgents(db, account.id)).map(toJson), {
      response: { 200: schemas.agents },
      detail: { summary: "Agents of the account" },
    })
    .post(
      "",
      async ({ account, actor, body, set }) => {
        const bases = body.bases.map(({ base_id, tables, hidden_fields, private_fields }) => ({
          baseId: base_id,
          tables,
          hidden: hidden_fields,
          hasPrivate: private_fields,
        }));
        const asked = { name: body.name, bases, mayPropose: body.may_propose ?? false };
        const { agent, token } = await createAgent({ ...ctx, actor }, account.id, asked);
        set.status = 201;
        return { agent: toJson(agent), token, url };
      },
      {
        body: schemas.newAgent,
        response: { 201: schemas.createdAgent },
        detail: {
          summary: "Create an agent",
          description:
            "It gets a SQL user of its own in the database of each base, which may read what is listed here and nothing else. Rejected (409) for a base in a database that you host.",
          ...raises("already_exists", "conflict"),
        },
      },
    )
    .get("/:id", async ({ account, params }) => toJson(await getAgent(db, account.id, params.id)), {
      params: schemas.agentParams,
      response: { 200: schemas.agent },
      detail: { summary: "One agent" },
    })
    .get(
      "/:id/calls",
      async ({ account, params }) => {
        const { id } = await getAgent(db, account.id, params.id);
        return (await listAgentCalls(db, id, CALLS)).map(
          ({ calledAt, tool, baseId, ms, rows, errorCode }) => ({
            called_at: calledAt.toISOString(),
            tool,
            base_id: baseId,
            ms,
            rows,
            error_code: errorCode,
          }),
        );
      },
      {
        params: schemas.agentParams,
        response: { 200: schemas.agentCalls },
        detail: { summary: "The latest calls of an agent", description: "100 at most, kept for 30 days." },
      },
    )
    .post(
      "/:id/token",
      async ({ account, actor, params }) => {
        const agent = await getAgent(db, account.id, params.id);
        return { token: await renewAgentToken({ ...ctx, actor }, agent), url };
      },
      {
        params: schemas.agentParams,
        response: { 200: schemas.renewedToken },
        detail: { summary: "Give an agent a new token. The old one no longer works" },
      },
    )
    .delete(
      "/:id",
      async ({ account, actor, params }) => {
        await revokeAgent({ ...ctx, actor }, await getAgent(db, account.id, params.id));
        return new Response(null, { status: 204 });
      },
      {
        params: schemas.agentParams,
        detail: {
          summary: "Revoke an agent",
          description: "Its token stops working at once, and its SQL users are dropped.",
          responses: { 204: { description: "Revoked" } },
        },
      },
    );
}

function toJson({ id, name, mayPropose, createdBy, createdAt, hasToken, lastUsedAt, bases }: Agent) {
  return {
    id,
    name,
    may_propose: mayPropose,
    created_by: createdBy,
    created_at: createdAt.toISOString(),
    has_token: hasToken,
    last_used_at: lastUsedAt?.toISOString() ?? null,
    bases: bases.map((base) => ({
      base_id: base.baseId,
      name: base.name,
      tables: base.tables,
      hidden_fields: base.hidden,
      private_fields: base.hasPrivate,
    })),
  };
}

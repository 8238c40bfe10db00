/**
 * `POST /mcp`: the Model Context Protocol for agents. Checks who asks, and loads the protocol's library at the first call
 * of an agent, so that a console without agents pays nothing for it.
 *
 * A request is of an agent's token only: no cookie is read, so no page of another site can use a member's session.
 */
import type { McpHttpHandler } from "@modelcontextprotocol/server";
import { Elysia } from "elysia";
import { agentScopes, authenticate } from "../../../core/control/accounts";
import { agentOfConnection, agentOfToken, isConnectionToken } from "../../../core/control/agents";
import type { ManagementContext } from "../../../core/control/bases";
import { BasetideError, isBasetideError } from "../../../core/errors";
import { answerError } from "../../../core/http/service";
import { countCall } from "../api-limit";
import { mcpResource, RESOURCE_METADATA_PATH } from "../auth/oauth";
import type { AgentCaller } from "./caller";
import { MCP_PATH } from "./path";

/** This machine itself, by names that no other site can have. */
const LOOPBACK = /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/i;

export function mcpRoutes(ctx: ManagementContext) {
  let loading: Promise<McpHttpHandler> | undefined;
  const load = () => {
    loading ??= import("./server").then(({ mcpHandler }) => mcpHandler(ctx));
    return loading;
  };
  const answer = async (request: Request): Promise<Response> => {
    refuseRebinding(request, ctx.config.consoleUrl);
    const { clientId, ...caller } = await callerOf(ctx, request.headers.get("authorization"));
    countCall(request);
    const authInfo = { token: "", clientId, scopes: [...caller.scopes], extra: { ...caller } };
    // Received here, so that one that is too large or too slow is answered with our code.
    const received = request.body ? new Request(request, { body: await request.arrayBuffer() }) : request;
    return (await load()).fetch(received, { authInfo });
  };
  const route = async ({ request }: { request: Request }) => {
    try {
      return await answer(request);
    } catch (error) {
      const refusal = answerError(ctx.log, request, error, "UNKNOWN");
      if (isBasetideError(error, "unauthorized"))
        refusal.headers.set("www-authenticate", challenge(request, ctx.config.consoleUrl));
      return refusal;
    }
  };
  const options = { parse: "none", detail: { hide: true } } as const;
  return new Elysia({ name: "mcp" })
    .post(MCP_PATH, route, options)
    .get(MCP_PATH, route, options)
    .delete(MCP_PATH, route, options);
}

/** The agent of an API token, or that of a client that a member has connected. */
async function callerOf(
  { db, config }: ManagementContext,
  authorization: string | null,
): Promise<AgentCaller & { clientId: string }> {
  if (isConnectionToken(authorization))
    return agentOfConnection(db, authorization, mcpResource(config.consoleUrl));
  const bearer = await authenticate(db, authorization);
  const agent = await agentOfToken(db, bearer);
  return { agent, scopes: bearer.token.scopes, clientId: bearer.token.id };
}

/** Tells a client without a valid token where to sign in (RFC 9728). */
function challenge(request: Request, consoleUrl: string): string {
  const about = [
    ...(request.headers.has("authorization") ? [`error="invalid_token"`] : []),
    `resource_metadata="${new URL(RESOURCE_METADATA_PATH, consoleUrl)}"`,
    `scope="${agentScopes.join(" ")}"`,
  ];
  return `Bearer ${about.join(", ")}`;
}

/**
 * A browser sends the name that a page was loaded from as `Host`, and the page's own origin as `Origin`: a foreign name
 * that leads to this machine has neither of ours.
 *
 * @throws BasetideError `forbidden`
 */
function refuseRebinding(request: Request, consoleUrl: string): void {
  const own = new URL(consoleUrl);
  const isOwn = (host: string) => host === own.host || LOOPBACK.test(host);
  const host = request.headers.get("host") ?? new URL(request.url).host;
  if (!isOwn(host))
    throw new BasetideError(
      "forbidden",
      `The Host header is not that of CONSOLE_URL (${own.host}). Use that address; a reverse proxy must pass on the header`,
    );
  const origin = request.headers.get("origin");
  if (origin === null || isOwn(URL.parse(origin)?.host ?? "")) return;
  throw new BasetideError("forbidden", "Pages of other sites may not call this address");
}

/**
 * `POST /mcp`: the Model Context Protocol for agents. Checks who asks, and loads the protocol's library at the first call
 * of an agent, so that a console without agents pays nothing for it.
 *
 * A request is of an agent's token only: no cookie is read, so no page of another site can use a member's session.
 */
import type { McpHttpHandler } from "@modelcontextprotocol/server";
import { Elysia } from "elysia";
import { authenticate } from "../../../core/control/accounts";
import { agentOfToken } from "../../../core/control/agents";
import type { ManagementContext } from "../../../core/control/bases";
import { BasetideError, isBasetideError } from "../../../core/errors";
import { answerError } from "../../../core/http/service";
import { countCall } from "../api-limit";
import type { AgentCaller } from "./caller";
import { MCP_PATH } from "./path";

/** A proposal of 500 operations. */
const MAX_BODY_BYTES = 2 * 1024 * 1024;
/** This machine itself, by names that no other site can have. */
const LOOPBACK = /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/i;

export function mcpRoutes(ctx: ManagementContext) {
  let loading: Promise<McpHttpHandler> | undefined;
  const load = () => {
    loading ??= import("./server").then(({ mcpHandler }) => mcpHandler(ctx, MAX_BODY_BYTES));
    return loading;
  };
  const answer = async (request: Request): Promise<Response> => {
    refuseRebinding(request, ctx.config.consoleUrl);
    const bearer = await authenticate(ctx.db, request.headers.get("authorization"));
    countCall(request);
    const agent = await agentOfToken(ctx.db, bearer);
    const extra: AgentCaller = { agent, scopes: bearer.token.scopes };
    const { id: clientId, scopes } = bearer.token;
    return (await load()).fetch(request, { authInfo: { token: "", clientId, scopes, extra: { ...extra } } });
  };
  const route = async ({ request }: { request: Request }) => {
    try {
      return await answer(request);
    } catch (error) {
      const refusal = answerError(ctx.log, request, error, "UNKNOWN");
      if (isBasetideError(error, "unauthorized")) refusal.headers.set("www-authenticate", "Bearer");
      return refusal;
    }
  };
  const options = { parse: "none", detail: { hide: true } } as const;
  return new Elysia({ name: "mcp" })
    .post(MCP_PATH, route, options)
    .get(MCP_PATH, route, options)
    .delete(MCP_PATH, route, options);
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

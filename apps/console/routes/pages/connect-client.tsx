/**
 * The page on which a member connects a client to an agent: who asks, as what it would act, and what it could then do.
 *
 * The page's form may lead to the client's own address, and to no other.
 */
import { Elysia } from "elysia";
import { type AgentScope, agentScopes } from "../../../../core/control/accounts";
import {
  type Agent,
  createAgentWithoutToken,
  getAgent,
  grantedScopes,
  listAgents,
  recordConnected,
  revokeAgent,
  sqlUsersOfAgents,
} from "../../../../core/control/agents";
import { listBases } from "../../../../core/control/bases";
import { cutText } from "../../../../core/cut-text";
import { BasetideError } from "../../../../core/errors";
import { RateWindow } from "../../../../core/http";
import { visibleLines } from "../../../../core/visible-text";
import { ConnectClient, type RedirectTarget } from "../../../../views/account/connect-client";
import { ErrorView } from "../../../../views/error";
import { securityHeaders } from "../../../../views/render";
import { refuse } from "../../api-limit";
import { AUTHORIZE_PATH, type Begun } from "../../auth/oauth";
import { formResultOf } from "../../form-error";
import { type ConsoleContext, formText, goTo, type PageCall, signedIn } from "../../page-kit";

/** The value of the choice to create one. */
const NEW_AGENT = "new";
const MOST_NAME = 60;
/** Of one member, who could otherwise use up what all members may have read. */
const BEGINS_A_MINUTE = 30;
const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;
/** Hosts and schemes that cannot be taken for another part of a policy. */
const SOURCE = /^([a-z][a-z0-9+.-]*:|https?:\/\/(\[[0-9a-f:]+\]|[a-z0-9.-]+)(:\d+)?)$/;

type Asked = Extract<Begun, { kind: "ask" }>;

export function connectClientPages(ctx: ConsoleContext) {
  const { auth, db } = ctx;
  const ask = async (
    { page, account }: PageCall,
    asked: Asked,
    failed: { message: string; form: ConnectForm } | null = null,
  ) => {
    const accountId = account.id;
    const [agents, roles, bases] = await Promise.all([
      listAgents(db, accountId),
      sqlUsersOfAgents(db, accountId),
      listBases(db, accountId),
    ]);
    const { client, query } = asked;
    const props = {
      name: shortened(client.name),
      clientHost: new URL(client.clientId).host,
      redirect: targetOf(asked.redirectUri),
      asksToPropose: asked.scopes.includes("agent:propose"),
      query,
      account: account.email,
      agents: agents.map((agent) => ({ ...agent, roles: roles.get(agent.id) ?? [] })),
      bases: bases.map(({ id, name, sourceBaseId }) => ({ id, name: name || sourceBaseId })),
      chosen: failed?.form ?? {
        agent: agents[0]?.id ?? NEW_AGENT,
        name: shortened(client.name),
        bases: bases.length === 1 ? bases.map(({ id }) => id) : [],
        mayPropose: true,
      },
      error: failed?.message,
    };
    const headers = { "content-security-policy": policyFor(asked.redirectUri) };
    return page(
      { title: `Connect ${props.name}`, width: "narrow", status: failed ? 422 : 200, headers },
      <ConnectClient {...props} />,
    );
  };
  const begins = new RateWindow(BEGINS_A_MINUTE, 60_000);
  const begin = ({ currentUser }: PageCall, request: Request) => {
    refuse(begins.take(currentUser.userId), "requests");
    return auth.oauth.begin(request);
  };
  const refused = ({ page }: PageCall, { code, reason }: Refused) =>
    page(
      { title: "This program cannot be connected", width: "narrow", status: 400 },
      <ErrorView
        title="This program cannot be connected"
        message={`It sent a request that Basetide refuses: ${reason || "unknown error"} (${code}).`}
        requestId={undefined}
      />,
    );
  /** The agent that the form names, or a new one. */
  const chosen = async (
    { account: { id: accountId }, by }: PageCall,
    form: ConnectForm,
  ): Promise<{ agent: Agent; isNew: boolean }> => {
    if (form.agent !== NEW_AGENT) return { agent: await getAgent(db, accountId, form.agent), isNew: false };
    const bases = form.bases.map((baseId) => ({ baseId }));
    const wanted = { name: form.name, bases, mayPropose: form.mayPropose };
    return { agent: await createAgentWithoutToken(by, accountId, wanted), isNew: true };
  };
  return new Elysia({ detail: { hide: true } })
    .use(signedIn(ctx))
    .get(AUTHORIZE_PATH, async (call) => {
      const { request } = call;
      const begun = await begin(call, request);
      if (begun.kind === "redirect") return goTo(request, begun.url);
      return begun.kind === "ask" ? ask(call, begun) : refused(call, begun);
    })
    .post(AUTHORIZE_PATH, async (call) => {
      const { request, by, body } = call;
      const form = formOf(body);
      if (!form.isAllowed) {
        const url = await auth.oauth.decide(request, { query: form.query, agentId: "", scopes: null });
        return goTo(request, url);
      }
      const { failed, value: next } = await formResultOf(async () => {
        const { agent, isNew } = await chosen(call, form);
        const scopes = grantedScopes(agent, scopesOf(form));
        let url = "";
        try {
          url = await auth.oauth.decide(request, { query: form.query, agentId: agent.id, scopes });
        } finally {
          // It is for this client alone.
          if (isNew && !hasCode(url)) await revokeAgent(by, agent);
        }
        if (!hasCode(url)) return url;
        const clientId = new URLSearchParams(form.query).get("client_id") ?? "";
        await recordConnected(db, by.actor, agent, { clientId, scopes });
        return url;
      });
      if (!failed) return goTo(request, next);
      // The request itself, shown again with what is wrong in the form.
      const again = new Request(new URL(`${AUTHORIZE_PATH}?${form.query}`, request.url), {
        headers: request.headers,
      });
      const begun = await begin(call, again);
      if (begun.kind !== "ask") throw new BasetideError(failed.code, failed.message);
      return ask(call, begun, { message: failed.message, form });
    });
}

/** Otherwise the client is told what was wrong with its request. */
function hasCode(url: string): boolean {
  return URL.parse(url)?.searchParams.has("code") ?? false;
}

type Refused = Extract<Begun, { kind: "refused" }>;

interface ConnectForm {
  isAllowed: boolean;
  query: string;
  agent: string;
  name: string;
  bases: string[];
  mayPropose: boolean;
}

function formOf(body: unknown): ConnectForm {
  const bases = (body as Record<string, unknown> | null | undefined)?.base ?? [];
  return {
    isAllowed: formText(body, "decision") === "allow",
    query: formText(body, "query"),
    agent: formText(body, "agent"),
    name: formText(body, "name"),
    bases: [bases].flat().filter((one): one is string => typeof one === "string"),
    mayPropose: formText(body, "propose") === "on",
  };
}

/** What the client has asked for, and the member agrees to. */
function scopesOf({ mayPropose, query }: ConnectForm): AgentScope[] {
  const asked = new URLSearchParams(query).get("scope")?.split(" ") ?? [];
  return agentScopes.filter((scope) => asked.includes(scope) && (scope !== "agent:propose" || mayPropose));
}

function shortened(name: string): string {
  const text = visibleLines(name).join(" ").trim();
  return text.length <= MOST_NAME ? text : `${cutText(text, MOST_NAME - 1)}…`;
}

function targetOf(redirectUri: string): RedirectTarget {
  const { protocol, hostname, host } = new URL(redirectUri);
  if (LOOPBACK.test(hostname)) return { kind: "loopback", text: host };
  return protocol === "https:" ? { kind: "site", text: host } : { kind: "app", text: protocol };
}

/** Browsers apply `form-action` to where the answer to a form leads, too. */
function policyFor(redirectUri: string): string {
  const { protocol, origin } = new URL(redirectUri);
  const source = /^https?:$/.test(protocol) ? origin : protocol;
  const own = securityHeaders["content-security-policy"]!;
  return SOURCE.test(source) ? own.replace("form-action 'self'", `form-action 'self' ${source}`) : own;
}

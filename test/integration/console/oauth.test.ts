/** Sign-in of agents' clients: a member connects one, its tokens work at `/mcp` alone, and no attack on that succeeds. */
import { randomBytes } from "node:crypto";
import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Agent, getAgent, listAgents, listConnections, revokeAgent } from "../../../core/control/agents";
import { createBase } from "../../../core/control/bases";
import { newId } from "../../../core/ids";
import { type TestConsole, testConsole } from "../../support/console-support";
import { GOOD_KEY } from "../../support/control-support";
import { anyText, fuzz } from "../../support/fuzz";
import { type ClientSite, clientKey, pkce, REDIRECT, startClientSite } from "../../support/oauth-client";

const ORIGIN = "http://localhost:3000";
const RESOURCE = `${ORIGIN}/mcp`;

type Person = Awaited<ReturnType<TestConsole["person"]>>;

let site: ClientSite;
let made: TestConsole;
let owner: Person;
let agent: Agent;
let clientId: string;

beforeAll(async () => {
  site = startClientSite({ "inside.example.com": ["10.1.2.3"], "meta.example.com": ["169.254.169.254"] });
  made = await testConsole({
    network: site.network,
    config: { consoleUrl: ORIGIN, privateDestinations: "loopback" },
  });
  clientId = site.publish("/client.json");
});
/** How often one member may begin is limited. */
beforeEach(async () => {
  owner = await made.person();
  agent = await addAgent(owner, { mayPropose: true });
});
afterAll(async () => {
  await made?.[Symbol.asyncDispose]();
  await site?.[Symbol.asyncDispose]();
});

const db = () => made.control.ctx.db;

async function addAgent(person: Person, { mayPropose = false } = {}): Promise<Agent> {
  const [known] = await db()<{ id: string }[]>`select id from bases where account_id = ${person.accountId}`;
  const base =
    known ??
    (await createBase(made.control.ctx, person.accountId, {
      platform: "airtable",
      apiKey: GOOD_KEY,
      sourceBaseId: "appOne",
    }));
  const id = newId("agent");
  await db()`insert into agents (id, account_id, name, may_propose, created_by)
    values (${id}, ${person.accountId}, ${id}, ${mayPropose}, ${person.email})`;
  await db()`insert into agent_bases (agent_id, base_id) values (${id}, ${base.id})`;
  return getAgent(db(), person.accountId, id);
}

/** What a program sends. */
const send = (path: string, init: RequestInit = {}) => made.app.handle(new Request(`${ORIGIN}${path}`, init));

async function post(path: string, form: Record<string, string>) {
  const response = await send(path, {
    method: "POST",
    headers: { "content-type": "application/x-www-form-urlencoded" },
    body: new URLSearchParams(form).toString(),
  });
  const text = await response.text();
  return { status: response.status, body: text === "" ? null : JSON.parse(text) };
}

/** A call of a tool. */
async function callTool(token: string | null, name = "list_bases", args: Record<string, unknown> = {}) {
  const response = await send("/mcp", {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": "2025-11-25",
      host: "localhost:3000",
      ...(token !== null && { authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args } }),
  });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

interface Asked {
  client?: string;
  redirect?: string;
  resource?: string | null;
  scope?: string | null;
  state?: string;
  challenge?: string | null;
  method?: string;
  more?: Record<string, string>;
}

function authorizePath(asked: Asked = {}): string {
  const {
    client = clientId,
    redirect = REDIRECT,
    resource = RESOURCE,
    scope = "agent:read agent:propose",
  } = asked;
  const { challenge = pkce().challenge, method = "S256", state = "xyz", more = {} } = asked;
  const query = new URLSearchParams({
    response_type: "code",
    client_id: client,
    redirect_uri: redirect,
    state,
  });
  if (resource !== null) query.set("resource", resource);
  if (scope !== null) query.set("scope", scope);
  if (challenge !== null) {
    query.set("code_challenge", challenge);
    query.set("code_challenge_method", method);
  }
  for (const [name, value] of Object.entries(more)) query.set(name, value);
  return `/oauth2/authorize?${query}`;
}

const unescaped = (text: string) =>
  text.replaceAll("&quot;", '"').replaceAll("&lt;", "<").replaceAll("&amp;", "&");

/** Opens the page that asks for consent; returns what its form has signed. */
async function open(person: Person, asked: Asked = {}) {
  const page = await person.get(authorizePath(asked));
  const query = /name="query" value="([^"]*)"/.exec(page.text)?.[1];
  return { page, query: query === undefined ? undefined : unescaped(query) };
}

async function consent(person: Person, asked: Asked, form: Record<string, string> = {}) {
  const { query = "" } = await open(person, asked);
  const answer = await person.post("/oauth2/authorize", {
    query,
    agent: agent.id,
    propose: "on",
    decision: "allow",
    ...form,
  });
  return { answer, location: answer.location ? new URL(answer.location, ORIGIN) : null };
}

interface Tokens {
  access_token: string;
  refresh_token: string;
  expires_in: number;
  token_type: string;
  scope: string;
}

/** The whole sign-in. */
async function connect(person = owner, asked: Asked = {}, form: Record<string, string> = {}) {
  const { verifier, challenge } = pkce();
  const { location } = await consent(person, { ...asked, challenge }, form);
  const code = location?.searchParams.get("code") ?? "";
  const exchange = {
    grant_type: "authorization_code",
    client_id: asked.client ?? clientId,
    redirect_uri: asked.redirect ?? REDIRECT,
    code_verifier: verifier,
    code,
  };
  const { status, body } = await post("/oauth2/token", exchange);
  return { status, body, tokens: body as Tokens, exchange };
}

const refresh = (token: string, more: Record<string, string> = {}) =>
  post("/oauth2/token", { grant_type: "refresh_token", client_id: clientId, refresh_token: token, ...more });

describe("the sign-in of a client", () => {
  test("begins at /mcp, which says where to sign in and how", async () => {
    const refused = await callTool(null);
    expect(refused.status).toBe(401);
    const challenge = refused.headers.get("www-authenticate")!;
    expect(challenge).toMatch(
      /^Bearer resource_metadata="http:\/\/localhost:3000\/\.well-known\/[^"]+", scope=/,
    );
    const { pathname } = new URL(/resource_metadata="([^"]+)"/.exec(challenge)![1]!);
    expect(await (await send(pathname)).json()).toMatchObject({
      resource: RESOURCE,
      authorization_servers: [ORIGIN],
      scopes_supported: ["agent:read", "agent:propose"],
      bearer_methods_supported: ["header"],
    });
    const server = await (await send("/.well-known/oauth-authorization-server")).json();
    expect(server).toMatchObject({
      issuer: ORIGIN,
      authorization_endpoint: `${ORIGIN}/oauth2/authorize`,
      token_endpoint: `${ORIGIN}/oauth2/token`,
      revocation_endpoint: `${ORIGIN}/oauth2/revoke`,
      code_challenge_methods_supported: ["S256"],
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      client_id_metadata_document_supported: true,
      authorization_response_iss_parameter_supported: true,
    });
    expect(server).not.toHaveProperty("registration_endpoint");
    expect(server).not.toHaveProperty("introspection_endpoint");
    expect((await callTool("bta_unknown")).headers.get("www-authenticate")).toContain(
      'error="invalid_token"',
    );
  });

  test("leads through sign-in and consent to tokens, a call, their renewal and their end", async () => {
    const stranger = await made.client().get(authorizePath());
    expect(stranger.location).toMatch(/^\/sign-in\?next=%2Foauth2%2Fauthorize/);
    const { page } = await open(owner);
    for (const text of ["Connect Test Client?", "client.example.com", "127.0.0.1:7999", agent.name])
      expect(page.text).toContain(text);
    const { tokens, status } = await connect();
    expect([status, tokens]).toEqual([
      200,
      expect.objectContaining({
        token_type: "Bearer",
        expires_in: 900,
        scope: "agent:read agent:propose offline_access",
      }),
    ]);
    expect((await callTool(tokens.access_token)).text).toContain(agent.bases[0]!.baseId);
    const renewed = await refresh(tokens.refresh_token);
    expect(renewed.status).toBe(200);
    expect((await callTool(renewed.body.access_token)).status).toBe(200);
    const [connection] = await listConnections(db(), owner.accountId);
    expect(connection).toMatchObject({
      clientName: "Test Client",
      clientId,
      connectedBy: owner.email,
      scopes: ["agent:read", "agent:propose"],
      isExpired: false,
    });
    const other = await made.person();
    const path = `/account/connections/${connection!.id}/revoke`;
    expect((await other.post(path, {})).status).toBe(404);
    expect((await owner.get("/account/connections")).text).toContain("Test Client");
    expect((await owner.post(path, {})).location).toBe("/account/connections");
    for (const token of [tokens.access_token, renewed.body.access_token])
      expect((await callTool(token)).status).toBe(401);
    expect(await refresh(renewed.body.refresh_token)).toMatchObject({
      status: 400,
      body: { error: "invalid_grant" },
    });
    const actions = await db()`
      select action, details ->> 'client' as client from audit_log
      where subject = ${agent.id} and action like 'agent.%connected' order by id`;
    expect([...actions]).toEqual([
      { action: "agent.connected", client: clientId },
      { action: "agent.disconnected", client: clientId },
    ]);
  });

  test("works without scope and resource, and a client can end its own token", async () => {
    const { tokens } = await connect(owner, { scope: null, resource: null });
    expect((await callTool(tokens.access_token)).status).toBe(200);
    const revoked = await post("/oauth2/revoke", { client_id: clientId, token: tokens.refresh_token });
    expect(revoked.status).toBe(200);
    expect((await callTool(tokens.access_token)).status).toBe(401);
    expect((await refresh(tokens.refresh_token)).status).toBe(400);
  });

  test("ends a token whatever kind a client takes it for, and says what is wrong with a request", async () => {
    const revoke = (form: Record<string, string>) => post("/oauth2/revoke", { client_id: clientId, ...form });
    for (const hint of ["access_token", "refresh_token"]) {
      const { tokens } = await connect();
      for (const token of [tokens.access_token, tokens.refresh_token])
        expect(await revoke({ token, token_type_hint: hint })).toEqual({ status: 200, body: null });
      expect((await callTool(tokens.access_token)).status).toBe(401);
      expect((await refresh(tokens.refresh_token)).status).toBe(400);
    }
    expect(await revoke({ token: "unknown" })).toEqual({ status: 200, body: null });
    expect(await revoke({})).toMatchObject({ status: 400, body: { error: "invalid_request" } });
    const keyed = site.publish("/keyed-revoke.json", clientKey().document);
    await open(owner, { client: keyed });
    expect(await revoke({ client_id: keyed, token: "unknown" })).toMatchObject({
      status: 400,
      body: { error: "invalid_client" },
    });
    const twice = await send("/oauth2/revoke", {
      method: "POST",
      headers: { "content-type": "application/x-www-form-urlencoded" },
      body: new URLSearchParams([
        ["client_id", clientId],
        ["token", "a"],
        ["token", "b"],
      ]).toString(),
    });
    expect([twice.status, await twice.json()]).toMatchObject([400, { error: "invalid_request" }]);
  });

  test("can be cancelled, which the client is told", async () => {
    const { location } = await consent(owner, { state: "s1" }, { decision: "refuse" });
    expect(location!.href).toMatch(/^http:\/\/127\.0\.0\.1:7999\/callback\?error=access_denied/);
    expect(Object.fromEntries(location!.searchParams)).toMatchObject({ state: "s1", iss: ORIGIN });
  });

  test("asks each time, whatever the client wishes, and stores no secret in the clear", async () => {
    const { tokens, exchange } = await connect();
    for (const more of [{ prompt: "none" }, { prompt: "login" }, {}]) {
      const { query } = await open(owner, { more: more as Record<string, string> });
      expect(query).toBeDefined();
    }
    const secrets = [tokens.access_token, tokens.refresh_token, exchange.code].map((one) => one.slice(4));
    const tables = await db()<{ name: string }[]>`
      select relname as name from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r'`;
    for (const { name } of tables) {
      const [found] = await db()`
        select from ${db()(name)} as t where exists (
          select from unnest(${secrets}::text[]) as secret where strpos(t::text, secret) > 0)`;
      expect([name, found]).toEqual([name, undefined]);
    }
  });
});

describe("what a member grants", () => {
  test("an agent that may not propose does not by a client that asks to", async () => {
    const reader = await addAgent(owner);
    const { tokens } = await connect(owner, {}, { agent: reader.id });
    expect(tokens.scope).toBe("agent:read offline_access");
    const unticked = await connect(owner, {}, { propose: "" });
    expect(unticked.tokens.scope).toBe("agent:read offline_access");
    const wider = await refresh(unticked.tokens.refresh_token, { scope: "agent:read agent:propose" });
    expect(wider).toMatchObject({ status: 400, body: { error: "invalid_scope" } });
  });

  test("a new agent stays only if its client is connected", async () => {
    const client = site.publish("/once.json");
    const form = { agent: "new", name: "Fresh", base: agent.bases[0]!.baseId };
    const fresh = async () =>
      (await listAgents(db(), owner.accountId)).filter(({ name }) => name === form.name).length;
    const { query = "" } = await open(owner, { client });
    const send = () => owner.post("/oauth2/authorize", { query, decision: "allow", propose: "on", ...form });
    await db()`update oauth_clients set scopes = '["agent:read"]' where client_id = ${client}`;
    const refused = await send();
    expect([refused.status, refused.location]).toEqual([303, expect.stringContaining("error=invalid_scope")]);
    expect(await fresh()).toBe(0);
    await db()`update oauth_clients set scopes = null where client_id = ${client}`;
    expect((await send()).location).toContain("code=");
    expect(await fresh()).toBe(1);
  });

  test("an agent of another account cannot be chosen, nor its bases read", async () => {
    const other = await made.person();
    const theirs = await addAgent(other);
    const { answer } = await consent(owner, {}, { agent: theirs.id });
    expect([answer.status, answer.text.includes("This agent does not exist")]).toEqual([422, true]);
    const again = unescaped(/name="query" value="([^"]*)"/.exec(answer.text)![1]!);
    const form = { query: again, agent: agent.id, decision: "allow" };
    expect((await owner.post("/oauth2/authorize", form)).location).toContain("?code=");
    const { tokens } = await connect();
    const listed = await callTool(tokens.access_token);
    expect(listed.text).not.toContain(theirs.bases[0]!.baseId);
    const query = { base: theirs.bases[0]!.baseId, sql: "select 1" };
    expect((await callTool(tokens.access_token, "query", query)).text).toContain("not_found");
  });

  test("ends with the member's role, with the membership and with the agent", async () => {
    const friend = await made.person();
    await db()`insert into account_members (account_id, user_id, role)
      select ${owner.accountId}, id, 'editor' from users where email = ${friend.email}`;
    await friend.post("/account/switch", { account: owner.accountId });
    const { tokens } = await connect(friend);
    expect((await callTool(tokens.access_token)).status).toBe(200);
    const [{ id }] = (await db()`select id from users where email = ${friend.email}`) as unknown as [
      { id: string },
    ];
    await owner.post(`/account/members/${id}/role`, { role: "viewer" });
    expect((await callTool(tokens.access_token)).status).toBe(403);
    expect((await friend.get(authorizePath())).status).toBe(403);
    await owner.post(`/account/members/${id}/role`, { role: "editor" });
    expect((await callTool(tokens.access_token)).status).toBe(200);
    await owner.post(`/account/members/${id}/remove`, {});
    await db()`insert into account_members (account_id, user_id, role) values (${owner.accountId}, ${id}, 'editor')`;
    expect((await callTool(tokens.access_token)).status).toBe(401);
    expect((await refresh(tokens.refresh_token)).status).toBe(400);
    const short = await addAgent(owner);
    const last = await connect(owner, {}, { agent: short.id });
    await db()`delete from agents where id = ${short.id}`;
    expect((await callTool(last.tokens.access_token)).status).toBe(401);
  });

  test("ends at once when the agent is revoked, also while its SQL users cannot be dropped", async () => {
    const { tokens } = await connect();
    expect((await callTool(tokens.access_token)).status).toBe(200);
    await db()`
      insert into sql_users (id, database_id, name, role_name, encrypted_password, created_by, agent_id)
      select ${newId("sql_user")}, b.database_id, ${agent.name}, ${`role_${agent.id}`}, '', '', a.agent_id
      from agent_bases as a join bases as b on b.id = a.base_id where a.agent_id = ${agent.id}`;
    const setName = (from: string, to: string) =>
      db()`update databases set name = ${to} where name = ${from}`;
    const [{ name }] = (await db()`
      select d.name from databases as d join sql_users as u on u.database_id = d.id
      where u.agent_id = ${agent.id}`) as unknown as [{ name: string }];
    await setName(name, "not_there");
    const as = { ...made.control.ctx, actor: { kind: "user", name: owner.email } as const };
    try {
      await expect(revokeAgent(as, agent)).rejects.toThrow();
      expect((await callTool(tokens.access_token)).status).toBe(401);
      expect((await refresh(tokens.refresh_token)).status).toBe(400);
      expect(await listConnections(db(), owner.accountId)).toEqual([]);
      // It is still there, and can be revoked again.
      expect((await getAgent(db(), owner.accountId, agent.id)).bases).toEqual([]);
    } finally {
      await setName("not_there", name);
    }
    await revokeAgent(as, agent);
    await expect(getAgent(db(), owner.accountId, agent.id)).rejects.toMatchObject({ code: "not_found" });
  });
});

describe("attacks", () => {
  test("a redirect that the client has not registered is not followed", async () => {
    for (const redirect of [
      "https://evil.example/callback",
      "http://127.0.0.1:7999/other",
      `${REDIRECT}/../x`,
      "http://127.0.0.1.evil.example/callback",
      "javascript:alert(1)",
    ]) {
      const { page, query } = await open(owner, { redirect });
      expect([redirect, page.status, page.location, query]).toEqual([redirect, 400, null, undefined]);
    }
  });

  test("a code works once, for its client, address and verifier, and its second use ends what the first began", async () => {
    const { tokens, exchange } = await connect();
    expect(await post("/oauth2/token", exchange)).toMatchObject({
      status: 400,
      body: { error: "invalid_grant" },
    });
    expect((await callTool(tokens.access_token)).status).toBe(401);
    expect((await refresh(tokens.refresh_token)).status).toBe(400);
    const other = site.publish("/other.json");
    expect((await connect(owner, { client: other })).status).toBe(200);
    const changes: Record<string, string>[] = [
      { code_verifier: pkce().verifier },
      { client_id: other },
      { redirect_uri: "http://127.0.0.1:7999/other" },
      { resource: "https://other.example/mcp" },
    ];
    for (const change of changes) {
      const { verifier, challenge } = pkce();
      const { location } = await consent(owner, { challenge });
      const right = { ...exchange, code: location!.searchParams.get("code")!, code_verifier: verifier };
      const { status, body } = await post("/oauth2/token", { ...right, ...change });
      expect([change, status >= 400 && status < 500, body.access_token]).toEqual([change, true, undefined]);
      if (change.code_verifier) expect([status, body.error]).toEqual([400, "invalid_grant"]);
      // Whoever has the code cannot try again.
      const again = await post("/oauth2/token", right);
      expect([change, again.body.access_token]).toEqual([change, undefined]);
    }
  });

  test("a client whose document has a key proves that it has the other half, each time anew", async () => {
    const [key, other] = [clientKey(), clientKey()];
    const client = site.publish("/keyed.json", key.document);
    const exchange = async (proof: Record<string, string>) => {
      const { verifier, challenge } = pkce();
      const { location } = await consent(owner, { client, challenge });
      return post("/oauth2/token", {
        grant_type: "authorization_code",
        client_id: client,
        redirect_uri: REDIRECT,
        code_verifier: verifier,
        code: location!.searchParams.get("code")!,
        ...proof,
      });
    };
    const endpoint = `${ORIGIN}/oauth2/token`;
    const proof = key.assertion(client, endpoint);
    const { status, body } = await exchange(proof);
    expect([status, (await callTool(body.access_token)).status]).toEqual([200, 200]);
    // The assertion says whose it is (RFC 7521, section 4.2).
    const alone = { grant_type: "refresh_token", refresh_token: body.refresh_token };
    expect((await post("/oauth2/token", { ...alone, ...key.assertion(client, endpoint) })).status).toBe(200);
    for (const wrong of [other.assertion(client, endpoint), key.assertion(clientId, endpoint), {}])
      expect((await post("/oauth2/token", { ...alone, ...wrong })).body).toMatchObject({
        error: "invalid_client",
      });
    for (const wrong of [
      {},
      proof,
      other.assertion(client, endpoint),
      key.assertion(clientId, endpoint),
      key.assertion(client, "https://other.example/token"),
    ])
      expect((await exchange(wrong)).body.access_token).toBeUndefined();
  });

  test("PKCE is required, and with S256", async () => {
    for (const asked of [{ challenge: null }, { method: "plain" }] satisfies Asked[]) {
      const { page } = await open(owner, asked);
      expect(page.location).toMatch(/^http:\/\/127\.0\.0\.1:7999\/callback\?error=invalid_request/);
    }
  });

  test("a renewed token that is used again ends the connection", async () => {
    const { tokens } = await connect();
    const { body: second } = await refresh(tokens.refresh_token);
    expect((await refresh(tokens.refresh_token)).body).toMatchObject({ error: "invalid_grant" });
    for (const token of [tokens.access_token, second.access_token])
      expect((await callTool(token)).status).toBe(401);
    expect((await refresh(second.refresh_token)).body).toMatchObject({ error: "invalid_grant" });
  });

  test("a token of another address, another client or another kind is refused", async () => {
    const { page } = await open(owner, { resource: "https://other.example/mcp" });
    expect(page.location).toMatch(/error=invalid_target/);
    const { tokens } = await connect();
    const other = site.publish("/mixed.json");
    await connect(owner, { client: other });
    expect((await refresh(tokens.refresh_token, { client_id: other })).body).toMatchObject({
      error: "invalid_grant",
    });
    expect((await callTool(tokens.refresh_token)).status).toBe(401);
    await db()`update oauth_access_tokens set resources = '["https://other.example/mcp"]'`;
    expect((await callTool(tokens.access_token)).status).toBe(401);
    await db()`update oauth_access_tokens set resources = null`;
    expect((await callTool(tokens.access_token)).status).toBe(401);
    const api = await send("/api/v1/bases", { headers: { authorization: `Bearer ${tokens.access_token}` } });
    expect(api.status).toBe(401);
  });

  test("an expired token is refused", async () => {
    const { tokens } = await connect();
    await db()`update oauth_access_tokens set expires_at = now()`;
    expect((await callTool(tokens.access_token)).status).toBe(401);
    await db()`update oauth_refresh_tokens set expires_at = now()`;
    expect((await refresh(tokens.refresh_token)).status).toBe(400);
  });

  test("a document at a private address is not read", async () => {
    for (const client of [
      site.at("inside.example.com", "/client.json"),
      site.at("meta.example.com", "/client.json"),
      "https://127.0.0.1/client.json",
      "https://[::1]/client.json",
      "https://169.254.169.254/latest/meta-data",
      "https://localhost/client.json",
      "http://client.example.com/client.json",
    ]) {
      const before = site.read.length;
      const { page, query } = await open(owner, { client });
      expect([client, page.status, page.location, query]).toEqual([client, 400, null, undefined]);
      expect(site.read.length).toBe(before);
    }
  });

  test("a document that is too large, too slow, elsewhere or of another client is refused", async () => {
    const json = { "content-type": "application/json" };
    const text = (id: string, more = "") =>
      JSON.stringify({ client_id: id, client_name: `A${more}`, redirect_uris: [REDIRECT] });
    let release = () => {};
    const documents: Record<string, () => Response | Promise<Response>> = {
      "/large.json": () =>
        new Response(text(site.at("client.example.com", "/large.json"), "x".repeat(6000)), { headers: json }),
      "/endless.json": () =>
        new Response(new ReadableStream({ pull: (out) => out.enqueue(randomBytes(1000)) }), {
          headers: json,
        }),
      "/slow.json": () =>
        new Promise((resolve) => {
          release = () => resolve(new Response("{}"));
        }),
      "/elsewhere.json": () => Response.redirect(clientId, 302),
      "/page.json": () =>
        new Response(text(site.at("client.example.com", "/page.json")), {
          headers: { "content-type": "text/html" },
        }),
      "/broken.json": () => new Response("{", { headers: json }),
      "/stolen.json": () => new Response(text(clientId), { headers: json }),
    };
    for (const [path, document] of Object.entries(documents)) {
      const client = site.publish(path, document);
      const { page, query } = await open(owner, { client });
      expect([path, page.status, page.location, query]).toEqual([path, 400, null, undefined]);
    }
    release();
    for (const change of [
      { redirect_uris: [] },
      { client_name: "" },
      { client_secret: "x" },
      { token_endpoint_auth_method: "client_secret_basic" },
      { redirect_uris: ["javascript:alert(1)"] },
    ]) {
      const client = site.publish(`/bad-${JSON.stringify(change).length}.json`, change);
      expect([change, (await open(owner, { client })).page.status]).toEqual([change, 400]);
    }
  });

  test("a stranger causes no request: a document is read for members alone", async () => {
    const client = site.publish("/unread.json");
    await made.client().get(authorizePath({ client }));
    const exchange = { grant_type: "authorization_code", client_id: client, code: "x", code_verifier: "y" };
    expect(await post("/oauth2/token", exchange)).toMatchObject({
      status: 401,
      body: { error: "invalid_client" },
    });
    expect((await post("/oauth2/revoke", { client_id: client, token: "x" })).status).toBe(401);
    expect(site.read).not.toContain("/unread.json");
  });

  test("the page of consent cannot be framed, sent from another site, or changed", async () => {
    const { page, query } = await open(owner);
    expect(page.headers.get("content-security-policy")).toContain("frame-ancestors 'none'");
    expect(page.headers.get("content-security-policy")).toContain(
      "form-action 'self' http://127.0.0.1:7999;",
    );
    expect(page.headers.get("cache-control")).toBe("no-store");
    const form = { query: query!, agent: agent.id, decision: "allow" };
    for (const headers of [
      { origin: "https://evil.example", "sec-fetch-site": "cross-site" },
      { origin: "http://evil.localhost:3000", "sec-fetch-site": "same-site" },
      { origin: "null" },
    ]) {
      const { status, location } = await owner.post(
        "/oauth2/authorize",
        form,
        headers as Record<string, string>,
      );
      expect([headers, status, location]).toEqual([headers, 403, null]);
    }
    for (const changed of [
      query!.replace("agent%3Aread", "agent%3Aread+agent%3Apropose"),
      query!.replace(encodeURIComponent(REDIRECT), encodeURIComponent("https://evil.example/")),
      query!.replace(/sig=[^&]+/, "sig=x"),
      "",
    ]) {
      const { status, location } = await owner.post("/oauth2/authorize", { ...form, query: changed });
      expect([changed, status >= 400, location]).toEqual([changed, true, null]);
    }
  });

  test("a client's name is text, and its address adds nothing to the policy", async () => {
    const client = site.publish("/named.json", {
      client_name: `<img src=x onerror=alert(1)>\u202e${"y".repeat(300)}`,
      redirect_uris: ["https://a;b.example/x"],
    });
    const { page } = await open(owner, { client, redirect: "https://a;b.example/x" });
    expect(page.text).not.toContain("<img src=x");
    expect(page.text).not.toContain("\u202e");
    expect(page.headers.get("content-security-policy") ?? "").not.toContain("a;b");
  });

  const likely = [REDIRECT, RESOURCE, "code", "S256", "authorization_code", "refresh_token", "bta_x", "none"];
  const names =
    "grant_type client_id redirect_uri code code_verifier refresh_token resource scope token client_assertion response_type prompt state request_uri claims max_age".split(
      " ",
    );
  test("an assertion that names a client of control characters is that of no client", async () => {
    const claims = Buffer.from(JSON.stringify({ sub: "\0" })).toString("base64url");
    for (const path of ["/oauth2/token", "/oauth2/revoke"])
      expect(await post(path, { client_assertion: `x.${claims}.y`, token: "bta_x" })).toMatchObject({
        status: 401,
        body: { error: "invalid_client" },
      });
  });

  fuzz(
    "any request to sign in is answered",
    300,
    fc.asyncProperty(
      fc.constantFrom("/oauth2/token", "/oauth2/revoke", "/oauth2/authorize"),
      fc.array(fc.tuple(fc.constantFrom(...names), fc.oneof(fc.constantFrom(...likely), anyText)), {
        maxLength: 8,
      }),
      async (path, given) => {
        const form = new URLSearchParams(given);
        if (!form.has("client_id")) form.set("client_id", clientId);
        const isPage = path === "/oauth2/authorize";
        const { status } = isPage
          ? await owner.get(`${path}?${form}`)
          : await send(path, {
              method: "POST",
              headers: { "content-type": "application/x-www-form-urlencoded" },
              body: form.toString(),
            });
        expect(status).toBeLessThan(500);
      },
    ),
  );

  test("the library's other addresses do not exist", async () => {
    for (const [method, path] of [
      ["POST", "/oauth2/register"],
      ["POST", "/oauth2/introspect"],
      ["POST", "/oauth2/consent"],
      ["POST", "/oauth2/continue"],
      ["GET", "/oauth2/get-clients"],
      ["POST", "/oauth2/create-client"],
      ["POST", "/admin/oauth2/create-client"],
      ["GET", "/oauth2/userinfo"],
      ["POST", "/sign-up/email"],
      ["GET", "/get-session"],
    ] as const) {
      const init =
        method === "POST"
          ? { method, body: "{}", headers: { "content-type": "application/json" } }
          : { method };
      const { status } = await send(path, init);
      expect([path, status === 404 || status === 405]).toEqual([path, true]);
    }
  });
});

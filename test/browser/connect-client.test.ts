/**
 * The whole sign-in of an agent's client: the protocol's own client is sent to the console in a real browser, a member signs
 * in and consents, and the client reads, renews its token and is disconnected.
 */
import {
  Client,
  type OAuthClientInformation,
  type OAuthClientProvider,
  type OAuthTokens,
  StreamableHTTPClientTransport,
  UnauthorizedError,
} from "@modelcontextprotocol/client";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { createAuth } from "../../apps/console/auth/auth";
import { type RunningConsole, startConsole } from "../../apps/console/start";
import { listAgents, revokeAgent } from "../../core/control/agents";
import type { Base } from "../../core/control/bases";
import { PROTOCOL_REVISIONS } from "../support/agent-client";
import { BROWSER_TEST_MS, newVisitor, noBrowser, openBrowser } from "../support/browser";
import { type Fleet, startFleet } from "../support/fleet";
import { freePort } from "../support/free-port";
import { type ClientSite, startClientSite } from "../support/oauth-client";

vi.setConfig({ testTimeout: BROWSER_TEST_MS });

const ACTOR = { kind: "user", name: "fleet@example.org" } as const;

let fleet: Fleet;
let running: RunningConsole;
let browser: Browser | undefined;
let base: Base;
let site: ClientSite;
let origin: string;

beforeAll(async () => {
  if (noBrowser) return;
  site = startClientSite();
  const port = await freePort();
  origin = `http://localhost:${port}`;
  fleet = await startFleet({
    sandbox: { settings: { rateLimitOff: true } },
    env: { CONSOLE_URL: origin, LIVE_PINGS: "off" },
  });
  const fields = ["Name", "Unit price"].map((name) => ({ name, type: "singleLineText" }));
  const sourceId = fleet.sandbox.control.createBase({
    name: "Shop",
    tables: [{ name: "Items", fields, records: [{ fields: { Name: "bolt" } }] }],
  });
  const auth = createAuth(fleet.ctx, undefined, site.network);
  running = await startConsole(fleet.ctx, { port, auth });
  [browser, base] = await Promise.all([
    openBrowser(),
    fleet.connect(sourceId).then(({ id }) => fleet.synced(id)),
  ]);
}, BROWSER_TEST_MS);
afterAll(async () => {
  await browser?.close();
  await running?.stop();
  if (fleet && base) {
    for (const agent of await listAgents(fleet.ctx.db, base.accountId))
      await revokeAgent({ ...fleet.ctx, actor: ACTOR }, agent);
  }
  await fleet?.[Symbol.asyncDispose]();
  await site?.[Symbol.asyncDispose]();
});

/** The client's side of a sign-in; `asked` is where it sends its user. */
function signIn(clientId: string, redirect: string) {
  let verifier = "";
  let client: OAuthClientInformation | undefined;
  const held: { asked?: URL; tokens?: OAuthTokens | undefined } = {};
  const provider: OAuthClientProvider = {
    redirectUrl: redirect,
    clientMetadataUrl: clientId,
    clientMetadata: { redirect_uris: [redirect], client_name: "Test Client" },
    state: () => "state-of-the-client",
    clientInformation: () => client,
    saveClientInformation: (information) => {
      client = information;
    },
    tokens: () => held.tokens,
    saveTokens: (tokens) => {
      held.tokens = tokens;
    },
    redirectToAuthorization: (url) => {
      held.asked = url;
    },
    saveCodeVerifier: (text) => {
      verifier = text;
    },
    codeVerifier: () => verifier,
  };
  const transport = () =>
    new StreamableHTTPClientTransport(new URL("/mcp", origin), { authProvider: provider });
  return { held, transport };
}

test
  .skipIf(noBrowser)
  .each(PROTOCOL_REVISIONS.map((revision, at) => ({ revision, isPhone: at === 1, hasScript: at !== 1 })))(
  "a client signs in, reads, renews and is disconnected: $revision",
  async ({ revision, isPhone, hasScript }) => {
    let came: URL | undefined;
    await using listener = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch(request) {
        came = new URL(request.url);
        return new Response("You can close this window.");
      },
    }) as ReturnType<typeof Bun.serve> & AsyncDisposable;
    const redirect = `http://127.0.0.1:${listener.port}/callback`;
    const clientId = site.publish(`/${revision}.json`, { redirect_uris: ["http://127.0.0.1/callback"] });
    const { held, transport } = signIn(clientId, redirect);
    const connect = async () => {
      const client = new Client(
        { name: "test", version: "1" },
        revision === "2026-07-28"
          ? { versionNegotiation: { mode: { pin: revision } } }
          : { supportedProtocolVersions: [revision] },
      );
      await client.connect(transport());
      return client;
    };
    const first = transport();
    const unsigned = new Client(
      { name: "test", version: "1" },
      revision === "2026-07-28"
        ? { versionNegotiation: { mode: { pin: revision } } }
        : { supportedProtocolVersions: [revision] },
    );
    await expect(unsigned.connect(first)).rejects.toThrow(UnauthorizedError);

    await using visitor = await newVisitor(browser!, {
      baseUrl: origin,
      isPhone,
      hasScript,
      isTwofold: hasScript,
    });
    const { page } = visitor;
    await page.goto(held.asked!.href);
    await page.getByLabel("E-mail").fill("fleet@example.org");
    await page.getByLabel("Password").fill("correct horse");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { level: 1, name: "Connect Test Client?" }).waitFor();
    await visitor.inspect(`connect-client-${revision}`);
    await page.getByLabel("A new agent").check();
    await page.getByLabel("Name of the agent").fill(`Agent ${revision}`);
    await page.getByRole("checkbox", { name: "Shop" }).check();
    await page.getByRole("button", { name: "Connect" }).click();
    await page.getByText("You can close this window.").waitFor();
    expect(came!.searchParams.get("state")).toBe("state-of-the-client");
    visitor.expectNoProblems();

    await first.finishAuth(came!.searchParams);
    const client = await connect();
    const answer = await client.callTool({ name: "query", arguments: { sql: "select name from items" } });
    expect(answer.structuredContent).toMatchObject({ results: [{ rows: [["bolt"]] }] });

    // Expired: the client renews it by itself.
    const before = held.tokens!.access_token;
    await fleet.ctx.db`update oauth_access_tokens set expires_at = now()`;
    expect((await client.callTool({ name: "list_bases", arguments: {} })).isError).not.toBe(true);
    expect(held.tokens!.access_token).not.toBe(before);

    await page.goto(`${origin}/account/connections`);
    await visitor.inspect(`connections-${revision}`);
    await page
      .getByRole("row", { name: `Agent ${revision}` })
      .getByRole("link", { name: "Disconnect" })
      .click();
    await page.getByRole("button", { name: "Disconnect" }).click();
    await page.getByText("The program has no access any longer.").waitFor();
    visitor.expectNoProblems();
    await expect(client.callTool({ name: "list_bases", arguments: {} })).rejects.toThrow();
    await client.close();
  },
);

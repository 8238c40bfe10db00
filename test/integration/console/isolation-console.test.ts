/**
 * I8 over HTTP: every route of the console is requested by all users who may not use it, with the ids of another
 * account's objects. The routes are taken from the app, so that a new one cannot be forgotten.
 */
import { createHash } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createWebhook } from "../../../core/alerts";
import { createBase, getBase, recordRun, saveSourceTables } from "../../../core/control/bases";
import { createWorkspace } from "../../../core/control/budgets";
import { createDraft, setDraftKey } from "../../../core/control/onboarding";
import { createRequest } from "../../../core/control/placement";
import { newId } from "../../../core/ids";
import { addConnection } from "../../support/add-connection";
import type { ConsoleClient } from "../../support/console-client";
import { type TestConsole, testConsole } from "../../support/console-support";
import { caller, GOOD_KEY } from "../../support/control-support";

/** Public pages. */
const PUBLIC =
  /^\/(docs|docs\/.*|llms\.txt|skills\/.*|theme|openapi|healthz|readyz|metrics|assets\/:file|downloads\/.*|status\/.*|attachments\/.*|sign-in|sign-in\/code|sign-in\/with\/:provider|auth\/callback\/:provider|sign-out|signup|verify-email|forgot-password|reset-password|invitation|hooks\/.*|oauth2\/(token|revoke)|\.well-known\/.*|mcp)?$/;
/** The victim's texts that no other account may read. */
const MARK = "Inventory";

let made: TestConsole;
let victim: Awaited<ReturnType<TestConsole["person"]>>;
let stranger: Awaited<ReturnType<TestConsole["person"]>>;
/** The victim's objects, by the beginning of a route's path. */
let ids: [RegExp, string][];

beforeAll(async () => {
  made = await testConsole();
  [victim, stranger] = [await made.person(), await made.person()];
  const { ctx } = made.control;
  const base = await createBase(ctx, victim.accountId, {
    platform: "airtable",
    apiKey: GOOD_KEY,
    sourceBaseId: "appOne",
  });
  const draft = await createDraft(ctx, victim.accountId, "airtable");
  await setDraftKey(ctx, draft, GOOD_KEY);
  const request = await createRequest(ctx.db, victim.accountId, { kind: "other", message: MARK });
  const workspace = await createWorkspace(ctx, victim.accountId, { name: MARK, plan: "team" });
  const hook = { name: MARK, form: "json", url: "http://127.0.0.1:9/x" } as const;
  const { webhook } = await createWebhook(ctx, victim.accountId, hook);
  await victim.post("/account/members", { email: "friend@example.org" });
  const { db } = ctx;
  const connection = await addConnection(db, victim.accountId, MARK);
  const one = async (rows: PromiseLike<readonly unknown[]>) => ((await rows)[0] as { id: string }).id;
  ids = [
    [/\/account\/tokens/, await one(db`select id from api_tokens where account_id = ${victim.accountId}`)],
    [
      /\/account\/sessions/,
      await one(db`select s.id from sessions as s join account_members as m
      on m.user_id = s.user_id where m.account_id = ${victim.accountId}`),
    ],
    [
      /\/members/,
      await one(db`
      select user_id as id from account_members where account_id = ${victim.accountId}`),
    ],
    [
      /\/account\/invitations/,
      await one(db`
      select id from invitations where account_id = ${victim.accountId}`),
    ],
    [
      /\/proposals/,
      await one(db`insert into change_sets (id, base_id, state, note, is_proposal)
        values (${newId("change_set")}, ${base.id}, 'proposed', ${MARK}, true) returning id`),
    ],
    [/\/connections/, connection],
    [/\/agents/, await one(db`select id from agents where account_id = ${victim.accountId}`)],
    [/^\/new/, draft.id],
    [/\/requests/, request.id],
    [/\/workspaces/, workspace.id],
    [/\/alerts/, webhook.id],
    [/./, base.id],
  ];
});
afterAll(() => made?.[Symbol.asyncDispose]());

interface Route {
  method: string;
  path: string;
  /** The path with the victim's ids. */
  url: string;
}

function routes(): Route[] {
  return made.app.routes
    .filter(({ method }) => method !== "OPTIONS" && method !== "HEAD")
    .map(({ method, path }) => {
      const id = ids.find(([begins]) => begins.test(path))![1];
      return { method, path, url: path.replace(/:(id|baseId)\b/, id).replace(/:\w+/g, "paused") };
    });
}

const isApi = ({ path }: Route) => path.startsWith("/api/");
const isPage = (route: Route) => !isApi(route) && !PUBLIC.test(route.path);

/** Everything in the control plane, except the traces of reads and of refused attempts. */
async function state(): Promise<string> {
  const { db } = made.control.ctx;
  const tables = await db<{ name: string }[]>`
    select relname as name from pg_class
    where relnamespace = 'public'::regnamespace and relkind = 'r'
      -- What tokens are for: written by the first sign-in of a client.
      and relname not in ('rate_limits', 'attempts', 'oauth_resources')
      -- Calls of an allowed page that asks the source are stored seconds later.
      and relname !~ '^quota_' order by 1`;
  const hash = createHash("sha256");
  for (const { name } of tables) {
    const rows = await db<{ row: string }[]>`
      select (to_jsonb(t) - 'last_used_at' - 'updated_at' - 'choices_at')::text as row from ${db(name)} as t`;
    hash.update(JSON.stringify([name, rows.map(({ row }) => row).sort()]));
  }
  return hash.digest("hex");
}

/** A form that would have an effect if it were accepted. */
const form = {
  value: "on",
  paused: "on",
  name: MARK,
  api_key: GOOD_KEY,
  key: GOOD_KEY,
  base: "appOne",
  kind: "new",
  decision: "deny",
  email: "mine@example.org",
  region: "us-west-2",
  url: "postgres://x:y@127.0.0.1:1/z",
};
const body = { paused: true, platform: "airtable", api_key: GOOD_KEY, base_id: "appOne" };

function send(client: ConsoleClient, { method, url }: Route, headers?: Record<string, string>) {
  if (method === "GET") return client.get(url, headers);
  return client.post(url, { ...form, account: victim.accountId }, headers);
}

test("I8: without a session, every page asks to sign in, and no call of the API works", async () => {
  const before = await state();
  for (const route of routes().filter(isPage)) {
    const answer = await send(made.client(), route);
    const said = [route.method, route.path, answer.status, answer.location?.replace(/\?.*/, "")];
    expect(said).toEqual([route.method, route.path, 303, "/sign-in"]);
  }
  const call = caller(made.app);
  for (const token of [undefined, `bt_${"x".repeat(43)}`, victim.cookies.get("basetide.session_token")!]) {
    for (const { method, path, url } of routes().filter(isApi)) {
      const { status, body: said } = await call(method, url, {
        ...(token === undefined ? {} : { token }),
        ...(method === "GET" ? {} : { body }),
      });
      expect([method, path, status, said.error.code]).toEqual([method, path, 401, "unauthorized"]);
    }
  }
  expect(await state()).toBe(before);
});

test("I8: another account's objects do not exist, on every page and in every call", async () => {
  const before = await state();
  for (const route of routes().filter((one) => isPage(one) && one.path.includes(":"))) {
    const answer = await send(stranger, route);
    expect([route.method, route.path, answer.status]).toEqual([route.method, route.path, 404]);
    expect(answer.text).not.toContain(MARK);
  }
  const call = caller(made.app);
  for (const { method, path, url } of routes().filter((one) => isApi(one) && one.path.includes(":"))) {
    const changes = {
      workspaces: { name: "mine" },
      alerts: { name: "mine" },
      "sql-users":
        method === "PATCH" ? { writes: { mode: "at_commit", tables: ["tasks"] } } : { name: "mine" },
      "reading-url": { url: "postgres://mine@127.0.0.1/mine" },
      rules: { rules: [] },
      agents: { may_propose: true },
      approve: {},
      reject: {},
      cancel: {},
      "change-sets": { operations: [{ operation: "create", table: "Tasks", fields: {} }] },
      selection: { new_tables: "copy", tables: [] },
      members: method === "PATCH" ? { role: "viewer" } : { revoke_tokens: true },
    };
    const [, kind] = Object.entries(changes).find(([name]) => path.includes(name)) ?? [];
    const change = kind ?? { paused: true };
    const sent = method === "GET" ? {} : { body: change };
    const { status, body: said } = await call(method, url, { token: stranger.token, ...sent });
    expect([method, path, status, said.error.code]).toEqual([method, path, 404, "not_found"]);
    expect(JSON.stringify(said)).not.toContain(MARK);
  }
  for (const { method, url } of routes().filter((one) => !one.path.includes(":") && one.method === "GET")) {
    const token = { authorization: `Bearer ${stranger.token}` };
    const { text } = await stranger.get(url, url.startsWith("/api/") ? token : {});
    expect([method, url, text.includes(MARK), text.includes(victim.email)]).toEqual([
      method,
      url,
      false,
      false,
    ]);
  }
  expect(await state()).toBe(before);
});

test("the search finds bases, tables and columns of the account, and nothing of another one's", async () => {
  const { db } = made.control.ctx;
  const baseId = ids.at(-1)![1];
  const field = (name: string) =>
    ({ id: `fld${name}`, name, type: "text", sourceType: "singleLineText" }) as const;
  const named = (id: string, name: string, fields: string[]) => ({
    id,
    name,
    primaryFieldId: `fld${fields[0]}`,
    fields: fields.map(field),
  });
  const fields = Array.from({ length: 30 }, (_, n) => `Stock level ${n}`);
  const tables = [
    named("tblOne", "Inventory items", ["Name", "Due date", "Cost_in_€"]),
    named("tblTwo", "Due notices", fields),
    named("tblNew", "Inventory of a table that is not synced yet", ["Due date"]),
  ];
  await saveSourceTables(db, baseId, { tables });
  await recordRun(db, baseId, {
    ...{
      kind: "first",
      startedAt: new Date(),
      completedAt: new Date(),
      seen: 0,
      inserted: 0,
      updated: 0,
      deleted: 0,
    },
    ...{ requests: 1, waitMs: 0 },
    tables: [
      { name: "inventory_items", source_name: "Inventory items", source_id: "tblOne", records: 0 },
      { name: "due_notices", source_name: "Due notices", source_id: "tblTwo", records: 0 },
    ],
  });
  const search = async (client: ConsoleClient, query: string) => {
    const { text } = await client.get(`/search?${new URLSearchParams({ q: query, base: baseId })}`, {
      "hx-request": "true",
    });
    return [...text.matchAll(/href="(\/bases\/[^"]+)"/g)].map(([, href]) => href!.replaceAll("&amp;", "&"));
  };
  const path = `/bases/${baseId}`;
  const columns = `${path}/schema?table=inventory_items#columns`;
  expect((await search(victim, MARK))[0]).toBe(path);
  expect(await search(victim, "inventory ITEMS")).toContain(`${path}/data/inventory_items`);
  expect(await search(victim, "due_date")).toEqual([columns]);
  expect(await search(victim, "items due date")).toEqual([columns]);
  expect(await search(victim, "€ cost")).toEqual([columns]);
  expect(await search(victim, "appOne")).toEqual([path]);
  expect(await search(victim, "due")).toEqual([`${path}/data/due_notices`, columns]);
  expect((await search(victim, "stock level")).length).toBe(6);
  for (const query of [MARK, "due", "appOne", baseId, "name", "", "turbo"]) {
    expect([query, await search(stranger, query)]).toEqual([query, []]);
    const { text } = await stranger.get(`/search?${new URLSearchParams({ q: query, base: baseId })}`);
    expect([query, text.includes(`${path}"`), text.includes("Due notices")]).toEqual([query, false, false]);
  }
  expect((await made.client().get(`/search?q=${MARK}`)).status).toBe(303);
});

test("signed URLs are refused without a signature", async () => {
  const before = await state();
  for (const route of routes().filter(({ path }) => /^\/(hooks|attachments)\//.test(path))) {
    for (const client of [made.client(), stranger, victim]) {
      const { status, text } = await send(client, route, { accept: "application/json" });
      expect([route.path, [401, 403, 404].includes(status), text.includes(MARK)]).toEqual([
        route.path,
        true,
        false,
      ]);
    }
  }
  expect(await state()).toBe(before);
});

test("no page of the operator console opens for other accounts", async () => {
  const before = await state();
  for (const route of routes().filter(({ path }) => path.startsWith("/operator"))) {
    for (const client of [victim, stranger]) {
      const { status, text } = await send(client, route);
      expect([route.method, route.path, status]).toEqual([route.method, route.path, 404]);
      // A user's own address is in the bar of every page; the operator console lists all addresses.
      expect(text).not.toContain(client === victim ? stranger.email : victim.email);
    }
  }
  expect(await state()).toBe(before);
});

test("a form that another site submits has no effect, with any cookies, on every page", async () => {
  const before = await state();
  const foreign = [
    { "sec-fetch-site": "cross-site", origin: "https://evil.example" },
    { "sec-fetch-site": "same-site", origin: "http://other.console" },
    { "sec-fetch-site": "none" },
    { origin: "https://evil.example" },
    { origin: "null" },
    {},
  ];
  // Programs send tokens and codes, and no cookie is read.
  const programs = /^\/(api|hooks|oauth2\/(token|revoke)$)/;
  for (const route of routes().filter(({ method, path }) => method === "POST" && !programs.test(path))) {
    for (const headers of foreign) {
      const { status } = await send(victim, route, headers as Record<string, string>);
      expect([route.path, headers, status]).toEqual([route.path, headers, 403]);
    }
  }
  expect(await state()).toBe(before);
});

test("a browser's cookies allow no call of the API: only a token does", async () => {
  const before = await state();
  for (const { method, url } of routes().filter(isApi)) {
    const cookie = [...victim.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const request = new Request(`http://console${url}`, { method, headers: { cookie } });
    expect([method, url, (await made.app.handle(request)).status]).toEqual([method, url, 401]);
  }
  expect(await state()).toBe(before);
});

test("every page has the isolation headers", async () => {
  for (const { url } of routes().filter((route) => isPage(route) && route.method === "GET")) {
    const { headers, status } = await victim.get(url);
    if (status >= 300 && status < 400) continue;
    expect([url, Object.fromEntries(headers)]).toEqual([
      url,
      expect.objectContaining({
        "content-security-policy": expect.stringMatching(/default-src 'none'.*frame-ancestors 'none'/),
        "x-content-type-options": "nosniff",
        "referrer-policy": expect.stringMatching(/^(no-referrer|same-origin)$/),
        "cache-control": "no-store",
      }),
    ]);
  }
});

test("a member can do all that the owner can, except manage members; and nothing after removal", async () => {
  const { token, path } = await inviteFriend();
  const friend = await made.person("friend@example.org");
  expect((await friend.get(path)).text).toContain(victim.email);
  expect((await friend.post("/invitation", { token })).location).toBe("/bases");
  const base = ids.at(-1)![1];
  expect((await friend.get(`/bases/${base}`)).text).toContain(MARK);
  expect((await friend.post(`/bases/${base}/settings/turbo`, { value: "on" })).status).toBe(303);
  expect((await getBase(made.control.ctx.db, base)).settings.turbo).toBe(true);

  const before = await state();
  const owner = ids.find(([begins]) => begins.test("/account/members"))![1];
  for (const [url, sent] of [
    ["/account/members", { email: "third@example.org" }],
    [`/account/members/${owner}/remove`, {}],
  ] as const) {
    expect([url, (await friend.post(url, sent)).status]).toEqual([url, 403]);
  }
  expect(await state()).toBe(before);

  await friend.post("/account/tokens", { name: "mine", read: "on" });
  const shown = await friend.get("/account/tokens");
  const apiToken = /bt_[A-Za-z0-9_-]{43}/.exec(shown.text)![0];
  const call = caller(made.app);
  expect((await call("GET", `/api/v1/bases/${base}`, { token: apiToken })).status).toBe(200);
  const { db } = made.control.ctx;
  const [member] = await db<{ id: string }[]>`select id from users where email = 'friend@example.org'`;
  expect((await victim.post(`/account/members/${member!.id}/remove`, {})).status).toBe(303);
  expect((await friend.get(`/bases/${base}`)).status).toBe(404);
  // A token that the member created would otherwise stay valid.
  expect((await call("GET", `/api/v1/bases/${base}`, { token: apiToken })).status).toBe(401);
});

async function inviteFriend(): Promise<{ token: string; path: string }> {
  await made.nextMail("friend@example.org");
  await victim.post("/account/members", { email: "friend@example.org" });
  const { path } = await made.nextMail("friend@example.org");
  return { path, token: new URLSearchParams(path.split("?")[1]).get("token")! };
}

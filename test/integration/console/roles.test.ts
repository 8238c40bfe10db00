/**
 * Every route of the console and of the API, with each role and each scope: what a member or a token may not do is
 * refused and changes nothing, whatever its form. The routes are taken from the app, so none can be forgotten.
 */
import { createHash } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { permissionFor, routeOf } from "../../../apps/console/access";
import { can, createToken, isInScope, roles, scopes, type TokenScope } from "../../../core/control/accounts";
import { createBase } from "../../../core/control/bases";
import { type TestConsole, testConsole } from "../../support/console-support";
import { caller, GOOD_KEY } from "../../support/control-support";

/** Pages for everyone, the operator's, and what agents call, which have checks of their own. */
const OTHERS =
  /^\/(docs|docs\/.*|skills\/.*|theme|openapi|healthz|readyz|metrics|assets\/:file|downloads\/.*|status\/.*|attachments\/.*|sign-in.*|auth\/.*|sign-out|signup|verify-email|forgot-password|reset-password|invitation|hooks\/.*|oauth2\/(token|revoke)|\.well-known\/.*|mcp|operator.*)?$/;

let made: TestConsole;
let owner: Awaited<ReturnType<TestConsole["person"]>>;
let friend: Awaited<ReturnType<TestConsole["person"]>>;
let friendId: string;
let baseId: string;

beforeAll(async () => {
  made = await testConsole();
  [owner, friend] = [await made.person(), await made.person()];
  const { ctx } = made.control;
  const base = await createBase(ctx, owner.accountId, {
    platform: "airtable",
    apiKey: GOOD_KEY,
    sourceBaseId: "appOne",
  });
  baseId = base.id;
  await owner.post("/account/members", { email: friend.email, role: "viewer" });
  const invitation = new URL((await made.nextMail(friend.email)).path, "http://console");
  await friend.post("/invitation", { token: invitation.searchParams.get("token")! });
  const [user] = await ctx.db<{ id: string }[]>`select id from users where email = ${friend.email}`;
  friendId = user!.id;
});
afterAll(() => made?.[Symbol.asyncDispose]());

const routes = (isApi: boolean) =>
  made.app.routes
    .filter(({ method, path }) => ["GET", "POST", "PATCH", "DELETE"].includes(method) && !OTHERS.test(path))
    .filter(({ path }) => path.startsWith("/api/") === isApi)
    .map(({ method, path }) => ({
      method,
      path,
      url: path
        .replace("/members/:id", `/members/${friendId}`)
        .replace(/:id\b/, baseId)
        .replace(/:\w+/g, "paused"),
      permission: permissionFor(method, path),
    }));

/** Everything in the control plane, except the traces of reads, allowed ones too, and of refused attempts. */
async function state(): Promise<string> {
  const { db } = made.control.ctx;
  const tables = await db<{ name: string }[]>`
    select relname as name from pg_class
    where relnamespace = 'public'::regnamespace and relkind = 'r'
      and relname not in ('rate_limits', 'attempts', 'sessions')
      -- A read of what can be selected asks the source.
      and relname !~ '^quota_' order by 1`;
  const hash = createHash("sha256");
  for (const { name } of tables) {
    const rows = await db<{ row: string }[]>`
      select (to_jsonb(t) - 'last_used_at' - 'updated_at')::text as row from ${db(name)} as t
      where to_jsonb(t) ->> 'action' is distinct from 'credentials.shown'`;
    hash.update(JSON.stringify([name, rows.map(({ row }) => row).sort()]));
  }
  return hash.digest("hex");
}

const form = {
  value: "on",
  paused: "on",
  name: "Mine",
  api_key: GOOD_KEY,
  platform: "airtable",
  email: "new@example.org",
  role: "editor",
  url: "http://127.0.0.1:1/",
  read: "on",
};

test("a viewer and an editor reach the pages that their role allows, and no others", async () => {
  for (const role of ["viewer", "editor"] as const) {
    await owner.post(`/account/members/${friendId}/role`, { role });
    const before = await state();
    for (const { method, path, url, permission } of routes(false)) {
      if (can(role, permission) && method !== "GET") continue;
      const { status, text } = await (method === "GET" ? friend.get(url) : friend.post(url, form));
      const isAllowed = can(role, permission);
      expect([role, method, path, status === 403]).toEqual([role, method, path, !isAllowed]);
      if (!isAllowed && permission !== "members")
        expect(text).toContain(`Your role in this account is ${role}`);
    }
    // Reading a page of the onboarding may begin a draft; nothing that is refused leaves a trace.
    if (role === "viewer") expect(await state()).toBe(before);
  }
}, 120_000);

test("the rules of routes apply to the paths that pages have", () => {
  for (const { method, path, url, permission } of routes(false)) {
    expect([method, path, permissionFor(method, routeOf(url))]).toEqual([method, path, permission]);
  }
});

test("a token reaches the calls that its scopes and its creator's role allow, and no others", async () => {
  const { db } = made.control.ctx;
  const call = caller(made.app);
  for (const role of roles) {
    const [member] = await db<{ user_id: string }[]>`
      select user_id from account_members where account_id = ${owner.accountId} and role = 'owner'`;
    if (role !== "owner") await owner.post(`/account/members/${friendId}/role`, { role });
    const userId = role === "owner" ? member!.user_id : friendId;
    for (const scope of scopes) {
      const token = await createToken(db, owner.accountId, scope, { userId, scopes: [scope] });
      const before = await state();
      for (const { method, path, url, permission } of routes(true)) {
        const isAllowed = isInScope([scope], permission) && can(role, permission);
        if (isAllowed && method !== "GET") continue;
        const body = method === "GET" ? {} : { body: { paused: true } };
        const { status, body: said } = await call(method, url, { token, ...body });
        const at = [role, scope, method, path];
        if (isAllowed) expect([...at, status === 403]).toEqual([...at, false]);
        else expect([...at, status, said.error.code]).toEqual([...at, 403, "forbidden"]);
      }
      expect(await state()).toBe(before);
    }
  }
}, 120_000);

test("an expired token does not work, and the page shows each token's beginning, scopes and expiry", async () => {
  const { db } = made.control.ctx;
  const call = caller(made.app);
  const only: TokenScope[] = ["read"];
  const token = await createToken(db, owner.accountId, "short", { scopes: only, expiresInDays: 30 });
  expect((await call("GET", "/api/v1/bases", { token })).status).toBe(200);
  await db`update api_tokens set expires_at = now() - interval '1 second' where name = 'short'`;
  expect((await call("GET", "/api/v1/bases", { token })).status).toBe(401);
  const { text } = await owner.get("/account/tokens");
  expect(text).toContain(`${token.slice(0, 9)}…`);
  expect(text).toContain("Expired");
  expect(text).not.toContain(token);
  const none = await owner.post("/account/tokens", { name: "none", expires: "30" });
  expect(none.status).toBe(422);
  expect(none.text).toContain("Choose at least one scope.");
});

test("only the owner changes roles, and no member changes the owner's", async () => {
  const role = { role: "editor" };
  await owner.post(`/account/members/${friendId}/role`, { role: "viewer" });
  expect((await friend.post(`/account/members/${friendId}/role`, role)).status).toBe(403);
  const [user] = await made.control.ctx.db<{ id: string }[]>`
    select id from users where email = ${owner.email}`;
  expect((await owner.post(`/account/members/${user!.id}/role`, { role: "viewer" })).status).toBe(409);
  expect((await owner.post(`/account/members/${friendId}/role`, { role: "owner" })).status).toBe(422);
  expect((await friend.get("/bases")).text).toContain("You are a viewer of this account");

  const call = caller(made.app);
  const token = await createToken(made.control.ctx.db, owner.accountId, "roles", { userId: user!.id });
  const patch = (id: string, body: object) => call("PATCH", `/api/v1/members/${id}`, { token, body });
  const changed = await patch(friendId, role);
  expect(changed).toMatchObject({ status: 200, body: { user_id: friendId, role: "editor" } });
  expect((await friend.get("/bases")).text).not.toContain("You are a viewer of this account");
  expect((await patch(user!.id, role)).status).toBe(409);
  expect((await patch(friendId, { role: "owner" })).status).toBe(422);
  expect((await patch(friendId, {})).status).toBe(422);
  for (const unknown of ["usr_00000000000000000000", "%00"]) {
    expect((await patch(unknown, role)).status).toBe(404);
    expect((await owner.post(`/account/members/${unknown}/role`, role)).status).toBe(404);
  }
});

test("pages have no form and no link to what the reader's role does not allow", async () => {
  const patterns = made.app.routes.filter(({ path }) => !path.startsWith("/api/") && !OTHERS.test(path));
  const pattern = (method: string, url: string) => {
    const parts = url.split("/");
    const fits = (path: string) => {
      const names = path.split("/");
      return (
        names.length === parts.length && names.every((name, i) => name.startsWith(":") || name === parts[i])
      );
    };
    return patterns.find((route) => route.method === method && fits(route.path))?.path;
  };
  const offers = async () => {
    const found = new Set<string>();
    for (const { path, url, permission } of routes(false).filter(({ method }) => method === "GET")) {
      if (!can("viewer", permission)) continue;
      const { text } = await friend.get(url);
      const main = text.includes("<main") ? text.slice(text.indexOf("<main"), text.indexOf("</main>")) : text;
      const posts = [...main.matchAll(/<form[^>]* action="([^"?#]+)/g)].filter(([tag]) =>
        /method="post"/.test(tag),
      );
      const links = main.matchAll(/<\w+[^>]* (?:href|hx-get)="(\/[^"?#]*)/g);
      for (const [method, matches] of [
        ["POST", posts],
        ["GET", links],
      ] as const) {
        for (const [, to] of matches) {
          const route = pattern(method, to!);
          if (route && !can("viewer", permissionFor(method, route))) found.add(`${path}: ${method} ${route}`);
        }
      }
      if (/<details[^>]*form-panel/.test(main)) found.add(`${path}: panel`);
      for (const what of main.match(/>(Replace the key|Delete this base…|Resync|New token)</g) ?? [])
        found.add(`${path}: ${what}`);
    }
    return [...found].filter((one) => !/^\/(requests|account): panel/.test(one));
  };
  await owner.post(`/account/members/${friendId}/role`, { role: "editor" });
  expect((await offers()).length).toBeGreaterThan(10);
  await owner.post(`/account/members/${friendId}/role`, { role: "viewer" });
  expect(await offers()).toEqual([]);
  // Settings stay, for reading.
  const { text } = await friend.get(`/bases/${baseId}/settings`);
  const inputs = text.match(/<(?:input|textarea)[^>]* name="value"[^>]*>/g) ?? [];
  expect(inputs.length).toBeGreaterThan(10);
  expect(inputs.filter((input) => !/ disabled/.test(input))).toEqual([]);
  expect(text).not.toContain(`action="/bases/${baseId}/settings`);
}, 60_000);

/** Who changed what: told with the change, from wherever it is made, and never more than what people may read. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { listChanges, noteChange, trimAudit } from "../../core/control";
import { startProgram } from "../support/program";
import { PASSWORD, type TestConsole, testConsole } from "./console-support";
import { caller, connectBase, GOOD_KEY, OTHER_KEY } from "./control-support";

let made: TestConsole;
beforeAll(async () => {
  made = await testConsole();
});
afterAll(() => made?.[Symbol.asyncDispose]());

type Person = Awaited<ReturnType<TestConsole["person"]>>;

/** What the account's log has, the oldest first: who, what, details. */
async function told(accountId: string) {
  const entries = await listChanges(made.control.ctx.db, { accountId, limit: 1000 });
  return entries
    .reverse()
    .map(({ actorKind, actor, action, details }) => [actorKind, actor, action, details]);
}

async function operate(...args: string[]): Promise<string> {
  const { config } = made.control.ctx;
  await using program = startProgram("apps/operator/main.ts", [...args, "--json"], {
    DATABASE_URL: config.databaseUrl,
    SECRET_KEY: config.secretKey,
    DATA_DIR: config.dataDir,
  });
  expect([await program.exited, program.errors()]).toEqual([0, ""]);
  return program.output();
}

async function connected(person: Person): Promise<string> {
  const { status, body: base } = await connectBase(caller(made.app), person.token);
  expect(status).toBe(201);
  return base.id;
}

test("what is changed in the console, by the API and by the command line is told in one log", async () => {
  const person = await made.person();
  const call = caller(made.app);
  const id = await connected(person);
  await call("PATCH", `/api/v1/bases/${id}`, {
    token: person.token,
    body: { turbo: true, api_key: GOOD_KEY },
  });
  await call("POST", `/api/v1/bases/${id}/sync`, { token: person.token });
  await person.post(`/bases/${id}/settings/lookups_as_text`, { value: "on" });
  await person.post(`/bases/${id}/connect/rotate`, {});
  await person.post("/account/tokens", { name: "laptop" });
  await person.post("/account/members", { email: "new@example.org" });
  await person.post("/account/password", { current: PASSWORD, password: "another one" });
  await person.post("/requests", { kind: "other", message: "A pony" });
  await operate("base", "pause", id);
  await call("DELETE", `/api/v1/bases/${id}`, { token: person.token });
  const user = ["user", person.email];
  const token = ["token", "test"];
  expect(await told(person.accountId)).toEqual([
    ["system", "basetide", "account.created", { email: person.email, is_operator: false }],
    ["system", "basetide", "token.created", { name: "test" }],
    [...token, "base.connected", { name: "Inventory", source_base: "appOne", destination: "new" }],
    [...token, "base.changed", { turbo: true, api_key: "replaced" }],
    [...token, "base.sync_requested", {}],
    [...user, "base.changed", { lookups_as_text: true }],
    [...user, "credentials.rotated", { name: expect.stringMatching(/^bt_/) }],
    [...user, "token.created", { name: "laptop" }],
    [...user, "member.invited", { email: "new@example.org" }],
    [...user, "password.changed", {}],
    [...user, "request.created", { kind: "other", region: null, database: null }],
    ["cli", expect.any(String), "base.changed", { paused: true }],
    [...token, "base.deleted", { name: "Inventory", source_base: "appOne" }],
  ]);
});

test("a change that does not come about is not told, and what cannot be told does not come about", async () => {
  const person = await made.person();
  const call = caller(made.app);
  const id = await connected(person);
  const before = await told(person.accountId);
  const refused = { token: person.token, body: { api_key: OTHER_KEY } };
  expect((await call("PATCH", `/api/v1/bases/${id}`, refused)).status).toBe(422);
  expect((await person.post("/account/tokens/tok_00000000000000000000/revoke", {})).status).toBe(404);
  expect(await told(person.accountId)).toEqual(before);

  const { db } = made.control.ctx;
  await db`alter table audit_log add constraint full_up check (id < 0) not valid`;
  try {
    expect(
      (await call("PATCH", `/api/v1/bases/${id}`, { token: person.token, body: { turbo: true } })).status,
    ).toBe(500);
    expect((await person.post("/account/tokens", { name: "unseen" })).status).toBe(500);
  } finally {
    await db`alter table audit_log drop constraint full_up`;
  }
  const { body } = await call("GET", `/api/v1/bases/${id}`, { token: person.token });
  expect(body.settings.turbo).toBe(false);
  expect((await person.get("/account/tokens")).text).not.toContain("unseen");
});

test("the account's members read it, page by page and by the API; of the operator they learn that it was one", async () => {
  const person = await made.person();
  const { db } = made.control.ctx;
  const by = { kind: "operator", name: "root@basetide.example" } as const;
  for (let index = 0; index < 60; index++) {
    const details = { name: `<b>${index}</b>` };
    await noteChange(db, by, { accountId: person.accountId, action: "base.changed", details });
  }
  const page = await person.get("/account/activity");
  expect(page.text).toContain("&lt;b>59");
  expect(page.text).not.toMatch(/<b>\d|root@basetide/);
  const older = /href="(\/account\/activity\?before=\d+)"/.exec(page.text)![1]!;
  expect((await person.get(older)).text).toContain("created the account");
  const call = caller(made.app);
  const { body } = await call("GET", "/api/v1/audit?limit=2", { token: person.token });
  expect(body).toEqual([
    expect.objectContaining({ actor: { kind: "operator", name: null }, details: { name: "<b>59</b>" } }),
    expect.objectContaining({ action: "base.changed" }),
  ]);
  const next = await call("GET", `/api/v1/audit?limit=1&before=${body[1].id}`, { token: person.token });
  expect(next.body).toMatchObject([{ details: { name: "<b>57</b>" } }]);
  expect((await call("GET", "/api/v1/audit?before=x", { token: person.token })).status).toBe(422);
});

test("the operator reads all of it, or one account's", async () => {
  const person = await made.person();
  const all = JSON.parse(await operate("audit", "list", "--limit", "5"));
  expect(all).toHaveLength(5);
  const own = JSON.parse(await operate("audit", "list", "--account", person.email));
  expect(own).toEqual([
    expect.objectContaining({ account: person.email, actor: "system basetide", action: "token.created" }),
    expect.objectContaining({ action: "account.created" }),
  ]);
});

test("entries are kept for 400 days", async () => {
  const { db } = made.control.ctx;
  const person = await made.person();
  await noteChange(db, undefined, { accountId: person.accountId, action: "base.changed" });
  await db`update audit_log set at = now() - interval '401 days'
    where account_id = ${person.accountId} and action = 'base.changed'`;
  await db`update audit_log set at = now() - interval '399 days'
    where account_id = ${person.accountId} and action = 'token.created'`;
  expect(await trimAudit(db)).toBe(1);
  expect((await told(person.accountId)).map(([, , action]) => action)).toEqual([
    "account.created",
    "token.created",
  ]);
});

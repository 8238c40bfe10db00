/** The audit log: each change is recorded in its own transaction, wherever it is made, and without secrets. */
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { countUserEvent, listChanges, recordChange } from "../../../core/control/audit";
import { trimTables } from "../../../core/control/retention";
import { PASSWORD, type TestConsole, testConsole } from "../../support/console-support";
import { caller, connectBase, GOOD_KEY, OTHER_KEY } from "../../support/control-support";
import { operate as operateHere, operatorEnv } from "../../support/operator";
import { until } from "../../support/poll";

let made: TestConsole;
beforeAll(async () => {
  made = await testConsole();
});
afterAll(() => made?.[Symbol.asyncDispose]());

type Person = Awaited<ReturnType<TestConsole["person"]>>;

/** The entries of the account's log, oldest first: actor, action, details. */
async function told(accountId: string) {
  const entries = await listChanges(made.control.ctx.db, { accountId, limit: 1000 });
  return entries
    .reverse()
    .map(({ actorKind, actor, action, details }) => [actorKind, actor, action, details]);
}

/** The entries of the account's log with these actions. */
async function toldOf(accountId: string, ...actions: string[]) {
  return (await told(accountId)).filter(([, , action]) => actions.includes(String(action)));
}

async function operate(...args: string[]): Promise<string> {
  const env = { ...operatorEnv(made.control.ctx.config), REPLICA_URL: inject("clusterUrl") };
  const { code, out, err } = await operateHere([...args, "--json"], env);
  expect([code, err]).toEqual([0, ""]);
  return out;
}

async function connected(person: Person): Promise<string> {
  const { status, body: base } = await connectBase(caller(made.app), person.token);
  expect(status).toBe(201);
  return base.id;
}

test("changes through the console, the API and the command line are in one log", async () => {
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
  await person.post("/account/tokens", { name: "laptop", read: "on" });
  await person.post("/account/members", { email: "new@example.org" });
  await person.post("/account/password", { current: PASSWORD, password: "another one" });
  await person.post("/requests", { kind: "other", message: "A pony" });
  await operate("base", "pause", id);
  await call("DELETE", `/api/v1/bases/${id}`, { token: person.token });
  const user = ["user", person.email];
  const token = ["token", "test"];
  expect(await told(person.accountId)).toEqual([
    ["system", "basetide", "account.created", { email: person.email, is_operator: false }],
    [
      "system",
      "basetide",
      "token.created",
      { name: "test", scopes: "read write credentials", expires_in_days: "never" },
    ],
    [...user, "sign_in.succeeded", { from: expect.any(String), browser: "new" }],
    [...token, "base.connected", { name: "Inventory", source_base: "appOne", destination: "new" }],
    [...token, "base.changed", { turbo: true, api_key: "replaced" }],
    [...token, "base.sync_requested", {}],
    [...user, "base.changed", { lookups_as_text: true }],
    [...user, "credentials.rotated", { name: expect.stringMatching(/^bt_/) }],
    [...user, "token.created", { name: "laptop", scopes: "read", expires_in_days: 90 }],
    [...user, "member.invited", { email: "new@example.org", role: "editor" }],
    [...user, "password.changed", {}],
    [...user, "request.created", { kind: "other", region: null, database: null }],
    ["cli", expect.any(String), "base.changed", { paused: true }],
    [...token, "base.deleted", { name: "Inventory", source_base: "appOne" }],
  ]);
});

test("a change that fails is not recorded, and one that cannot be recorded fails", async () => {
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
    expect((await person.post("/account/tokens", { name: "unseen", read: "on" })).status).toBe(500);
  } finally {
    await db`alter table audit_log drop constraint full_up`;
  }
  const { body } = await call("GET", `/api/v1/bases/${id}`, { token: person.token });
  expect(body.settings.turbo).toBe(false);
  expect((await person.get("/account/tokens")).text).not.toContain("unseen");
});

test("the account's members read it, page by page and through the API; an operator's name is not shown", async () => {
  const person = await made.person();
  const { db } = made.control.ctx;
  const by = { kind: "operator", name: "root@basetide.example" } as const;
  for (let index = 0; index < 60; index++) {
    const details = { name: `<b>${index}</b>` };
    await recordChange(db, by, { accountId: person.accountId, action: "base.changed", details });
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

test("the page names what entries are about, links to it, and filters by kind, person and base", async () => {
  const person = await made.person();
  const stranger = await made.person();
  const id = await connected(person);
  const theirs = await connected(stranger);
  await person.post(`/bases/${id}/settings/turbo`, { value: "on" });
  await person.post(`/bases/${id}/connect/rotate`, {});
  const { db } = made.control.ctx;
  const about = { accountId: person.accountId, action: "base.changed", subject: theirs } as const;
  await recordChange(db, { kind: "operator", name: "root@basetide.example" }, about);
  const listed = async (query: string) =>
    (await person.get(`/account/activity${query}`)).text.split('id="entries"')[1]!;

  const all = await listed("");
  const link = (path: string) => `<a href="${path}"><bdi>Inventory</bdi></a>`;
  expect(all).toContain(`connected a base: ${link(`/bases/${id}`)}`);
  expect(all).toContain(`changed settings: ${link(`/bases/${id}`)}`);
  expect(all).toContain(`rotated a database password: ${link(`/bases/${id}/connect`)}`);
  expect(all).toContain("Turbo: on");
  // A name of another account is not looked up.
  expect(all).toContain("a base that was deleted");
  expect(all).not.toContain(theirs);

  const ofBase = await listed(`?base=${id}`);
  for (const said of ["connected a base", "changed settings", "rotated a database password"])
    expect(ofBase).toContain(said);
  expect(ofBase).not.toMatch(/signed in|a base that was deleted/);
  expect(await listed(`?kind=bases&who=${encodeURIComponent(`user:${person.email}`)}`)).not.toMatch(
    /connected a base|rotated|signed in/,
  );
  expect(await listed("?kind=bases&who=operator")).toContain("a base that was deleted");
  for (const none of ["?base=%25", "?who=token:none", "?kind=alerts"])
    expect(await listed(none)).toContain("No entry matches");
  expect(await listed("?kind=unknown&who=unknown")).toContain("connected a base");
});

test("the operator reads all of it, or one account's", async () => {
  const person = await made.person();
  const all = JSON.parse(await operate("audit", "list", "--limit", "5"));
  expect(all).toHaveLength(5);
  const own = JSON.parse(await operate("audit", "list", "--account", person.email));
  expect(own).toEqual([
    expect.objectContaining({ actor: `user ${person.email}`, action: "sign_in.succeeded" }),
    expect.objectContaining({ account: person.email, actor: "system basetide", action: "token.created" }),
    expect.objectContaining({ action: "account.created" }),
  ]);
});

test("entries are kept for 400 days", async () => {
  const { db } = made.control.ctx;
  const person = await made.person();
  await recordChange(db, undefined, { accountId: person.accountId, action: "base.changed" });
  await db`update audit_log set at = now() - interval '401 days'
    where account_id = ${person.accountId} and action = 'base.changed'`;
  await db`update audit_log set at = now() - interval '399 days'
    where account_id = ${person.accountId} and action = 'token.created'`;
  expect(await trimTables(db)).toMatchObject({ audit_log: 1 });
  expect((await told(person.accountId)).map(([, , action]) => action)).toEqual([
    "account.created",
    "token.created",
    "sign_in.succeeded",
  ]);
});

test("an intruder's actions are in the log: failed sign-ins, a reset, ended sessions, shown credentials", async () => {
  const person = await made.person();
  const { token, email, accountId } = person;
  const call = caller(made.app);
  const id = await connected(person);
  for (let index = 0; index < 4; index++) {
    await made.client(`192.0.2.${index}`).post("/sign-in", { email: email.toUpperCase(), password: "wrong" });
  }
  const intruder = made.client("192.0.2.9");
  await intruder.post("/forgot-password", { email });
  const link = new URL((await made.nextMail(email)).path, "http://console");
  const password = "another password";
  await intruder.post("/reset-password", { token: link.searchParams.get("token")!, password });
  await intruder.post("/sign-in", { email, password });
  await made.client("192.0.2.10").post("/sign-in", { email, password });
  await intruder.post("/account/sessions/revoke-others", {});
  for (let index = 0; index < 3; index++) await call("GET", `/api/v1/bases/${id}/credentials`, { token });
  await intruder.post(`/bases/${id}/connect`, {});
  const user = ["user", email];
  const logged = await until(
    async () => {
      const found = await toldOf(
        accountId,
        ...["sign_in.succeeded", "sign_in.failed", "password.reset_requested", "password.reset"],
        ...["session.ended", "credentials.shown"],
      );
      return found.some(([, , , details]) => (details as { times?: number }).times === 4) && found;
    },
    { what: "what is counted in the background" },
  );
  const times = {
    user: email,
    times: expect.any(Number),
    last_from: expect.stringMatching(/^192\.0\.2\.\d$/),
  };
  expect(logged).toHaveLength(9);
  expect(logged).toEqual(
    expect.arrayContaining([
      ["system", "basetide", "sign_in.failed", { ...times, times: 4 }],
      ["system", "basetide", "password.reset_requested", { ...times, times: 1 }],
      [...user, "password.reset", {}],
      // The reset has made the browser known.
      [...user, "sign_in.succeeded", { from: "192.0.2.9", browser: "known" }],
      [...user, "sign_in.succeeded", { from: "192.0.2.10", browser: "new" }],
      [...user, "session.ended", { sessions: 1 }],
      ["token", "test", "credentials.shown", { name: expect.stringMatching(/^bt_/), times: 3 }],
      [...user, "credentials.shown", { name: expect.stringMatching(/^bt_/), times: 1 }],
    ]),
  );
  const page = await intruder.get("/account/activity");
  expect(page.text).toContain("viewed database credentials");
  expect(page.text).toContain("4 times");
  const own = JSON.parse(await operate("audit", "list", "--account", email));
  expect(own.map(({ action }: { action: string }) => action)).toContain("sign_in.failed");
  const subjects = made.mails.filter(({ to }) => to === email).map(({ subject }) => subject);
  expect(subjects).toEqual(expect.arrayContaining(["Your password was changed", "New sign-in to Basetide"]));
}, 240_000);

test("strangers cannot fill the log: failed sign-ins are one entry per hour", async () => {
  const person = await made.person();
  const failures = 100;
  await Promise.all(
    Array.from({ length: failures }, () =>
      countUserEvent(made.control.ctx.db, person.email, { action: "sign_in.failed" }),
    ),
  );
  const entries = await toldOf(person.accountId, "sign_in.failed");
  // Two if the hour ended in between.
  expect(entries.length).toBeLessThanOrEqual(2);
  const counts = entries.map(([, , , details]) => (details as { times: number }).times);
  expect(counts.reduce((one, other) => one + other)).toBe(failures);
});

test("a new token is mailed to the owner, however many mails others have requested", async () => {
  const person = await made.person();
  const { email } = person;
  for (let index = 0; index < 4; index++) await made.client().post("/forgot-password", { email });
  await person.post("/account/tokens", { name: "laptop", read: "on", write: "on" });
  const notice = await until(() => made.mails.find((one) => one.to === email && /token/.test(one.subject)), {
    what: "the notice",
  });
  expect(notice.text).toContain(`${email} created the API token "laptop", with the scopes read, write.`);
});

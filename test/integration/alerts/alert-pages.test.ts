/** The pages and the API of alerts: selected kinds, webhooks and their secrets, deliveries. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { consoleApp } from "../../../apps/console/app";
import { usualKinds } from "../../../core/alerts";
import { createBase } from "../../../core/control/bases";
import { type TestConsole, testConsole } from "../../support/console-support";
import { caller, GOOD_KEY } from "../../support/control-support";
import { startReceiver } from "../../support/receiver";

let made: TestConsole;
beforeAll(async () => {
  made = await testConsole({ config: { smtpUrl: "smtp://127.0.0.1:1" } });
});
afterAll(() => made?.[Symbol.asyncDispose]());

const PATH = "/account/alerts";
const chosen = (html: string, prefix: string) =>
  [...html.matchAll(/<input[^>]*>/g)]
    .map(([input]) => input)
    .filter((input) => input.includes(`id="${prefix}-`) && /\schecked/.test(input))
    .map((input) => /name="(\w+)"/.exec(input)![1]);

test("a form selects the alerts to receive; the default is all but harmless schema changes", async () => {
  const person = await made.person();
  const page = await person.get(PATH);
  expect(page.status).toBe(200);
  expect(chosen(page.text, "mail")).toEqual(usualKinds);
  const saved = await person.post(PATH, { red: "on", schema_changed: "on" });
  expect(saved.location).toBe(`${PATH}`);
  expect(chosen((await person.get(saved.location!)).text, "mail")).toEqual(["red", "schema_changed"]);
  await person.post(PATH, {});
  expect(chosen((await person.get(PATH)).text, "mail")).toEqual([]);
  const call = caller(made.app);
  const { body } = await call("GET", "/api/v1/audit?limit=2", { token: person.token });
  expect(body).toMatchObject([
    { action: "alerts.changed", details: { email: person.email, kinds: "none" } },
    { action: "alerts.changed", details: { kinds: "red schema_changed" } },
  ]);
});

test("a webhook is created, tested, changed, disabled and deleted; its secret is shown once, its URL never", async () => {
  await using receiver = startReceiver();
  const person = await made.person();
  const url = receiver.url("/services/hidden-path");
  const added = await person.post(`${PATH}/webhooks`, { url, form: "slack", name: "Ops", red: "on" });
  expect(added.status).toBe(303);
  const page = await person.get(added.location!);
  const secret = /whsec_[\w-]{43}/.exec(page.text)![0];
  const path = /action="(\/account\/alerts\/webhooks\/whk_\w+)"/.exec(page.text)![1]!;
  expect(chosen(page.text, "webhook")).toEqual(["red"]);

  const tried = await person.post(`${path}/test`, {});
  expect(tried.location).toBe(`${path}`);
  expect(JSON.parse(receiver.received[0]!.body).text).toContain("“Ops”");
  receiver.answer = { status: 503 };
  const failed = await person.post(`${path}/test`, {});
  expect((await person.get(failed.location!)).text).toContain("The receiver answered 503");
  for (const shown of [await person.get(path), await person.get(PATH)]) {
    expect(shown.text).toContain("Failing");
    expect(shown.text).not.toContain(secret);
    expect(shown.text).not.toContain("hidden-path");
  }

  await person.post(path, { name: "Night shift", form: "json", url: "", recovered: "on" });
  receiver.answer = { status: 200 };
  await person.post(`${path}/test`, {});
  expect(JSON.parse(receiver.received.at(-1)!.body)).toMatchObject({ test: true, alerts: [] });
  await person.post(`${path}/off`, {});
  expect((await person.get(path)).text).toContain("Turn on");
  expect((await person.post(`${path}/delete`, {})).location).toBe(`${PATH}`);
  expect((await person.get(path)).status).toBe(404);
  expect((await person.get("/account/activity")).text).not.toMatch(/whsec_|hidden-path/);
});

test("an unusable URL is refused next to its field, and nothing is created", async () => {
  const person = await made.person();
  const refused = {
    "": "begins with https://",
    "ftp://example.com": "begins with https://",
    "https://a:b@127.0.0.1/": "must not contain a user or password",
    "http://169.254.169.254/": "private network",
    "http://10.1.2.3/": "private network",
  };
  for (const [url, why] of Object.entries(refused)) {
    const answer = await person.post(`${PATH}/webhooks`, { url, form: "json", name: "<b>Mine</b>" });
    expect([url, answer.status]).toEqual([url, 422]);
    expect(answer.text).toContain(why);
    expect(answer.text).not.toContain("<b>Mine");
  }
  expect((await person.get(PATH)).text).toContain("Add a webhook");
  const { ctx } = made.control;
  const production = consoleApp({ ...ctx, config: { ...ctx.config, isProduction: true } });
  const call = caller(production);
  const body = { url: "http://127.0.0.1:1/" };
  const { status } = await call("POST", "/api/v1/alerts/webhooks", { token: person.token, body });
  expect(status).toBe(422);
});

test("abandoned deliveries are on the page, with the reason and the number of attempts", async () => {
  const person = await made.person();
  const { ctx } = made.control;
  const { db } = ctx;
  const { id } = await createBase(ctx, person.accountId, {
    platform: "airtable",
    apiKey: GOOD_KEY,
    sourceBaseId: "appOne",
  });
  expect((await person.get(PATH)).text).not.toContain("red now");
  await db`
    update bases set error_code = 'source_unavailable', error_message = 'Away', error_since = now() where id = ${id}`;
  await db`
    insert into alert_messages (id, account_id, user_id, at, subject, state, attempts, error)
    select 'msg_1', account_id, user_id, now(), 'Inventory has turned red', 'given_up', 9, 'The mail server answered 550'
    from account_members where account_id = ${person.accountId}`;
  const { text } = await person.get(PATH);
  expect(text).toContain("1 base is red now");
  expect(text).toContain("</a>: Airtable");
  expect(text).not.toContain("Away");
  expect(text).toContain(`href="/bases/${id}"`);
  expect(text).toContain("Not delivered");
  expect(text).toContain("The mail server answered 550; 9 attempts");
  const { body } = await caller(made.app)("GET", "/api/v1/alerts", { token: person.token });
  expect(body.messages).toMatchObject([
    { channel: "mail", to: person.email, state: "given_up", attempts: 9 },
  ]);
});

test("the API does the same as the pages", async () => {
  await using receiver = startReceiver();
  const person = await made.person();
  const call = caller(made.app);
  const ask = async (method: string, path: string, body?: unknown) =>
    call(method, `/api/v1/alerts${path}`, { token: person.token, ...(body === undefined ? {} : { body }) });
  const [member] = (await ask("GET", "")).body.members;
  expect(member).toEqual({
    user_id: expect.stringMatching(/^usr_/),
    email: person.email,
    kinds: usualKinds,
  });
  const changed = await ask("PATCH", "", {
    members: [{ user_id: member.user_id, kinds: ["schema_changed", "red"] }],
  });
  expect(changed.body.members[0].kinds).toEqual(["red", "schema_changed"]);
  const nobody = {
    members: [
      { user_id: member.user_id, kinds: [] },
      { user_id: "usr_x", kinds: [] },
    ],
  };
  expect((await ask("PATCH", "", nobody)).status).toBe(404);
  expect((await ask("GET", "")).body.members[0].kinds).toEqual(["red", "schema_changed"]);
  expect((await ask("PATCH", "", { members: [{ user_id: member.user_id, kinds: ["rde"] }] })).status).toBe(
    422,
  );

  const { status, body: hook } = await ask("POST", "/webhooks", { url: receiver.url(), kinds: ["red"] });
  expect([status, hook.name, hook.form, hook.kinds]).toEqual([201, "127.0.0.1", "json", ["red"]]);
  expect(hook.secret).toMatch(/^whsec_/);
  const one = await ask("GET", `/webhooks/${hook.id}`);
  expect(one.body).toEqual({ ...hook, secret: undefined });
  expect((await ask("POST", `/webhooks/${hook.id}/test`)).body).toEqual({ ok: true, error: null });
  expect((await ask("PATCH", `/webhooks/${hook.id}`, { on: false })).body).toMatchObject({
    on: false,
    kinds: ["red"],
  });
  for (let index = 0; index < 9; index++) await ask("POST", `/webhooks/${hook.id}/test`);
  expect((await ask("POST", `/webhooks/${hook.id}/test`)).status).toBe(429);
  expect((await ask("DELETE", `/webhooks/${hook.id}`)).status).toBe(204);
  expect((await ask("GET", "/webhooks")).body).toEqual([]);
  for (let index = 0; index < 10; index++) await ask("POST", "/webhooks", { url: receiver.url() });
  expect((await ask("POST", "/webhooks", { url: receiver.url() })).status).toBe(409);
});

/** Limits on guessing and on the rate of calls: by the client's address, by the attempted account, by the token. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { consoleApp } from "../../../apps/console/app";
import { createAuth } from "../../../apps/console/auth/auth";
import { trimTables } from "../../../core/control/retention";
import { PASSWORD, type TestConsole, testConsole } from "../../support/console-support";
import { caller } from "../../support/control-support";
import { until } from "../../support/poll";

let made: TestConsole;
beforeAll(async () => {
  made = await testConsole({ config: { apiRequestsPerMinute: 20 } });
});
afterAll(() => made?.[Symbol.asyncDispose]());

/** One guess from an address of its own. */
const guess = (email: string, password: string) => made.client().post("/sign-in", { email, password });

/** As if the last account that was guessed at had been guessed at so often. */
async function skipTo(count: number): Promise<void> {
  const { db } = made.control.ctx;
  await db`update attempts set count = ${count} where key = (
    select key from attempts where key like 'account-sign-in%' order by ends_at desc limit 1)`;
}

test("guesses at one account from many addresses are stopped, alike for an account that does not exist", async () => {
  const email = `${crypto.randomUUID()}@example.org`;
  await made.control.addAccount(email);
  const outcomes: Record<string, number[]> = {};
  for (const [name, address] of [
    ["an account", email],
    ["none", `${crypto.randomUUID()}@example.org`],
  ] as const) {
    outcomes[name] = [];
    for (let index = 0; index < 9; index++) {
      // Passwords are checked four a second: most guesses are only counted.
      if (index === 4) await skipTo(27);
      // In any notation it is one address.
      const written = index % 2 ? address.toUpperCase() : ` ${address}`;
      outcomes[name].push((await guess(written, `wrong ${index}`)).status);
    }
  }
  expect(outcomes["an account"]).toEqual([...Array(7).fill(422), 429, 429]);
  expect(outcomes.none).toEqual(outcomes["an account"]);
  const refused = await guess(email, PASSWORD);
  expect(refused.status).toBe(429);
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(800);
  expect(refused.text).toContain("Too many attempts");
  const { db } = made.control.ctx;
  await db`update attempts set ends_at = now()`;
  expect((await guess(email, PASSWORD)).status).toBe(303);
}, 240_000);

test("a successful sign-in resets the count, so that the user with the password is not locked out", async () => {
  const email = `${crypto.randomUUID()}@example.org`;
  await made.control.addAccount(email);
  const { db } = made.control.ctx;
  for (let index = 0; index < 5; index++) await guess(email, "wrong");
  const [before] = await db<
    { count: number }[]
  >`select max(count) as count from attempts where key like 'account-sign-in%'`;
  expect(before!.count).toBeGreaterThanOrEqual(5);
  await db`update attempts set count = 29 where key like 'account-sign-in%'`;
  expect((await guess(email, PASSWORD)).status).toBe(303);
  expect((await guess(email, PASSWORD)).status).toBe(303);
});

test("an address gets two reset links an hour, from any number of clients; other mails continue", async () => {
  const email = `${crypto.randomUUID()}@example.org`;
  await made.control.addAccount(email);
  const ask = (address: string) => made.client().post("/forgot-password", { email: address });
  const answers = [await ask(email), await ask(email.toUpperCase()), await ask(email)];
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 429]);
  expect(answers[2]!.text).toContain("Use the link in the last mail");
  expect(Number(answers[2]!.headers.get("retry-after"))).toBeGreaterThan(3000);
  const mails = () => made.mails.filter(({ to }) => to === email).length;
  await until(() => mails() === 2, { what: "both mails have been sent" });
  // M2: the links in them work, and then the budget is full again.
  const link = made.mails.find(({ to }) => to === email)!;
  const token = /token=(\S+)/.exec(link.text)![1]!;
  const set = await made.client().post("/reset-password", { token, password: "another one" });
  expect(set.location).toBe("/sign-in?done=password");
  expect((await ask(email)).status).toBe(200);
  // M1: signing up has a budget of its own.
  expect((await made.client().post("/signup", { email, password: "another one" })).status).toBe(200);
});

test("an invitation's address, account and client have limits: inviting again and withdrawing count", async () => {
  const [owner, other] = [await made.person(), await made.person()];
  const email = "ceo@victim.example";
  const { db } = made.control.ctx;
  const invite = async (by: typeof owner, to = email) => {
    const { status, headers } = await by.post("/account/members", { email: to });
    return status === 429 ? `429 ${Number(headers.get("retry-after")) > 60}` : status;
  };
  const withdraw = async () => {
    const [open] = await db`select id from invitations where account_id = ${owner.accountId}`;
    await owner.post(`/account/invitations/${open!.id}/withdraw`, {});
  };
  const answers: unknown[] = [];
  for (let index = 0; index < 6; index++) {
    answers.push(await invite(owner));
    if (index % 2) await withdraw();
  }
  expect(answers).toEqual([...Array(5).fill(303), "429 true"]);
  expect(await invite(other)).toBe("429 true");
  const mails = () => made.mails.filter(({ to }) => to === email).length;
  await until(() => mails() === 5, { what: "five mails have been sent" });
  // By the client's network: 20 an hour, of which 6 are used up.
  const more: unknown[] = [];
  for (let index = 0; index < 15; index++) more.push(await invite(owner, `person-${index}@example.org`));
  expect(more).toEqual([...Array(14).fill(303), "429 true"]);
  // By the account: 50 a day, from any of its members.
  await db`update attempts set count = 50 where key like 'mail-invitation-account-day%'`;
  await db`delete from attempts where key like 'mail-client%'`;
  expect(await invite(owner, "one-more@example.org")).toBe("429 true");
  const [none] = await db`select from invitations where email = 'one-more@example.org'`;
  expect(none).toBeUndefined();
}, 240_000);

test("signing in with an unconfirmed address sends its link at most five times an hour", async () => {
  const email = `${crypto.randomUUID()}@example.org`;
  const password = "another one";
  await made.client().post("/signup", { email, password });
  for (let index = 0; index < 8; index++) {
    expect((await made.client().post("/sign-in", { email, password })).status).toBe(422);
  }
  const mails = () => made.mails.filter(({ to }) => to === email).length;
  await until(() => mails() === 5, { what: "five mails have been sent" });
});

test("S20: a client over its limit adds no rows, and housekeeping deletes expired ones", async () => {
  const { db } = made.control.ctx;
  await db`delete from attempts`;
  for (let index = 0; index < 100; index++) {
    const answer = await made.client("203.0.113.77").post("/sign-in", {
      email: `${crypto.randomUUID()}@example.org`,
      password: "wrong",
    });
    expect(answer.status).toBe(index < 10 ? 422 : 429);
  }
  const count = async () => (await db<{ n: number }[]>`select count(*)::int as n from attempts`)[0]!.n;
  expect(await count()).toBeLessThanOrEqual(11);
  await db`update attempts set ends_at = now()`;
  await trimTables(db);
  expect(await count()).toBe(0);
});

test("L4: a client over its limit is refused without its body and without the database; other clients and consoles are not affected", async () => {
  const { ctx } = made.control;
  const address = "203.0.113.78";
  const stranger = () => ({ email: `${crypto.randomUUID()}@example.org`, password: "wrong" });
  for (let index = 0; index < 11; index++) await made.client(address).post("/sign-in", stranger());
  const send = async (from: string, path: string) => {
    // Its body never ends.
    const body = new ReadableStream();
    const headers = {
      "x-client": from,
      "sec-fetch-site": "same-origin",
      accept: "text/html",
      // Without a type, the body would not be read in any case.
      "content-type": "application/x-www-form-urlencoded",
    };
    return made.app.handle(new Request(`http://console${path}`, { method: "POST", headers, body }));
  };
  const locked = await ctx.db.reserve();
  try {
    await locked`begin`;
    await locked`lock table attempts, users in access exclusive mode`;
    const refused = await send(address, "/sign-in");
    const seconds = Number(refused.headers.get("retry-after"));
    expect([refused.status, seconds > 0 && seconds <= 60]).toEqual([429, true]);
    expect(await refused.text()).toContain(`Too many attempts. Try again in ${seconds} seconds.`);
    expect(refused.headers.get("content-security-policy")).toContain("default-src 'none'");
  } finally {
    await locked`rollback`;
    locked.release();
  }
  // Another form, another network.
  expect((await made.client(address).post("/signup", { ...stranger(), password: "short" })).status).toBe(422);
  expect((await made.client("203.0.113.79").post("/sign-in", stranger())).status).toBe(422);
  // The control plane counts for all: a console that has not seen this client refuses it, too.
  const { consoleClient } = await import("../../support/console-client");
  const other = consoleClient(consoleApp(ctx, createAuth(ctx)), address);
  expect((await other.post("/sign-in", stranger())).status).toBe(429);
}, 120_000);

test("the addresses of one IPv6 /64 are one client", async () => {
  const statuses: number[] = [];
  for (let index = 0; index < 12; index++) {
    const client = made.client(`2001:db8:7:7:${index + 1}::${index + 1}`);
    statuses.push(
      (await client.post("/sign-in", { email: `${crypto.randomUUID()}@example.org`, password: "wrong" }))
        .status,
    );
  }
  expect(statuses).toEqual([...Array(10).fill(422), 429, 429]);
});

test("the count is shared by all consoles, and by concurrent attempts", async () => {
  const email = `${crypto.randomUUID()}@example.org`;
  const { ctx } = made.control;
  const apps = [made.app, consoleApp(ctx, createAuth(ctx))];
  const { consoleClient } = await import("../../support/console-client");
  await guess(email, "wrong");
  await skipTo(22);
  const all = await Promise.all(
    Array.from({ length: 18 }, (_, index) =>
      consoleClient(apps[index % 2]!).post("/sign-in", { email, password: "wrong" }),
    ),
  );
  expect(all.filter(({ status }) => status === 429)).toHaveLength(10);
}, 240_000);

test("a token has a number of calls a minute, and is told when to continue; others are unaffected", async () => {
  const [one, other] = [await made.person(), await made.person()];
  const app = consoleApp(made.control.ctx);
  const call = caller(app);
  const statuses: number[] = [];
  for (let index = 0; index < 22; index++) {
    statuses.push((await call("GET", "/api/v1/bases", { token: one.token })).status);
  }
  expect(statuses).toEqual([...Array(20).fill(200), 429, 429]);
  const refused = await call("GET", "/api/v1/platforms", { token: one.token });
  expect(refused.body).toEqual({
    error: {
      code: "rate_limited",
      message: expect.stringMatching(/Retry in \d+ s/),
      request_id: expect.any(String),
    },
  });
  const seconds = Number(refused.headers.get("retry-after"));
  expect(seconds).toBeGreaterThan(0);
  expect(seconds).toBeLessThanOrEqual(60);
  expect((await call("GET", "/api/v1/bases", { token: other.token })).status).toBe(200);
  // Pages and health are not part of the API.
  expect((await call("GET", "/healthz")).status).toBe(200);
  expect((await one.get("/bases")).status).toBe(200);
});

test("an address that guesses tokens has a number of attempts a minute", async () => {
  const app = consoleApp(made.control.ctx);
  const ask = async (address: string) => {
    const token = `bt_${crypto.randomUUID()}`;
    const headers = { authorization: `Bearer ${token}`, "x-client": address };
    return (await app.handle(new Request("http://console/api/v1/bases", { headers }))).status;
  };
  const statuses: number[] = [];
  for (let index = 0; index < 82; index++) statuses.push(await ask("198.18.0.9"));
  expect(statuses).toEqual([...Array(80).fill(401), 429, 429]);
  expect(await ask("198.18.0.10")).toBe(401);
});

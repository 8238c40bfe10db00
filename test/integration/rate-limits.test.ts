/** Limits on guessing and on calling too often: by the client's address, by the account that is tried, by the token. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { consoleApp } from "../../apps/console/app";
import { createAuth } from "../../apps/console/auth/auth";
import { until } from "../support/poll";
import { PASSWORD, type TestConsole, testConsole } from "./console-support";
import { caller } from "./control-support";

let made: TestConsole;
beforeAll(async () => {
  made = await testConsole({ config: { apiRequestsPerMinute: 20 } });
});
afterAll(() => made?.[Symbol.asyncDispose]());

/** One guess from an address of its own. */
const guess = (email: string, password: string) => made.client().post("/sign-in", { email, password });

test("guesses at one account from all the world come to an end, the same for one that is not there", async () => {
  const email = `${crypto.randomUUID()}@example.org`;
  await made.control.addAccount(email);
  const outcomes: Record<string, number[]> = {};
  for (const [name, address] of [
    ["an account", email],
    ["none", `${crypto.randomUUID()}@example.org`],
  ] as const) {
    outcomes[name] = [];
    for (let index = 0; index < 32; index++) {
      // However it is written, it is one address.
      const written = index % 2 ? address.toUpperCase() : ` ${address}`;
      outcomes[name].push((await guess(written, `wrong ${index}`)).status);
    }
  }
  expect(outcomes["an account"]).toEqual([...Array(30).fill(422), 429, 429]);
  expect(outcomes.none).toEqual(outcomes["an account"]);
  const refused = await guess(email, PASSWORD);
  expect(refused.status).toBe(429);
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(800);
  expect(refused.text).toContain("Too many attempts");
  const { db } = made.control.ctx;
  await db`update attempts set ends_at = now()`;
  expect((await guess(email, PASSWORD)).status).toBe(303);
}, 60_000);

test("who gets in begins anew, so that nobody is kept out who knows the password", async () => {
  const email = `${crypto.randomUUID()}@example.org`;
  await made.control.addAccount(email);
  const { db } = made.control.ctx;
  for (let index = 0; index < 5; index++) await guess(email, "wrong");
  const [before] = await db<
    { count: number }[]
  >`select max(count) as count from attempts where key like 'sign-in%'`;
  expect(before!.count).toBeGreaterThanOrEqual(5);
  await db`update attempts set count = 29 where key like 'sign-in%'`;
  expect((await guess(email, PASSWORD)).status).toBe(303);
  expect((await guess(email, PASSWORD)).status).toBe(303);
});

test("nobody is sent more than a few mails an hour, from however many addresses they are asked for", async () => {
  const email = `${crypto.randomUUID()}@example.org`;
  await made.control.addAccount(email);
  const statuses: number[] = [];
  for (let index = 0; index < 12; index++) {
    statuses.push((await made.client().post("/forgot-password", { email })).status);
  }
  expect(statuses).toEqual([...Array(10).fill(200), 429, 429]);
  const mails = () => made.mails.filter(({ to }) => to === email).length;
  await until(() => mails() === 10, { what: "ten mails have gone out" });
  expect(await made.client().post("/signup", { email, password: "another one" })).toMatchObject({
    status: 429,
  });
});

test("the count is shared by all consoles, and by attempts that come at once", async () => {
  const email = `${crypto.randomUUID()}@example.org`;
  const { ctx } = made.control;
  const apps = [made.app, consoleApp(ctx, createAuth(ctx))];
  const { consoleClient } = await import("../support/console-client");
  const all = await Promise.all(
    Array.from({ length: 40 }, (_, index) =>
      consoleClient(apps[index % 2]!).post("/sign-in", { email, password: "wrong" }),
    ),
  );
  expect(all.filter(({ status }) => status === 429)).toHaveLength(10);
}, 60_000);

test("a token has so many calls a minute, and is told when to go on; others go on", async () => {
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
      message: expect.stringMatching(/Go on in \d+ s/),
      request_id: expect.any(String),
    },
  });
  const seconds = Number(refused.headers.get("retry-after"));
  expect(seconds).toBeGreaterThan(0);
  expect(seconds).toBeLessThanOrEqual(60);
  expect((await call("GET", "/api/v1/bases", { token: other.token })).status).toBe(200);
  // Pages and health are not the API.
  expect((await call("GET", "/healthz")).status).toBe(200);
  expect((await one.get("/bases")).status).toBe(200);
});

test("an address that tries tokens has so many tries a minute", async () => {
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

/** No one can lock an account's owner out: neither one client nor many, and no forged cookie helps a stranger. */
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createDevices } from "../../../apps/console/auth/devices";
import { createAttemptLimits } from "../../../apps/console/auth/limits";
import { createAttemptCounter } from "../../../core/attempts";
import { derivedKeys } from "../../../core/secrets";
import { PASSWORD, type TestConsole, testConsole } from "../../support/console-support";

let made: TestConsole;
beforeAll(async () => {
  made = await testConsole();
});
afterAll(() => made?.[Symbol.asyncDispose]());

const limits = () => createAttemptLimits(createAttemptCounter(made.control.ctx));
const DEVICE = "basetide.device";
const RUNS = Math.max(1, Number(process.env.FUZZ_RUNS) || 1);

/** An unknown browser in a network of its own. */
const stranger = () => ({ network: crypto.randomUUID(), device: null });

/** As many attempts as needed until strangers are refused at the account. */
async function exhaust(email: string) {
  for (let index = 0; index < 35; index++) await limits().signIn(email, stranger());
  expect(await limits().signIn(email, stranger())).toMatchObject({ reason: "too_many" });
}

const signIn = (client: ReturnType<TestConsole["client"]>, email: string, password: string) =>
  client.post("/sign-in", { email, password });

test("S11: one client's attempts beyond its own limit do not count for the account", async () => {
  const { email } = await made.person();
  const attacker = "203.0.113.31";
  const answers: number[] = [];
  for (let index = 0; index < 35; index++) {
    answers.push((await signIn(made.client(attacker), email, "wrong")).status);
  }
  expect(answers).toEqual([...Array(10).fill(422), ...Array(25).fill(429)]);
  // From an unknown browser; and from the attacker's network by a known one.
  const owner = made.client();
  expect((await signIn(owner, email, PASSWORD)).status).toBe(303);
  const neighbor = made.client(attacker);
  neighbor.cookies.set(DEVICE, owner.cookies.get(DEVICE)!);
  expect((await signIn(neighbor, email, PASSWORD)).status).toBe(303);
}, 240_000);

test("browsers that are known to an account keep no known browser of another account waiting, from its own network either", async () => {
  const { email } = await made.person();
  const cookies: string[] = [];
  for (let at = 0; at < 6; at++) {
    const browser = made.client();
    expect((await signIn(browser, email, PASSWORD)).status).toBe(303);
    cookies.push(browser.cookies.get(DEVICE)!);
  }
  const owner = await made.person();
  const network = "203.0.113.41";
  const attempts = cookies.flatMap((cookie) =>
    Array.from({ length: 10 }, () => {
      const browser = made.client(network);
      browser.cookies.set(DEVICE, cookie);
      return signIn(browser, email, "wrong");
    }),
  );
  const known = made.client(network);
  known.cookies.set(DEVICE, owner.cookies.get(DEVICE)!);
  expect((await signIn(known, owner.email, PASSWORD)).status).toBe(303);
  const checked = (await Promise.all(attempts)).filter(({ status }) => status === 422);
  expect(checked.length).toBeLessThan(20);
}, 60_000);

test("S11: while unknown browsers are refused, a browser that signed in before is admitted; a new one after a reset", async () => {
  const person = await made.person();
  const { email } = person;
  await person.post("/sign-out", {});
  expect(person.cookies.get(DEVICE)).toBeDefined();
  await exhaust(email);
  expect((await signIn(made.client(), email, PASSWORD)).status).toBe(429);
  const previous = person.cookies.get(DEVICE);
  expect((await signIn(person, email, PASSWORD)).status).toBe(303);
  expect(person.cookies.get(DEVICE)).not.toBe(previous);

  await exhaust(email);
  const visitor = made.client();
  await visitor.post("/forgot-password", { email });
  const token = new URL((await made.nextMail(email)).path, "http://console").searchParams.get("token")!;
  await visitor.post("/reset-password", { token, password: "a whole new one" });
  // The attempts are forgotten for every browser, and the one that set the password stays known.
  expect((await signIn(made.client(), email, "a whole new one")).status).toBe(303);
  await exhaust(email);
  expect((await signIn(visitor, email, "a whole new one")).status).toBe(303);
  // A browser that was known by the old password is unknown now.
  await exhaust(email);
  expect((await signIn(person, email, "a whole new one")).status).toBe(429);
}, 240_000);

test("the cookie of a known browser is HttpOnly and Lax, and does not lift its own limit", async () => {
  const { email } = await made.person();
  const client = made.client();
  const { headers } = await signIn(client, email, PASSWORD);
  const cookie = headers.getSetCookie().find((one) => one.startsWith(DEVICE));
  expect(cookie).toMatch(/; Max-Age=34560000; Path=\/; HttpOnly; SameSite=Lax$/);
  await exhaust(email);
  const device = "of a browser";
  const answers: unknown[] = [];
  for (let index = 0; index < 12; index++)
    answers.push((await limits().signIn(email, { ...stranger(), device }))?.reason);
  expect(answers).toEqual([...Array(10).fill(undefined), "too_many", "too_many"]);
}, 240_000);

test("property: whatever strangers do, the first attempt of a known browser and of one after a reset is admitted", async () => {
  const { email } = await made.person();
  const other = `${crypto.randomUUID()}@example.org`;
  const network = fc.oneof(fc.ipV4(), fc.constantFrom("203.0.113.1", "203.0.113.2"));
  const attempt = fc.record({
    network,
    email: fc.constantFrom(email, email, email.toUpperCase(), other),
    device: fc.option(fc.constantFrom("a stranger's", "another stranger's")),
    times: fc.integer({ min: 1, max: 12 }),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(attempt, { maxLength: 8 }), fc.boolean(), async (attempts, isReset) => {
      for (const { network, email, device, times } of attempts) {
        for (let index = 0; index < times; index++) await limits().signIn(email, { network, device });
      }
      if (isReset) {
        await limits().forgive(email, null);
        expect(await limits().signIn(email, stranger())).toBeNull();
      }
      // Even from the attacker's own network.
      const owner = { network: attempts[0]?.network ?? "", device: crypto.randomUUID() };
      expect(await limits().signIn(email, owner)).toBeNull();
    }),
    { numRuns: 10 * RUNS },
  );
}, 240_000);

test("property: only a cookie for this account, this password and these keys makes a browser known", async () => {
  const { db, config } = made.control.ctx;
  const [{ email }, { email: other }] = [await made.person(), await made.person()];
  const keys = derivedKeys(config, "devices");
  const devices = createDevices(db, keys, false);
  const stranger = createDevices(db, ["another key"], false);
  const request = (cookie: string) => new Request("http://console/", { headers: { cookie } });
  const cookieOf = async (from: typeof devices, address: string) =>
    (await from.cookie(request(""), address))!.split(";")[0]!;
  const own = await cookieOf(devices, email);
  expect(await devices.find(request(own), email.toUpperCase())).toMatch(/^[\w-]{22}$/);
  // One browser, two accounts.
  const both = (await devices.cookie(request(own), other))!.split(";")[0]!;
  expect(await devices.find(request(both), email)).not.toBeNull();
  expect(await devices.find(request(both), other)).not.toBeNull();
  // SECRET_KEY was rotated.
  const rotated = createDevices(db, ["a new key", ...keys], false);
  expect(await rotated.find(request(own), email)).not.toBeNull();

  const foreign = [await cookieOf(devices, other), await cookieOf(stranger, email), `${DEVICE}=`];
  const value = own.slice(DEVICE.length + 1);
  const forged = fc.oneof(
    fc.constantFrom(...foreign),
    fc.string().map((text) => `${DEVICE}=${text.replaceAll(/[^!-~]/g, "")}`),
    fc
      .record({ at: fc.nat(value.length - 2), by: fc.constantFrom("A", "B", "0", "9", "~", ".", "") })
      .map(({ at, by }) => value.slice(0, at) + by + value.slice(at + 1))
      .filter((text) => text !== value)
      .map((text) => `${DEVICE}=${text}`),
  );
  await fc.assert(
    fc.asyncProperty(forged, async (cookie) => {
      expect(await devices.find(request(cookie), email)).toBeNull();
    }),
    { numRuns: 100 * RUNS },
  );
  await db`update user_logins set password = password || 'x'
    where user_id = (select id from users where email = ${email})`;
  expect(await devices.find(request(own), email)).toBeNull();
}, 240_000);

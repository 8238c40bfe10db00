/** The second factor: turned on with an app, asked for at every sign-in, and kept through a rotation of SECRET_KEY. */
import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { removeTwoFactor } from "../../../core/control/accounts";
import { examineTwoFactors, rotateTwoFactors } from "../../../core/control/setup/two-factor-encryption";
import { PASSWORD, type TestConsole, testConsole } from "../../support/console-support";
import { totpCode } from "../../support/totp";

const PATH = "/account/sign-in/two-factor";

let made: TestConsole;
beforeAll(async () => {
  made = await testConsole();
});
afterAll(() => made?.[Symbol.asyncDispose]());

/** A user with a second factor. */
async function protectedPerson() {
  const person = await made.person();
  await person.post(PATH, { password: PASSWORD });
  const { text } = await person.get(PATH);
  const uri = /name="uri" value="([^"]+)"/.exec(text)![1]!.replaceAll("&amp;", "&");
  const codes = /name="codes" value="([^"]+)"/.exec(text)![1]!.split(" ");
  const secret = new URL(uri).searchParams.get("secret")!;
  const form = { uri, codes: codes.join(" ") };
  return { person, secret, codes, form };
}

async function turnOn() {
  const { form, ...rest } = await protectedPerson();
  const on = await rest.person.post(`${PATH}/confirm`, { ...form, code: totpCode(rest.secret) });
  expect([on.status, on.location]).toEqual([303, PATH]);
  return rest;
}

/** The first step of a sign-in. */
async function withPassword(email: string) {
  const visitor = made.client();
  const step = await visitor.post("/sign-in", { email, password: PASSWORD, next: "/account" });
  return { visitor, location: step.location };
}

const WRONG = "000000";
/** A code after the one that has turned the second factor on. */
const nextCode = (secret: string) => totpCode(secret, 1);

test("it needs the password and a code of the app, and only then are sign-ins different", async () => {
  const person = await made.person();
  const refused = await person.post(PATH, { password: "wrong password" });
  expect(refused.status).toBe(422);
  expect(refused.text).toContain("That password is incorrect");

  const { person: other, secret, form } = await protectedPerson();
  const wrong = await other.post(`${PATH}/confirm`, { ...form, code: WRONG });
  expect(wrong.status).toBe(422);
  expect(wrong.text).toContain(secret);
  expect((await withPassword(other.email)).location).toBe("/account");
  await other.post(`${PATH}/confirm`, { ...form, code: totpCode(secret) });
  expect((await other.get(PATH)).text).toContain("Sign-ins need your password and a code");
  expect((await withPassword(other.email)).location).toBe("/sign-in/code?next=%2Faccount");
});

test("the password alone opens nothing; a code, or a backup code once, completes the sign-in", async () => {
  const { person, secret, codes } = await turnOn();
  const { visitor } = await withPassword(person.email);
  expect((await visitor.get("/bases")).location).toBe("/sign-in?next=%2Fbases");
  const wrong = await visitor.post("/sign-in/code", { code: WRONG, next: "/account" });
  expect(wrong.status).toBe(422);
  expect(wrong.text).toContain("That code is incorrect");
  const right = await visitor.post("/sign-in/code", { code: nextCode(secret), next: "/account" });
  expect([right.status, right.location]).toEqual([303, "/account"]);
  expect((await visitor.get("/bases")).status).toBe(200);

  const useBackupCode = async () => {
    const again = await withPassword(person.email);
    return (await again.visitor.post("/sign-in/code", { code: codes[0]!, next: "/account" })).status;
  };
  expect([await useBackupCode(), await useBackupCode()]).toEqual([303, 422]);
  const stranger = made.client();
  expect((await stranger.post("/sign-in/code", { code: totpCode(secret), next: "/" })).status).toBe(422);
});

test("five wrong codes end the sign-in, and the right one then comes too late", async () => {
  const { person, secret } = await turnOn();
  const { visitor } = await withPassword(person.email);
  for (let index = 0; index < 6; index++) await visitor.post("/sign-in/code", { code: WRONG, next: "/" });
  const late = await visitor.post("/sign-in/code", { code: nextCode(secret), next: "/" });
  expect(late.status).toBe(422);
  expect(late.text).toContain("Sign in again");
});

test("a code of the app works once, whichever client presents it, also in two sign-ins at once", async () => {
  const { person, secret } = await turnOn();
  const signIn = async (code: string) => {
    const { visitor } = await withPassword(person.email);
    return { ...(await visitor.post("/sign-in/code", { code, next: "/account" })), visitor };
  };
  const used = await signIn(totpCode(secret));
  expect(used.status).toBe(422);
  expect(used.text).toContain("That code was used before");
  expect((await used.visitor.get("/bases")).status).toBe(303);
  const code = nextCode(secret);
  const both = await Promise.all([signIn(code), signIn(code)]);
  expect(both.map(({ status }) => status).sort()).toEqual([303, 422]);
  expect((await signIn(code)).status).toBe(422);
  expect((await person.post(`${PATH}/disable`, { password: PASSWORD, code })).status).toBe(422);
});

test("no page says of a code that it is right without using it up", async () => {
  const { person, secret } = await turnOn();
  const code = nextCode(secret);
  const asSignedIn = await person.post("/sign-in/code", { code, next: "/account" });
  expect(asSignedIn.status).toBe(422);
  const confirmed = await person.post(`${PATH}/confirm`, { uri: "", codes: "", code });
  expect(confirmed.status).toBe(422);
  const signIn = async () => {
    const { visitor } = await withPassword(person.email);
    return (await visitor.post("/sign-in/code", { code, next: "/account" })).status;
  };
  expect([await signIn(), await signIn()]).toEqual([303, 422]);
});

test("a backup code works once, also in several sign-ins at once", async () => {
  const { person, codes } = await turnOn();
  const visitors = await Promise.all([1, 2, 3].map(() => withPassword(person.email)));
  const answers = await Promise.all(
    visitors.map(({ visitor }) => visitor.post("/sign-in/code", { code: codes[0]!, next: "/account" })),
  );
  expect(answers.map(({ status }) => status).sort()).toEqual([303, 422, 422]);
});

test("it is turned off with the password and a code, or by the operator; the log names both", async () => {
  const { db } = made.control.ctx;
  const { person, codes } = await turnOn();
  const disable = (password: string, code: string) => person.post(`${PATH}/disable`, { password, code });
  expect((await disable(PASSWORD, "")).status).toBe(422);
  expect((await disable(PASSWORD, WRONG)).text).toContain("That code is incorrect");
  // A wrong password does not spend the backup code.
  expect((await disable("wrong password", codes[0]!)).text).toContain("That password is incorrect");
  expect((await person.post(`${PATH}/codes`, { password: PASSWORD, code: WRONG })).status).toBe(422);
  expect((await withPassword(person.email)).location).toBe("/sign-in/code?next=%2Faccount");
  expect((await disable(PASSWORD, codes[0]!)).status).toBe(303);
  expect((await withPassword(person.email)).location).toBe("/account");

  const { person: lost } = await turnOn();
  await removeTwoFactor(db, lost.email.toUpperCase());
  expect((await withPassword(lost.email)).location).toBe("/account");
  await expect(removeTwoFactor(db, lost.email)).rejects.toMatchObject({ code: "not_found" });
  const log = await db<{ action: string }[]>`
    select action from audit_log where account_id in (${person.accountId}, ${lost.accountId})
      and starts_with(action, 'two_factor.') order by id`;
  expect(log.map(({ action }) => action)).toEqual([
    "two_factor.enabled",
    "two_factor.disabled",
    "two_factor.enabled",
    "two_factor.removed",
  ]);
});

test("a rotation of SECRET_KEY encrypts second factors again, and the previous key is no longer needed", async () => {
  const { ctx } = made.control;
  await ctx.db`delete from two_factors`;
  const { person, secret } = await turnOn();
  const old = ctx.config.secretKey!;
  const key = randomBytes(32).toString("base64");
  const startedWith = (secretKey: string, ...previousSecretKeys: string[]) => ({
    db: ctx.db,
    config: { ...ctx.config, secretKey, previousSecretKeys },
  });
  expect(await examineTwoFactors(startedWith(key))).toEqual({ readable: 0, previous: 0, unreadable: 1 });
  expect(await examineTwoFactors(startedWith(key, old))).toEqual({ readable: 1, previous: 1, unreadable: 0 });
  expect(await rotateTwoFactors(startedWith(key, old))).toEqual({ reencrypted: 1, unreadable: 0 });
  expect(await examineTwoFactors(startedWith(key))).toEqual({ readable: 1, previous: 0, unreadable: 0 });
  await rotateTwoFactors(startedWith(old, key));
  const { visitor } = await withPassword(person.email);
  expect((await visitor.post("/sign-in/code", { code: nextCode(secret), next: "/" })).status).toBe(303);
});

/** Sign-in with an OpenID Connect provider: who may, what is linked, and what is refused. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { PASSWORD, type TestConsole, testConsole } from "../../support/console-support";
import { startIssuer } from "../../support/oidc-issuer";

const CLIENT = "basetide-test";

let made: TestConsole;
let issuer: ReturnType<typeof startIssuer>;
beforeAll(async () => {
  issuer = startIssuer(CLIENT);
  const provider = { id: "oidc" as const, name: "Example SSO", issuer: issuer.url };
  made = await testConsole({
    config: { signInProviders: [{ ...provider, clientId: CLIENT, clientSecret: "secret" }] },
  });
});
afterAll(async () => {
  await made?.[Symbol.asyncDispose]();
  issuer?.[Symbol.dispose]();
});

/** A browser at the provider, and the address that it was sent to. */
async function atProvider(next = "/account") {
  const visitor = made.client();
  const begun = await visitor.get(`/sign-in/with/oidc?${new URLSearchParams({ next })}`);
  expect(begun.status).toBe(303);
  expect(begun.location).toContain(`${issuer.url}/authorize?`);
  return { visitor, authorize: begun.location! };
}

const newPerson = () => ({
  sub: crypto.randomUUID(),
  email: `${crypto.randomUUID()}@example.org`,
  email_verified: true,
});

test("a person gets an account at the first sign-in and the same one at the next; no token of the provider is stored", async () => {
  expect((await made.client().get("/sign-in?next=%2Faccount")).text).toContain("Continue with Example SSO");
  const person = newPerson();
  for (let times = 0; times < 2; times++) {
    const { visitor, authorize } = await atProvider();
    const done = await visitor.get(issuer.agree(authorize, person));
    expect([done.status, done.location]).toEqual([303, "/account"]);
    expect((await visitor.get("/account")).text).toContain(person.email);
  }
  const { db } = made.control.ctx;
  const logins = await db`
    select l.provider_id, l.access_token, l.refresh_token, l.id_token, u.email_verified
    from user_logins as l join users as u on u.id = l.user_id where u.email = ${person.email}`;
  expect(logins).toEqual([
    { provider_id: "oidc", access_token: null, refresh_token: null, id_token: null, email_verified: true },
  ]);
});

const SERVICE = "/account/sign-in/services/oidc";

test("an account is linked and unlinked by its user alone, to the same address; a second factor closes this way in", async () => {
  const known = await made.person();
  const person = { ...newPerson(), email: known.email };
  const signInWith = async () => {
    const { visitor, authorize } = await atProvider();
    return visitor.get(issuer.agree(authorize, person));
  };
  const link = async (as: typeof person) => {
    const begun = await known.get(`${SERVICE}/link`);
    const back = await known.get(issuer.agree(begun.location!, as));
    expect([back.status, back.location]).toEqual([303, "/account"]);
    return (await known.get("/account")).text;
  };
  expect((await signInWith()).text).toContain("has an account already");
  expect(await link({ ...person, email: "other@example.org" })).toContain("another address of yours");
  expect(await link({ ...person, email_verified: false })).not.toContain("Unlink");
  expect((await signInWith()).status).toBe(422);
  for (let times = 0; times < 2; times++) expect(await link(person)).toContain("Unlink");
  expect((await signInWith()).location).toBe("/account");
  const other = await made.person();
  const taken = await other.get(`${SERVICE}/link`);
  await other.get(issuer.agree(taken.location!, { ...person, email: other.email }));
  expect((await other.get("/account")).text).toContain("Another account here is linked");
  expect((await made.client().get(`${SERVICE}/link`)).location).toContain("/sign-in?");

  expect((await known.post(`${SERVICE}/unlink`, {})).status).toBe(303);
  expect((await known.post(`${SERVICE}/unlink`, {})).status).toBe(404);
  expect((await signInWith()).status).toBe(422);
  await link(person);
  const { db } = made.control.ctx;
  const tokens = await db`
    select from user_logins where num_nonnulls(access_token, refresh_token, id_token) > 0`;
  expect(tokens).toHaveLength(0);
  const log = await db<{ action: string }[]>`
    select action from audit_log
    where account_id = ${known.accountId} and action in ('sign_in.linked', 'sign_in.unlinked') order by id`;
  expect(log.map(({ action }) => action)).toEqual(["sign_in.linked", "sign_in.unlinked", "sign_in.linked"]);
  expect((await made.client().post("/sign-in", { email: known.email, password: PASSWORD })).status).toBe(303);
  await db`update users set two_factor_enabled = true where email = ${known.email}`;
  const again = await atProvider();
  const refused = await again.visitor.get(issuer.agree(again.authorize, person));
  expect(refused.status).toBe(422);
  expect(refused.text).toContain("This account has a second factor");
  expect((await again.visitor.get("/bases")).status).toBe(303);
});

test("the only way to sign in cannot be unlinked", async () => {
  const { visitor, authorize } = await atProvider();
  await visitor.get(issuer.agree(authorize, newPerson()));
  const refused = await visitor.post(`${SERVICE}/unlink`, {});
  expect(refused.status).toBe(409);
  expect(refused.text).toContain("You have no password yet");
});

test("an address that is not verified, there or here, opens nothing", async () => {
  const { db } = made.control.ctx;
  const unverified = await atProvider();
  const stranger = { ...newPerson(), email_verified: false };
  const refused = await unverified.visitor.get(issuer.agree(unverified.authorize, stranger));
  expect(refused.text).toContain("does not confirm that this address is yours");
  expect(await db`select from users where email = ${stranger.email}`).toHaveLength(0);

  const victim = newPerson();
  await made.client().post("/signup", { email: victim.email, password: "of an attacker" });
  const { visitor, authorize } = await atProvider();
  const notLinked = await visitor.get(issuer.agree(authorize, victim));
  expect(notLinked.text).toContain("has an account already");
  expect((await visitor.get("/bases")).status).toBe(303);
});

test("an answer for another client, issuer or sign-in, or of another browser, opens nothing", async () => {
  for (const wrong of [
    { aud: "another" },
    { iss: "https://other.example" },
    { nonce: "another" },
    { exp: 1 },
  ]) {
    const { visitor, authorize } = await atProvider();
    const { status } = await visitor.get(issuer.agree(authorize, newPerson(), wrong));
    expect([wrong, status]).toEqual([wrong, 422]);
    expect((await visitor.get("/bases")).status).toBe(303);
  }
  const { authorize } = await atProvider();
  const other = made.client();
  expect((await other.get(issuer.agree(authorize, newPerson()))).status).toBe(422);
  expect((await other.get("/bases")).status).toBe(303);
  expect((await made.client().get("/sign-in/with/google")).status).toBe(404);
  const elsewhere = await atProvider("https://evil.example/");
  const back = await elsewhere.visitor.get(issuer.agree(elsewhere.authorize, newPerson()));
  expect(back.location).toBe("/");
});

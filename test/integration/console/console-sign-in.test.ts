import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { consoleApp } from "../../../apps/console/app";
import { createAuth } from "../../../apps/console/auth/auth";
import { ownPath } from "../../../apps/console/page-kit";
import { createAccount } from "../../../core/control/accounts";
import { consoleClient } from "../../support/console-client";
import { PASSWORD, type TestConsole, testConsole } from "../../support/console-support";

let site: TestConsole;
beforeAll(async () => {
  site = await testConsole();
});
afterAll(() => site?.[Symbol.asyncDispose]());

const newEmail = () => `${crypto.randomUUID()}@example.org`;

test("a new user confirms the address with a click in a mail, is signed in, and gets to the requested page", async () => {
  const email = newEmail();
  const visitor = site.client();
  const signedUp = await visitor.post("/signup", {
    email: ` ${email.toUpperCase()} `,
    password: PASSWORD,
    next: "",
  });
  expect(signedUp.status).toBe(200);
  expect(signedUp.text).toContain("Check your inbox");
  expect((await visitor.get("/bases")).location).toBe("/sign-in?next=%2Fbases");

  const { path } = await site.nextMail(email);
  expect(path).toMatch(/^\/verify-email\?token=.+&next=%2Fnew$/);
  const opened = await visitor.get(path);
  expect(opened.text).toContain("Confirm and continue");
  // A program that opens the links in mails has confirmed nothing.
  expect((await visitor.get("/bases")).status).toBe(303);
  const token = new URL(path, "http://console").searchParams.get("token")!;
  const confirmed = await visitor.post("/verify-email", { token, next: "/new" });
  expect(confirmed.location).toBe("/new");
  expect((await visitor.get("/new")).status).toBe(200);
  const [account] = await site.control.ctx.db`
    select m.role from accounts a join account_members m on m.account_id = a.id where a.email = ${email}`;
  expect(account).toEqual({ role: "owner" });
});

test("a user with an unconfirmed address is asked to confirm it, and gets the link again", async () => {
  const email = newEmail();
  const visitor = site.client();
  await visitor.post("/signup", { email, password: PASSWORD });
  await site.nextMail(email);
  const refused = await visitor.post("/sign-in", { email, password: PASSWORD });
  expect(refused.status).toBe(422);
  expect(refused.text).toContain("Confirm your address first");
  expect((await site.nextMail(email)).path).toContain("/verify-email");
});

test("A1: sign-up, sign-in and reset answer the same for an address with and without an account", async () => {
  const known = (await site.person()).email;
  const newcomer = newEmail();
  const nobody = newEmail();
  const ask = async (email: string, path: string, form: Record<string, string> = {}) => {
    const { status, text, headers } = await site.client().post(path, { email, ...form });
    return { status, cookies: headers.getSetCookie(), text: text.replaceAll(email, "…") };
  };
  for (const [path, form, unknown] of [
    ["/signup", { password: "another password" }, newcomer],
    ["/sign-in", { password: "wrong password" }, nobody],
    ["/forgot-password", {}, nobody],
  ] as const) {
    expect(await ask(known, path, form), path).toEqual(await ask(unknown, path, form));
  }
  expect((await site.nextMail(known)).subject).toBe("You already have an account");
  expect((await site.nextMail(known)).path).toContain("/reset-password?token=");
  expect((await site.nextMail(newcomer)).path).toContain("/verify-email?token=");
  expect(site.mails.filter((mail) => mail.to === nobody)).toEqual([]);
});

test("A1: a wrong password takes as long as an address without an account", async () => {
  const addresses = { known: newEmail(), unknown: newEmail() };
  // Other accounts of tests have a hash that takes no time.
  await createAccount(site.control.ctx.db, { email: addresses.known, password: PASSWORD });
  const times = { known: [] as number[], unknown: [] as number[] };
  // In turn, so that both meet the same neighbors.
  for (let round = 0; round < 5; round++) {
    for (const kind of ["known", "unknown"] as const) {
      const email = addresses[kind];
      const start = performance.now();
      await site.client().post("/sign-in", { email, password: "wrong password" });
      times[kind].push(performance.now() - start);
    }
  }
  // The shortest: four checks a second are made, and some wait for the next one.
  const ratio = Math.min(...times.known) / Math.min(...times.unknown);
  expect(ratio).toBeGreaterThan(1 / 3);
  expect(ratio).toBeLessThan(3);
});

test("without a mail server, a user on the same machine is signed in at once, and sees that an address is taken", async () => {
  await using own = await testConsole({ hasMail: false });
  const email = newEmail();
  const visitor = own.client();
  const signedUp = await visitor.post("/signup", { email, password: PASSWORD });
  expect(signedUp.location).toBe("/new");
  expect((await visitor.get("/new")).text).toContain("What do you want to sync?");
  const again = await own.client().post("/signup", { email, password: PASSWORD });
  expect(again.status).toBe(422);
  expect(again.text).toContain("This address already has an account");
  expect(again.text).toMatch(/<title>Error: Sign up/);
});

test("in production without a mail server, no unconfirmed address is signed in", async () => {
  await using own = await testConsole({ hasMail: false, config: { isProduction: true } });
  const signedUp = await own.client().post("/signup", { email: newEmail(), password: PASSWORD });
  expect(signedUp.text).toContain("No mail server is configured");
  expect(own.mails).toHaveLength(1);
});

test.for([
  ["email", "nobody", "", "Enter a valid e-mail address"],
  ["password", newEmail(), "short", "at least 8 characters"],
  ["password", newEmail(), "x".repeat(1001), "at most 1000 characters"],
])(
  "an invalid form is shown again with the error next to the field: %s %s",
  async ([field, email, password, message]) => {
    const { status, text } = await site.client().post("/signup", { email: email!, password: password! });
    expect(status).toBe(422);
    expect(text).toContain(message);
    const described = new RegExp(`aria-describedby="${field}-error`).test(text);
    expect([described, text.includes(`id="${field}-error"`)]).toEqual([true, true]);
  },
);

test("A2: a session's cookie is created by the server, is HttpOnly and Lax, and is invalid after signing out", async () => {
  const { email } = await site.person();
  const visitor = site.client();
  visitor.cookies.set("basetide.session_token", "made-up.by-somebody");
  expect((await visitor.get("/bases")).status).toBe(303);
  const signedIn = await visitor.post("/sign-in", { email, password: PASSWORD });
  const cookie = signedIn.headers.getSetCookie().find((one) => one.startsWith("basetide.session_token="))!;
  expect(cookie).toMatch(/; HttpOnly/i);
  expect(cookie).toMatch(/; SameSite=Lax/i);
  expect(cookie).toMatch(/; Path=\//i);
  expect(cookie).not.toContain("made-up");
  const stolen = new Map(visitor.cookies);
  expect((await visitor.get("/bases")).status).toBe(200);
  expect((await visitor.post("/sign-out", {})).location).toBe("/sign-in?done=signed-out");
  for (const [name, value] of stolen) visitor.cookies.set(name, value);
  expect((await visitor.get("/bases")).status).toBe(303);
});

test("over https the cookie is Secure", async () => {
  await using own = await testConsole({ config: { consoleUrl: "https://console.example.com" } });
  const { email } = await own.person();
  const { headers } = await own.client().post("/sign-in", { email, password: PASSWORD });
  expect(headers.getSetCookie().join()).toMatch(/^__Secure-basetide\.session_token=.*; Secure/i);
});

test("attempts are counted by the client's address, across consoles", async () => {
  const { ctx } = site.control;
  const consoles = [site.app, consoleApp(ctx, createAuth(ctx))];
  const { email } = await site.person();
  const address = "203.0.113.7";
  const answers: number[] = [];
  for (let attempt = 0; attempt < 12; attempt++) {
    const client = consoleClient(consoles[attempt % 2]!, address);
    answers.push((await client.post("/sign-in", { email, password: "wrong password" })).status);
  }
  expect(answers).toEqual([...Array(10).fill(422), 429, 429]);
  const late = await consoleClient(consoles[1]!, address).post("/sign-in", { email, password: PASSWORD });
  expect([late.status, late.text]).toEqual([429, expect.stringContaining("Too many attempts")]);
  expect((await site.client().post("/sign-in", { email, password: PASSWORD })).status).toBe(303);
});

test("a forgotten password is reset with a link that works once, and all other sessions end", async () => {
  const person = await site.person();
  const visitor = site.client();
  await visitor.post("/forgot-password", { email: person.email });
  const { path } = await site.nextMail(person.email);
  expect((await visitor.get(path)).text).toContain("Choose a new password");
  const token = new URL(path, "http://console").searchParams.get("token")!;
  expect((await visitor.post("/reset-password", { token, password: "short" })).status).toBe(422);
  const set = await visitor.post("/reset-password", { token, password: "a whole new one" });
  expect(set.location).toBe("/sign-in?done=password");
  expect((await person.get("/bases")).status).toBe(303);
  const again = await visitor.post("/reset-password", { token, password: "yet another one" });
  expect([again.status, again.text]).toEqual([422, expect.stringContaining("This link has been used")]);
  // The link itself says so, and not only the form.
  const dead = await visitor.get(path);
  expect([dead.status, dead.text]).toEqual([410, expect.stringContaining("Request a new link")]);
  expect((await visitor.get("/reset-password?token=made-up")).text).not.toContain('type="password"');
  const signIn = (password: string) => site.client().post("/sign-in", { email: person.email, password });
  expect([(await signIn(PASSWORD)).status, (await signIn("a whole new one")).status]).toEqual([422, 303]);
});

test("after signing in, a user returns to the requested page, and to no other site", async () => {
  const { email } = await site.person();
  const visitor = site.client();
  const sent = await visitor.get("/bases?q=a%20b");
  expect(sent.location).toBe("/sign-in?next=%2Fbases%3Fq%3Da%2520b");
  expect((await visitor.get(sent.location!)).text).toContain('value="/bases?q=a%20b"');
  for (const next of [
    "https://evil.example",
    "//evil.example",
    "/\\evil.example",
    "/..//evil.example",
    "javascript:alert(1)",
  ]) {
    const { location } = await site.client().post("/sign-in", { email, password: PASSWORD, next });
    expect([next, location]).toEqual([next, "/"]);
  }
});

test("whatever `next` contains, the result is a path on the same origin", () => {
  const hostile = fc.oneof(
    fc.string(),
    fc.string({ unit: "binary" }),
    fc.webUrl(),
    fc
      .array(fc.constantFrom("/", "/", "\\", "\t", ".", "..", "/evil.example", "@", "?", "%2f"), {
        maxLength: 6,
      })
      .map((parts) => `/${parts.join("")}`),
  );
  fc.assert(
    fc.property(hostile, (next) => {
      const path = ownPath(next);
      expect(new URL(path, "https://console.example").origin).toBe("https://console.example");
      expect(path).toMatch(/^\/(?![/\\])/);
    }),
    { numRuns: 5000 },
  );
});

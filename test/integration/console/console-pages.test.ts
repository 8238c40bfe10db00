import { afterAll, beforeAll, expect, test } from "vitest";
import { PASSWORD, type TestConsole, testConsole } from "../../support/console-support";

let site: TestConsole;
beforeAll(async () => {
  site = await testConsole();
});
afterAll(() => site?.[Symbol.asyncDispose]());

test.for([
  ["another origin", { origin: "https://evil.example" }],
  ["another site", { "sec-fetch-site": "cross-site", origin: "http://console" }],
  ["a neighbouring site", { "sec-fetch-site": "same-site" }],
  ["no origin at all", {}],
  ["a hidden origin", { origin: "null" }],
] as const)("P1: a form from %s changes nothing", async ([, headers]) => {
  const person = await site.person();
  const refused = await person.post("/account/tokens", { name: "stolen" }, headers);
  expect([refused.status, refused.text]).toEqual([403, expect.stringContaining("sent from another site")]);
  expect(
    (await site.client().post("/sign-in", { email: person.email, password: PASSWORD }, headers)).status,
  ).toBe(403);
  expect((await person.get("/account/tokens")).text).not.toContain("stolen");
});

test.for([
  ["the browser says so", { "sec-fetch-site": "same-origin" }],
  ["the origin is the host that was asked", { origin: "http://console" }],
  ["the origin is CONSOLE_URL", { origin: "http://localhost:3000" }],
] as const)("P1: a form of our own is accepted: %s", async ([, headers]) => {
  const person = await site.person();
  const made = await person.post("/account/tokens", { name: "mine", read: "on" }, headers);
  expect(made.status).toBe(303);
});

test("every page has the strict policy, and no inline script or style", async () => {
  const person = await site.person();
  for (const path of ["/sign-in", "/signup", "/bases", "/account", "/account/members", "/new", "/nowhere"]) {
    const { headers, text } = await (path === "/sign-in" || path === "/signup" ? site.client() : person).get(
      path,
    );
    expect(headers.get("content-security-policy"), path).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    );
    expect(headers.get("x-content-type-options"), path).toBe("nosniff");
    expect(headers.get("cache-control"), path).toBe("no-store");
    expect(text, path).toMatch(/^<!doctype html>/);
    expect(text, path).not.toMatch(/<script(?![^>]* src=)|<style| style="| on[a-z]+="/);
  }
});

test("page assets are cached forever under their hash, and compressed", async () => {
  const { text } = await site.client().get("/sign-in");
  const paths = [...text.matchAll(/(?:href|src)="(\/assets\/[^"]+)"/g)].map((match) => match[1]!);
  expect(paths).toHaveLength(4);
  for (const path of paths) {
    const { status, headers } = await site.client().get(path, { "accept-encoding": "gzip, br" });
    // The format of the typeface compresses it.
    const encoding = path.endsWith(".woff2") ? null : "br";
    expect([path, status, headers.get("content-encoding")]).toEqual([path, 200, encoding]);
    expect(headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
  }
  expect((await site.client().get("/assets/style.000000000000.css")).status).toBe(404);
});

test("an error is a page for a browser, JSON for a program, and a fragment for htmx", async () => {
  const person = await site.person();
  const page = await person.get("/bases/bas_nope");
  expect([page.status, page.text]).toEqual([404, expect.stringContaining("<h1>Page not found</h1>")]);
  expect(page.text).toContain('href="/bases"');
  expect((await person.get("/nowhere")).text).toContain('href="/bases"');
  expect((await site.client().get("/nowhere")).text).toContain('href="/sign-in"');
  const program = await person.get("/bases/bas_nope", { accept: "application/json" });
  expect(JSON.parse(program.text).error.code).toBe("not_found");
  const part = await person.get("/bases/bas_nope", { "hx-request": "true" });
  expect([part.status, part.headers.get("hx-retarget")]).toEqual([404, "#trouble"]);
  expect(part.text).not.toContain("<html");
});

test("htmx is sent to the sign-in page by a header, and returns to its page", async () => {
  const { status, headers } = await site.client().get("/bases", {
    "hx-request": "true",
    "hx-current-url": "http://console/bases?q=x",
  });
  expect([status, headers.get("hx-redirect")]).toEqual([204, "/sign-in?next=%2Fbases%3Fq%3Dx"]);
});

test("a password is changed with the old one, and all other sessions end", async () => {
  const person = await site.person();
  const elsewhere = site.client();
  await elsewhere.post("/sign-in", { email: person.email, password: PASSWORD });
  const wrong = await person.post("/account/password", {
    current: "not it at all",
    password: "a new password",
  });
  expect([wrong.status, wrong.text]).toEqual([422, expect.stringContaining("That password is incorrect")]);
  expect(wrong.text).toContain('id="current-error"');
  const changed = await person.post("/account/password", { current: PASSWORD, password: "a new password" });
  expect(changed.location).toBe("/account");
  expect((await person.get("/account")).status).toBe(200);
  expect((await elsewhere.get("/account")).status).toBe(303);
});

test("sessions are listed and ended one by one; other users' sessions cannot be ended", async () => {
  const person = await site.person();
  const laptop = site.client("198.51.100.9");
  await laptop.post("/sign-in", { email: person.email, password: PASSWORD });
  const listed = (await person.get("/account")).text;
  expect(listed).toContain("198.51.100.9");
  expect(listed).not.toContain(
    decodeURIComponent(person.cookies.get("basetide.session_token")!).split(".")[0],
  );
  const [revoke] = [...listed.matchAll(/action="(\/account\/sessions\/ses_[^"]+\/revoke)"/g)].map(
    (match) => match[1]!,
  );
  const stranger = await site.person();
  expect((await stranger.post(revoke!, {})).status).toBe(404);
  expect((await laptop.get("/account")).status).toBe(200);
  expect((await person.post(revoke!, {})).location).toBe("/account");
  expect((await laptop.get("/account")).status).toBe(303);
  await laptop.post("/sign-in", { email: person.email, password: PASSWORD });
  await person.post("/account/sessions/revoke-others", {});
  expect([(await laptop.get("/account")).status, (await person.get("/account")).status]).toEqual([303, 200]);
});

test("an API token is shown once, works, and stops working when it is revoked; other users' tokens cannot be revoked", async () => {
  const person = await site.person();
  const made = await person.post("/account/tokens", { name: "<deploy> & more", read: "on" });
  expect([made.status, made.location]).toEqual([303, "/account/tokens"]);
  // Another page, or another session, leaves the flash unread.
  const flash = person.cookies.get("basetide_flash")!;
  expect((await person.get("/account")).text).not.toMatch(/bt_[\w-]{43}/);
  const other = await site.person();
  other.cookies.set("basetide_flash", flash);
  expect((await other.get("/account/tokens")).text).not.toMatch(/bt_[\w-]{43}/);
  const token = /bt_[\w-]{43}/.exec((await person.get("/account/tokens")).text)![0];
  expect([flash.includes(token), person.cookies.has("basetide_flash")]).toEqual([false, false]);
  const listed = (await person.get("/account/tokens")).text;
  expect(listed).toContain("&lt;deploy> &amp; more");
  expect(listed).not.toContain(token);
  const api = () => site.client().get("/api/v1/bases", { authorization: `Bearer ${token}`, accept: "*/*" });
  expect((await api()).status).toBe(200);
  const revokes = [...listed.matchAll(/ href="(\/account\/tokens\/tok_[^"]+\/revoke)"/g)].map(
    (match) => match[1]!,
  );
  expect(revokes).not.toHaveLength(0);
  const stranger = await site.person();
  for (const path of revokes) expect((await stranger.post(path, {})).status).toBe(404);
  expect((await stranger.get(revokes[0]!)).status).toBe(404);
  expect((await person.get(revokes[0]!)).text).toContain("lose access at once");
  expect((await api()).status).toBe(200);
  for (const path of revokes) expect((await person.post(path, {})).status).toBe(303);
  expect((await api()).status).toBe(401);
  expect((await person.post("/account/tokens", { name: "" })).text).toContain(
    "The name must have 1 to 100 characters",
  );
  expect((await person.post("/account/tokens/%00/revoke", {})).status).toBe(404);
});

test("an owner invites by mail; an invited member sees the account, and nothing after removal", async () => {
  const owner = await site.person();
  const guest = await site.person();
  const stranger = await site.person();
  expect((await owner.post("/account/members", { email: "no address" })).status).toBe(422);
  expect((await owner.post("/account/members", { email: guest.email })).location).toBe("/account/members");
  const { path } = await site.nextMail(guest.email);
  const token = new URL(path, "http://console").searchParams.get("token")!;

  expect((await site.client().get(path)).text).toContain("You have been invited");
  expect((await stranger.post("/invitation", { token })).status).toBe(403);
  expect((await guest.post("/invitation", { token })).location).toBe("/bases");
  expect((await guest.post("/invitation", { token })).status).toBe(404);
  const seen = (await guest.get("/account/members")).text;
  expect(seen).toContain(owner.email);
  expect((await guest.post("/account/members", { email: stranger.email })).status).toBe(403);
  const [guestId] = (await site.control.ctx.db`select id from users where email = ${guest.email}`).map(
    (row) => row.id,
  );
  const [ownerId] = (await site.control.ctx.db`select id from users where email = ${owner.email}`).map(
    (row) => row.id,
  );
  expect((await guest.post(`/account/members/${ownerId}/remove`, {})).status).toBe(403);
  expect((await owner.post(`/account/members/${ownerId}/remove`, {})).status).toBe(409);

  await guest.post("/account/switch", { account: guest.accountId });
  expect((await guest.get("/account/members")).text).not.toContain(`>${owner.email}`);
  expect((await stranger.post("/account/switch", { account: owner.accountId })).status).toBe(404);
  await guest.post("/account/switch", { account: owner.accountId });
  expect((await owner.post(`/account/members/${guestId}/remove`, {})).location).toBe("/account/members");
  expect((await guest.get("/account/members")).text).not.toContain(owner.email);
  expect((await guest.post("/account/switch", { account: owner.accountId })).status).toBe(404);
});

test("a withdrawn invitation no longer works, and a new one replaces the old one", async () => {
  const owner = await site.person();
  const guest = await site.person();
  const invite = async () => {
    await owner.post("/account/members", { email: guest.email });
    return new URL((await site.nextMail(guest.email)).path, "http://console").searchParams.get("token")!;
  };
  const first = await invite();
  const second = await invite();
  expect((await guest.get(`/invitation?token=${first}`)).status).toBe(404);
  expect((await guest.get(`/invitation?token=${second}`)).status).toBe(200);
  const [withdraw] = /\/account\/invitations\/inv_\w+\/withdraw/.exec(
    (await owner.get("/account/members")).text,
  )!;
  expect((await guest.post(withdraw!, {})).status).toBe(404);
  await owner.post(withdraw!, {});
  expect((await guest.get(`/invitation?token=${second}`)).status).toBe(404);
});

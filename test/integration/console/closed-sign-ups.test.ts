/** An installation with a single tenant: only the first user and invited users can sign up. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { readConfig } from "../../../core/config";
import { type TestConsole, testConsole } from "../../support/console-support";

let site: TestConsole;
beforeAll(async () => {
  site = await testConsole({ config: { signUps: "closed" } });
});
afterAll(() => site?.[Symbol.asyncDispose]());

test("after the first account, only an invitation creates one, for the address that it was sent to", async () => {
  const signUp = async (email: string, next = "/") => {
    const { status, text } = await site
      .client()
      .post("/signup", { email, password: "a long enough one", next });
    return { status, isClosed: text.includes("Sign-ups are closed") };
  };
  expect(await signUp("first@example.org")).toEqual({ status: 200, isClosed: false });
  expect(await signUp("second@example.org")).toEqual({ status: 422, isClosed: true });
  const owner = await site.person();
  await owner.post("/account/members", { email: "friend@example.org" });
  const next = (await site.nextMail("friend@example.org")).path;
  expect(await signUp("stranger@example.org", next)).toEqual({ status: 422, isClosed: true });
  expect(await signUp("friend@example.org", "/invitation?token=made-up")).toEqual({
    status: 422,
    isClosed: true,
  });
  expect(await signUp("Friend@example.org", next)).toEqual({ status: 200, isClosed: false });
});

test("private networks are allowed as destinations where the installation has a single tenant, unless the variable says otherwise", () => {
  const allowed = (env: Record<string, string>) => readConfig(env).privateDestinations;
  expect(allowed({ NODE_ENV: "production" })).toBe("no");
  expect(allowed({ NODE_ENV: "production", SIGN_UPS: "closed" })).toBe("yes");
  expect(allowed({ SIGN_UPS: "closed", ALLOW_PRIVATE_DESTINATIONS: "loopback" })).toBe("loopback");
  expect(allowed({})).toBe("loopback");
});

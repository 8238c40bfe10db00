/** Signing up by mail, account pages, invitations and a customer's own database, in a real browser. */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type RunningConsole, startConsole } from "../../apps/console/start";
import { accountByEmail, createAccount } from "../../core/control/accounts";
import { createBase } from "../../core/control/bases";
import { asAdmin } from "../support/admin";
import { BROWSER_TEST_MS, newVisitor, noBrowser, openBrowser, type VisitorOptions } from "../support/browser";
import { type Fleet, startFleet } from "../support/fleet";
import { type Mailbox, startMailbox } from "../support/mailbox";
import { totpCode } from "../support/totp";

const PASSWORD = "correct horse";

let mailbox: Mailbox;
let fleet: Fleet;
let running: RunningConsole;
let browser: Browser | undefined;
let baseUrl: string;

beforeAll(async () => {
  if (noBrowser) return;
  mailbox = startMailbox();
  fleet = await startFleet({ workers: 0, env: { SMTP_URL: mailbox.url } });
  fleet.sandbox.control.generate({ name: "Inventory", records: 10 });
  running = await startConsole(fleet.ctx, { port: 0 });
  baseUrl = `http://localhost:${running.port}`;
  browser = await openBrowser();
});
afterAll(async () => {
  await browser?.close();
  await running?.stop();
  await fleet?.[Symbol.asyncDispose]();
  mailbox?.stop();
});

const visit = (options: Omit<VisitorOptions, "baseUrl"> = {}) =>
  newVisitor(browser!, { baseUrl, ...options });

/** Mails name the console by CONSOLE_URL; the test's has another port. */
const pathOf = (link: string) => link.replace(/^https?:\/\/[^/]+/, "");

async function signIn(page: Page, email: string, password = PASSWORD): Promise<void> {
  await page.goto("/sign-in");
  await page.getByLabel("E-mail").fill(email);
  await page.getByLabel("Password").fill(password);
  await page.getByRole("button", { name: "Sign in" }).click();
}

/** Opens the menu with the sign-out; on a narrow screen it is in the sidebar, which a button opens. */
async function openUserMenu(page: Page): Promise<void> {
  const menu = page.getByRole("button", { name: "Menu", exact: true });
  if (await menu.isVisible()) await menu.click();
  await page.locator("summary").filter({ hasText: "Account:" }).click();
}

async function newAccount(): Promise<string> {
  const email = `${crypto.randomUUID().slice(0, 8)}@example.org`;
  await createAccount(fleet.ctx.db, { email, password: PASSWORD });
  return email;
}

/** @returns the path of its page */
async function newBase(email: string): Promise<string> {
  const account = await accountByEmail(fleet.ctx.db, email);
  const { control, key } = fleet.sandbox;
  const sourceBaseId = control.generate({ name: "Projects", records: 5 });
  const base = await createBase(fleet.ctx, account.id, { platform: "airtable", apiKey: key, sourceBaseId });
  return `/bases/${base.id}`;
}

test("signing up by mail and every account page", { timeout: BROWSER_TEST_MS }, async ({ skip }) => {
  skip(noBrowser !== undefined, noBrowser);
  await using visitor = await visit({ isTwofold: true });
  const { page } = visitor;
  const look = (name: string) => visitor.inspect(`account-${name}`);
  const email = `${crypto.randomUUID().slice(0, 8)}@example.org`;

  await page.goto("/signup");
  await page.getByLabel("E-mail").fill(email);
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Create account" }).click();
  await page.getByRole("heading", { name: "Check your inbox" }).waitFor();
  await look("1-look-into-your-mail");
  await page.goto(pathOf((await mailbox.next(email)).link));
  await look("2-confirm");
  await page.getByRole("button", { name: "Confirm and continue" }).click();
  await page.getByRole("heading", { name: "What do you want to sync?" }).waitFor();

  await page.goto("/account");
  await look("3-sessions");
  await page.getByText("Change your password").click();
  await page.getByLabel("Current password").fill("wrong wrong");
  await page.getByLabel("New password").fill("another horse");
  await page.getByRole("button", { name: "Change password" }).click();
  await page.getByText("That password is incorrect").waitFor();
  await look("4-password-wrong");
  await page.goto("/account/sign-in/two-factor");
  await page.getByLabel("Current password").fill(PASSWORD);
  await page.getByRole("button", { name: "Set up" }).click();
  await page.getByRole("img", { name: "QR code for your authenticator app" }).waitFor();
  await look("4-two-factor");
  const secret = (await page.locator("#totp-secret").textContent())!;
  await page.getByLabel("Code", { exact: true }).fill(totpCode(secret));
  await page.getByRole("button", { name: "Turn on" }).click();
  await page.getByRole("button", { name: "Turn off" }).waitFor();
  await look("4-two-factor-on");
  await page.goto("/account/tokens");
  await page.getByText("New token").click();
  await page.getByLabel("Name").fill("<b>deploy</b>");
  await page.getByRole("button", { name: "Create token" }).click();
  await page.getByText("Copy your token now").waitFor();
  await page.getByRole("button", { name: "Copy Token" }).click();
  await page.getByText("Copied").waitFor();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toMatch(/^bt_/);
  await look("5-tokens");
  await page.goto("/account/members");
  await page.getByText("Invite a member").click();
  await page.getByLabel("E-mail").fill("friend@example.org");
  await page.getByRole("button", { name: "Send invitation" }).click();
  await page.getByText("Invitation sent").waitFor();
  await openUserMenu(page);
  await page.getByRole("button", { name: "Sign out" }).waitFor();
  await look("6-members");
  await page.keyboard.press("Escape");
  await page.goto("/new/dra_nope/key");
  await page.getByRole("heading", { name: "Page not found" }).waitFor();
  await look("7-error");
  await page.goto("/account");
  await openUserMenu(page);
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByText("You have been signed out.").waitFor();
  await look("8-sign-in");
  await page.getByRole("link", { name: "Forgot your password?" }).click();
  await look("9-forgot");
  await page.getByLabel("E-mail").fill(email);
  await page.getByRole("button", { name: "Send link" }).click();
  await page.getByText("we have sent it a link to choose a new password").waitFor();
  await page.goto(pathOf((await mailbox.next(email)).link));
  await look("10-reset");
  await page.getByLabel("New password").fill("another horse");
  await page.getByRole("button", { name: "Set password" }).click();
  await page.getByText("Password changed. Sign in").waitFor();
  await signIn(page, email, "another horse");
  await page.getByRole("heading", { name: "Enter a code" }).waitFor();
  await look("11-code");
  await page.getByLabel("Code", { exact: true }).fill(totpCode(secret, 1));
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.waitForURL("**/bases");
  visitor.expectNoProblems();
});

test("an invited user signs in, accepts, sees the account, and switches back to their own", {
  timeout: BROWSER_TEST_MS,
}, async ({ skip }) => {
  skip(noBrowser !== undefined, noBrowser);
  const [ownerEmail, friendEmail] = [await newAccount(), await newAccount()];
  const base = await newBase(ownerEmail);
  await using owner = await visit({ isTwofold: true });
  await signIn(owner.page, ownerEmail);
  await owner.page.waitForURL("**/bases");
  await owner.page.goto("/account/members");
  await owner.page.getByText("Invite a member").click();
  await owner.page.getByLabel("E-mail").fill(friendEmail);
  await owner.page.getByLabel("Role").selectOption("viewer");
  await owner.page.getByRole("button", { name: "Send invitation" }).click();
  await owner.page.getByText("Invitation sent").waitFor();

  await using friend = await visit();
  const { page } = friend;
  await page.goto(pathOf((await mailbox.next(friendEmail)).link));
  await friend.inspect("invitation");
  await page.getByRole("link", { name: "Sign in" }).last().click();
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("button", { name: "Accept" }).click();
  await page.waitForURL("**/bases");
  for (const path of [base, `${base}/settings`, `${base}/data`, "/account/tokens"]) {
    await page.goto(path);
    await page.getByText("You are a viewer of this account").waitFor();
    await friend.inspect(
      `viewer-${path
        .split("/")
        .at(-1)!
        .replace(/^bas_.*/, "base")}`,
    );
    const offers = page.getByRole("button", { name: /^(Pause|Save|Replace key|Create token|Revoke)/ });
    expect(await offers.count(), path).toBe(0);
    expect(await page.getByRole("link", { name: /^(Connect|Resync|Delete this base…)$/ }).count()).toBe(0);
  }
  await page.goto("/account/members");
  await page.getByText("invites and removes members").waitFor();
  await openUserMenu(page);
  await page.getByRole("button", { name: `Switch to ${friendEmail}` }).click();
  await page.goto("/account/members");
  await page.getByText("Invite a member").waitFor();
  friend.expectNoProblems();

  await owner.page.goto("/account/members");
  await owner.page.getByRole("link", { name: `Remove ${friendEmail}` }).click();
  await owner.page.getByRole("heading", { name: `Remove ${friendEmail}` }).waitFor();
  await owner.inspect("remove-member");
  await owner.page.getByLabel("Rotate database passwords").check();
  await owner.page.getByLabel("Revoke all API tokens").check();
  await owner.page.getByRole("button", { name: "Remove member" }).click();
  await owner.page.getByText(`${friendEmail} was removed`).waitFor();
  await owner.page.getByText("Still works: Attachment links: all bases").waitFor();
  await owner.inspect("removed-member");
  await owner.page.goto("/account/activity");
  await owner.page.getByText("removed a member").waitFor();
  await owner.inspect("activity");
  owner.expectNoProblems();
});

test("a customer's own database is tested where its URL is entered", { timeout: BROWSER_TEST_MS }, async ({
  skip,
}) => {
  skip(noBrowser !== undefined, noBrowser);
  const name = `customer_${crypto.randomUUID().slice(0, 8)}`;
  await asAdmin(async (admin) => {
    await admin.unsafe(`create role ${name} login password 'secret'`);
    await admin.unsafe(`create database ${name}`);
    await admin.unsafe(`grant connect on database ${name} to ${name}`);
  });
  await using _ = {
    [Symbol.asyncDispose]: () =>
      asAdmin(async (admin) => {
        await admin.unsafe(`drop database ${name} with (force)`);
        await admin.unsafe(`drop role ${name}`);
      }),
  };
  await using visitor = await visit();
  const { page } = visitor;
  await signIn(page, await newAccount());
  await page.waitForURL("**/bases");
  await page.goto("/new");
  await page.getByRole("button", { name: "Airtable" }).click();
  await page.getByLabel("API key").fill(fleet.sandbox.key);
  await page.getByRole("button", { name: "Check key" }).click();
  await page.getByLabel("Inventory").check();
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByLabel("Your own Postgres").check();
  const url = new URL(fleet.ctx.config.databaseUrl!);
  Object.assign(url, { username: name, password: "secret", pathname: `/${name}` });
  await page.getByLabel("Connection URL").fill(url.href);
  await page.getByRole("button", { name: "Test connection" }).click();
  await page.getByText(`grant create on database "${name}" to "${name}"`).waitFor();
  await visitor.inspect("destination-grant");
  await asAdmin((admin) => admin.unsafe(`grant create on database ${name} to ${name}`));
  await page.getByRole("button", { name: "Test connection" }).click();
  await page.getByText("This database can be used").waitFor();
  await visitor.inspect("destination-usable");
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByRole("heading", { name: "Ready to sync" }).waitFor();
  await visitor.inspect("destination-ready");
  visitor.expectNoProblems();
});

/** The pages of alerts in a real browser: with and without JavaScript, wide and narrow, light and dark. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type RunningConsole, startConsole } from "../../apps/console/start";
import { createAccount } from "../../core/control/accounts";
import { BROWSER_TEST_MS, newVisitor, noBrowser, openBrowser, type VisitorOptions } from "../support/browser";
import { type Fleet, startFleet } from "../support/fleet";
import { type Receiver, startReceiver } from "../support/receiver";

const PASSWORD = "correct horse";

let fleet: Fleet;
let running: RunningConsole;
let browser: Browser | undefined;
let receiver: Receiver;
let baseUrl: string;

beforeAll(async () => {
  if (noBrowser) return;
  fleet = await startFleet({ workers: 0, env: { SMTP_URL: "smtp://127.0.0.1:1" } });
  running = await startConsole(fleet.ctx, { port: 0 });
  baseUrl = `http://localhost:${running.port}`;
  receiver = startReceiver();
  browser = await openBrowser();
});
afterAll(async () => {
  await browser?.close();
  await running?.stop();
  await receiver?.[Symbol.asyncDispose]();
  await fleet?.[Symbol.asyncDispose]();
});

/** A user with a colleague, and messages of the last days. */
async function visit(options: Omit<VisitorOptions, "baseUrl">) {
  const { db } = fleet.ctx;
  const name = crypto.randomUUID().slice(0, 8);
  const account = await createAccount(db, { email: `ada.${name}@example.org`, password: PASSWORD });
  const other = await createAccount(db, { email: `grace.${name}@example.org`, password: PASSWORD });
  await db`insert into account_members (account_id, user_id, role)
    select ${account.id}, user_id, 'editor' from account_members where account_id = ${other.id}`;
  const messages = [
    ["2 minutes", "Inventory has turned red", "waiting", 3, "The mail server answered 451"],
    ["3 hours", "20 bases have turned red", "sent", 1, null],
    [
      "2 days",
      "Sales: sync has used its share of this month's calls",
      "given_up",
      9,
      "The mail server cannot be reached",
    ],
  ] as const;
  for (const [age, subject, state, attempts, error] of messages) {
    await db`
      insert into alert_messages (id, account_id, user_id, at, subject, state, attempts, error)
      select ${crypto.randomUUID()}, account_id, user_id, now() - ${age}::interval, ${subject}, ${state}, ${attempts}, ${error}
      from account_members where account_id = ${account.id} and role = 'owner'`;
  }
  const visitor = await newVisitor(browser!, { baseUrl, ...options });
  const { page } = visitor;
  await page.goto("/sign-in?next=/account/alerts");
  await page.getByLabel("E-mail").fill(account.email);
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "E-mail to you" }).waitFor();
  return visitor;
}

const options = [
  { name: "with JavaScript", isTwofold: true },
  { name: "without JavaScript on a phone", hasScript: false, isPhone: true },
];

test.for(options)(
  "alerts are selected, and a webhook is added, tested and changed: $name",
  { timeout: BROWSER_TEST_MS },
  async ({ name, ...look }, { skip }) => {
    skip(noBrowser !== undefined, noBrowser);
    const picture = (of: string) => `alerts-${of}-${name.replaceAll(" ", "-")}`;
    await using visitor = await visit(look);
    const { page } = visitor;
    const mine = page.locator("#mail");
    await mine.getByLabel("A base changes its schema").check();
    await mine.getByLabel("A base recovers").uncheck();
    await mine.getByRole("button", { name: "Save" }).click();
    await page.getByText("Saved.").waitFor();
    expect(await mine.getByLabel("A base changes its schema").isChecked()).toBe(true);
    expect(await mine.getByLabel("A base recovers").isChecked()).toBe(false);

    await page.getByText("Add a webhook").click();
    await page.getByLabel("Address").fill("http://169.254.169.254/");
    await page.getByRole("button", { name: "Add webhook" }).click();
    await page.getByRole("alert").filter({ hasText: "private network" }).waitFor();
    await page.getByLabel("Address").fill(receiver.url("/services/T0/B0/x"));
    await page.getByLabel("Format").selectOption("slack");
    await page.getByLabel("Name").fill("Ops channel");
    await page.getByRole("button", { name: "Add webhook" }).click();
    await page.getByText("It will not be shown again.").first().waitFor();
    await visitor.inspect(picture("webhook"));

    receiver.answer = { status: 500 };
    await page.getByRole("button", { name: "Send a test" }).click();
    await page.getByText("The test was not delivered").waitFor();
    await visitor.inspect(picture("trial"));
    await page.getByRole("link", { name: "All alerts" }).click();
    await page.getByRole("heading", { name: "Webhooks" }).waitFor();
    await visitor.inspect(picture("all"));
    receiver.answer = { status: 200 };
    await page.getByRole("link", { name: "Change Ops channel" }).click();
    await page.getByRole("button", { name: "Send a test" }).click();
    await page.getByText("The test was delivered.").waitFor();
    await page.getByRole("link", { name: "Delete webhook" }).click();
    await page.getByRole("button", { name: "Delete webhook", exact: true }).click();
    await page.getByText("Webhook deleted.").waitFor();
    visitor.expectNoProblems();
  },
);

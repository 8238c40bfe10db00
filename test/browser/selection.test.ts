/** Choosing what is copied, in a real browser: light and dark, wide and narrow, with JavaScript and without. */
import type { Browser, Cookie } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type RunningConsole, startConsole } from "../../apps/console/start";
import { type Base, getBase } from "../../core/control/bases";
import { newVisitor, noBrowser, openBrowser } from "../support/browser";
import { type Fleet, startFleet } from "../support/fleet";

const OWNER = { email: "fleet@example.org", password: "correct horse" };

let fleet: Fleet;
let running: RunningConsole;
let browser: Browser | undefined;
let baseUrl: string;
let base: Base;
/** Attempts to sign in are limited, and sessions last. */
let session: Cookie[] = [];

beforeAll(async () => {
  if (noBrowser) return;
  // No sync: the page shows what Airtable has, and what is stored.
  fleet = await startFleet({ workers: 0 });
  const text = (name: string) => ({ name, type: "singleLineText" });
  const sourceId = fleet.sandbox.control.createBase({
    name: "Clients <b>& more",
    tables: [
      { name: "Contacts", fields: [text("Name"), text("E-mail <i>"), text("Notes")] },
      { name: "Salaries", fields: [text("Name")] },
      { name: `Long ${"name ".repeat(30)}`, fields: [text("Name")] },
    ],
  });
  base = await fleet.connect(sourceId);
  running = await startConsole(fleet.ctx, { port: 0 });
  baseUrl = `http://localhost:${running.port}`;
  browser = await openBrowser();
});
afterAll(async () => {
  await browser?.close();
  await running?.stop();
  await fleet?.[Symbol.asyncDispose]();
});

test.for([
  { name: "with JavaScript", isTwofold: true },
  { name: "without JavaScript on a phone", hasScript: false, isPhone: true },
])("tables and fields are found, chosen and saved: $name", { timeout: 90_000 }, async (options, { skip }) => {
  skip(noBrowser !== undefined, noBrowser);
  await using visitor = await newVisitor(browser!, { baseUrl, ...options });
  const { page } = visitor;
  const look = (step: string) => visitor.inspect(`selection-${step}-${options.name.replaceAll(" ", "-")}`);
  if (session.length === 0) {
    await page.goto("/sign-in");
    await page.getByLabel("E-mail").fill(OWNER.email);
    await page.getByLabel("Password").fill(OWNER.password);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { level: 1, name: "Bases" }).waitFor();
    session = await page.context().cookies();
  } else await page.context().addCookies(session);
  const path = `/bases/${base.id}/selection`;
  const stored = async () => (await getBase(fleet.ctx.db, base.id)).selection;

  // Search, and a choice for all that is shown.
  await page.goto(path);
  await look("tables");
  await page.getByLabel("Find a table").fill("salar");
  await page.getByRole("button", { name: "Find" }).click();
  await page.getByText("Contacts", { exact: true }).waitFor({ state: "detached" });
  await page.getByLabel("New tables").selectOption("ask");
  await page.getByRole("button", { name: "Copy none shown" }).click();
  await page.getByRole("cell", { name: "Not copied" }).waitFor();
  expect(await page.getByLabel("Salaries").isChecked()).toBe(false);

  // A field is omitted, and one is hashed.
  await page.goto(path);
  await page.getByRole("link", { name: "Fields and records of Contacts" }).click();
  await page.getByLabel("Notes").selectOption("omitted");
  await page.getByLabel("E-mail <i>").selectOption("hashed");
  await look("fields");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("Saved.").first().waitFor();
  expect(await page.getByLabel("Notes").inputValue()).toBe("omitted");
  await page.getByRole("link", { name: "All tables" }).click();
  await page.getByRole("cell", { name: "2 of 3 fields, 1 hashed" }).waitFor();
  expect((await stored())!.newTables).toBe("ask");

  // What cannot be is said, and changes nothing.
  const before = await stored();
  await page.getByRole("button", { name: "Copy none shown" }).click();
  await page.getByText("No table would be copied").waitFor();
  await look("refused");
  expect(await stored()).toEqual(before);

  await page.goto(path);
  await page.getByRole("button", { name: "Copy all shown" }).click();
  await page.getByRole("cell", { name: "Not copied" }).waitFor({ state: "detached" });
  visitor.expectNoProblems();
});

/** From signing up to a base that syncs, in a real browser, with JavaScript and without. */

import type { Browser, Locator } from "playwright-core";
import postgres from "postgres";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type RunningConsole, startConsole } from "../../apps/console/start";
import { getBase } from "../../core/control/bases";
import { databaseCredentials, getDatabase } from "../../core/control/placement";
import { BROWSER_TEST_MS, newVisitor, noBrowser, openBrowser, type Visitor } from "../support/browser";
import { type Fleet, startFleet } from "../support/fleet";
import { until } from "../support/poll";

let fleet: Fleet;
let running: RunningConsole;
let browser: Browser | undefined;
let baseUrl: string;
/** May read, and not see changes. */
let notLive: string;

beforeAll(async () => {
  if (noBrowser) return;
  fleet = await startFleet();
  for (let index = 1; index <= 7; index++) {
    fleet.sandbox.control.generate({
      name: `Base <b>${index}</b> & more`,
      tables: 2,
      records: 30,
      seed: index,
    });
  }
  notLive = fleet.sandbox.control.createKey({ scopes: ["schema.bases:read", "data.records:read"] });
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
  { name: "on a phone", hasScript: true, isPhone: true, isDark: false, isTwofold: true },
  { name: "without JavaScript", hasScript: false, isPhone: false, isDark: true, isTwofold: false },
])(
  "a user signs up, connects a base and reads it with SQL: $name",
  { timeout: BROWSER_TEST_MS },
  async (options, { skip }) => {
    skip(noBrowser !== undefined, noBrowser);
    await using visitor = await newVisitor(browser!, { baseUrl, ...options });
    const { page } = visitor;
    const look = (step: string) =>
      visitor.inspect(`${step}-${options.name.replaceAll(" ", "-").toLowerCase()}`);

    await page.goto("/signup");
    await look("1-sign-up");
    await page.getByLabel("E-mail").fill(`${crypto.randomUUID()}@example.org`);
    await page.getByLabel("Password").fill("Password1!");
    await page.getByRole("button", { name: "Create account" }).click();
    await expectDescribed(visitor, "Password", "one of the most common ones");
    await page.getByLabel("Password").fill("correct horse battery");
    await page.getByRole("button", { name: "Create account" }).click();

    await page.getByRole("heading", { name: "What do you want to sync?" }).waitFor();
    await look("2-platform");
    await page.getByRole("button", { name: "Airtable" }).click();

    await page.getByRole("heading", { name: "Your Airtable API key" }).waitFor();
    await look("3-key");
    await page.getByLabel("API key").fill("keyABCDEFGHIJKLMN");
    await page.getByRole("button", { name: "Check key" }).click();
    await page.getByText("API key of the old kind").waitFor();
    await page.getByLabel("API key").fill("patWrong");
    await page.getByRole("button", { name: "Check key" }).click();
    await page.getByText("This token is incomplete").waitFor();
    await page.getByLabel("API key").fill("patWrong.0000");
    await page.getByRole("button", { name: "Check key" }).click();
    await page.getByText("Airtable rejected this token").waitFor();
    await look("3-key-wrong");
    await expectDescribed(visitor, "API key", "rejected this token");
    await page.getByLabel("API key").fill(notLive);
    await page.getByRole("button", { name: "Check key" }).click();
    await page.getByText("This key works, but not for live sync").waitFor();
    await look("3-key-not-live");
    expect(await page.locator(".button.primary").count()).toBe(1);
    await page.getByLabel("API key").fill(fleet.sandbox.key);
    await page.getByRole("button", { name: "Check key" }).click();

    await page.getByRole("heading", { name: "Which base?" }).waitFor();
    await page.reload();
    await page.getByText("Token of sandbox@example.org").waitFor();
    await page.getByText("Creator ·").first().waitFor();
    await look("4-base");
    await page.getByRole("searchbox").fill("base <b>3");
    if (!options.hasScript) await page.getByRole("button", { name: "Search" }).click();
    await until(async () => (await page.getByRole("radio").count()) === 1, { what: "one base is found" });
    await page.getByLabel("Base <b>3</b> & more").check();
    await page.getByRole("button", { name: "Continue" }).click();

    await page.getByRole("heading", { name: "Where should we store the data?" }).waitFor();
    await page.goBack();
    await page.getByRole("heading", { name: "Which base?" }).waitFor();
    await page.goForward();
    await look("5-destination");
    await page.getByRole("button", { name: "Continue" }).click();

    await page.getByRole("heading", { name: "Ready to sync" }).waitFor();
    await look("6-start");
    expect(await page.getByLabel("Not sure").isChecked()).toBe(true);
    await page.getByText("All 2 tables, 30 records").waitFor();
    for (const [width, height] of [
      [1280, 800],
      [390, 844],
    ] as const) {
      await page.setViewportSize({ width, height });
      for (const part of [page.getByText("Destination", { exact: true }).last(), page.getByLabel("Not sure")])
        await expectInView(part, height);
      await expectInView(page.getByRole("button", { name: "Start syncing" }), height);
    }
    await page.getByText("Compare plans").click();
    await look("6-start-compare");
    await page.getByLabel("Business or no cap").check();
    await page.getByRole("button", { name: "Start syncing" }).click();

    await page.waitForURL(/\/bases\/bas_/);
    await page.getByRole("heading", { level: 1, name: "Base <b>3</b> & more" }).waitFor();
    const baseId = new URL(page.url()).pathname.split("/").at(-1)!;
    await expectReadable(baseId);
    await page.goto(`/bases/${baseId}/ready`);
    const isReady = async () => {
      await page.reload();
      return (await page.locator(".first-queries code").count()) === 3;
    };
    await until(isReady, { what: "there are three queries", timeoutMs: 60_000, intervalMs: 500 });
    await page.getByRole("heading", { name: "Your data is ready" }).waitFor();
    await look("7-ready");

    await page.goto(`/bases/${baseId}/connect`);
    await page.getByRole("link", { name: "Python" }).click();
    await page.getByText("import psycopg").waitFor();
    await look("8-connect");
    await page.getByText("DB_PASSWORD").first().waitFor();

    await page.goto(`/bases/${baseId}/proxy`);
    await page.getByRole("link", { name: "airtable.js" }).click();
    await page.getByText("table.create(").waitFor();
    await look("9-proxy");
    visitor.expectNoProblems();
  },
);

test("from sign-up to the first rows in the console in at most 8 clicks", {
  timeout: BROWSER_TEST_MS,
}, async ({ skip }) => {
  skip(noBrowser !== undefined, noBrowser);
  await using visitor = await newVisitor(browser!, { baseUrl });
  const { page } = visitor;
  let clicks = 0;
  await page.exposeFunction("countClick", () => {
    clicks++;
  });
  await page.addInitScript(
    "addEventListener('click', (event) => { if (event.isTrusted) countClick(); }, true)",
  );
  const control = fleet.sandbox.control;
  const only = control.generate({ name: "One base", tables: 2, records: 4400, seed: 8 });
  const key = control.createKey({ bases: { [only]: "create" } });
  const press = (name: string) => page.getByRole("button", { name }).click();
  await page.goto("/signup");
  const from = performance.now();
  await page.getByLabel("E-mail").fill(`${crypto.randomUUID()}@example.org`);
  await page.getByLabel("Password").fill("correct horse battery");
  await press("Create account");
  await press("Airtable");
  await page.getByLabel("API key").fill(key);
  await press("Check key");
  await page.getByRole("heading", { name: "Which base?" }).waitFor();
  await page.getByText("with access to 1 base").waitFor();
  await press("Continue");
  await page.getByRole("heading", { name: "Where should we store the data?" }).waitFor();
  await press("Continue");
  await press("Start syncing");
  await page.getByRole("heading", { name: /First sync: \d of 2 tables ready/ }).waitFor();
  await page
    .getByText(/of about \d,\d/)
    .first()
    .waitFor();
  await until(async () => (await page.locator("main section.card").count()) === 1, {
    what: "the progress is alone on the page",
  });
  await visitor.inspect("10-first-sync");
  await page.setViewportSize({ width: 390, height: 844 });
  await page.emulateMedia({ colorScheme: "dark" });
  await visitor.inspect("10-first-sync-dark-phone");
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.emulateMedia({ colorScheme: "light" });
  await page.locator("main form[action$='/sql'] button").first().click();
  await page.locator("#sql-result tbody tr").first().waitFor();
  await visitor.inspect("11-first-rows");
  const seconds = (performance.now() - from) / 1000;
  console.log(`first rows after ${clicks} clicks and ${seconds.toFixed(1)} s`);
  expect(await page.locator("#sql-text").inputValue()).toMatch(/^select \*\nfrom \w+\norder by created_time/);
  expect(clicks).toBeLessThanOrEqual(8);
  visitor.expectNoProblems();
});

/** The whole element is in the window, without scrolling. */
async function expectInView(part: Locator, height: number): Promise<void> {
  const box = (await part.boundingBox())!;
  expect(box.y).toBeGreaterThanOrEqual(0);
  expect(box.y + box.height).toBeLessThanOrEqual(height);
}

/** The error is next to the field, and announced with it. */
async function expectDescribed({ page }: Visitor, label: string, text: string): Promise<void> {
  const ids = (await page.getByLabel(label).getAttribute("aria-describedby"))?.split(" ") ?? [];
  const texts = await Promise.all(ids.map((id) => page.locator(`[id="${id}"]`).textContent()));
  expect(texts.join(" ")).toContain(text);
}

async function expectReadable(baseId: string): Promise<void> {
  const base = await getBase(fleet.ctx.db, baseId);
  const credentials = await databaseCredentials(fleet.ctx, await getDatabase(fleet.ctx.db, base.database.id));
  const sql = postgres(credentials.url, { max: 1, onnotice: () => {} });
  try {
    const count = () => sql`select count(*)::int as n from pg_stat_user_tables where n_live_tup >= 0`;
    await until(async () => (await count())[0]!.n >= 2, { what: "the tables exist", timeoutMs: 20_000 });
  } finally {
    await sql.end();
  }
}

test("a password and a key are shown by a button, by keyboard, until they are sent", async ({ skip }) => {
  skip(noBrowser !== undefined, noBrowser);
  await using plain = await newVisitor(browser!, { baseUrl, hasScript: false });
  await plain.page.goto("/signup");
  expect(await plain.page.getByRole("button", { name: "Show Password" }).count()).toBe(0);
  expect(await plain.page.getByLabel("Password").getAttribute("type")).toBe("password");

  await using visitor = await newVisitor(browser!, { baseUrl });
  const { page } = visitor;
  await page.goto("/signup");
  await page.getByLabel("E-mail").fill("shown@example.org");
  const password = page.getByLabel("Password");
  const show = page.getByRole("button", { name: "Show Password" });
  await password.fill("correct horse battery");
  await page.keyboard.press("Tab");
  expect(await show.evaluate((button) => button === document.activeElement)).toBe(true);
  expect(await show.getAttribute("aria-pressed")).toBe("false");
  await page.keyboard.press("Space");
  expect([await password.getAttribute("type"), await show.getAttribute("aria-pressed")]).toEqual([
    "text",
    "true",
  ]);
  await visitor.inspect("password-shown");
  await page.keyboard.press("Space");
  expect(await password.getAttribute("type")).toBe("password");
  await page.getByRole("button", { name: "Create account" }).click();
  await page.getByRole("button", { name: "Airtable" }).click();

  const key = page.getByLabel("API key");
  const showKey = page.getByRole("button", { name: "Show API key" });
  await key.fill("patWrong.0000");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  expect([await key.getAttribute("type"), await showKey.getAttribute("aria-pressed")]).toEqual([
    "text",
    "true",
  ]);
  await page.evaluate(() => {
    document.addEventListener("htmx:before:request", () => {
      document.title = (document.getElementById("key") as HTMLInputElement).type;
    });
  });
  await page.getByRole("button", { name: "Check key" }).click();
  await page.getByText("Airtable rejected this token").waitFor();
  expect(await page.title()).toBe("password");
  expect([await key.getAttribute("type"), await showKey.getAttribute("aria-pressed")]).toEqual([
    "password",
    "false",
  ]);
  visitor.expectNoProblems();
});

/** The command palette, the search without a script, and keyboard shortcuts, in a real browser. */
import type { Browser, Cookie } from "playwright-core";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { type RunningConsole, startConsole } from "../../apps/console/start";
import type { Base } from "../../core/control/bases";
import { BROWSER_TEST_MS, newVisitor, noBrowser, openBrowser, type VisitorOptions } from "../support/browser";
import { type Fleet, startFleet } from "../support/fleet";

vi.setConfig({ testTimeout: BROWSER_TEST_MS });

let fleet: Fleet;
let running: RunningConsole;
let browser: Browser | undefined;
let baseUrl: string;
let base: Base;
let cookies: Cookie[] = [];

beforeAll(async () => {
  if (noBrowser) return;
  fleet = await startFleet({ sandbox: { settings: { rateLimitOff: true } } });
  const { control } = fleet.sandbox;
  const fields = [
    { name: "Name", type: "singleLineText" },
    { name: "Due date", type: "date", options: { dateFormat: { name: "iso" } } },
  ];
  const records = ["Bolts", "Nuts", "Screws"].map((name) => ({ fields: { Name: name } }));
  const sourceId = control.createBase({
    name: "Acme CRM",
    tables: [
      { name: "Orders", fields, records },
      { name: "Open orders of the warehouse, with a name that is longer than most", fields, records: [] },
    ],
  });
  running = await startConsole(fleet.ctx, { port: 0 });
  baseUrl = `http://localhost:${running.port}`;
  [browser, base] = await Promise.all([
    openBrowser(),
    fleet.connect(sourceId).then(({ id }) => fleet.synced(id)),
  ]);
}, BROWSER_TEST_MS);
afterAll(async () => {
  await browser?.close();
  await running?.stop();
  await fleet?.[Symbol.asyncDispose]();
});

async function visit(path: string, options: Omit<VisitorOptions, "baseUrl"> = {}) {
  const visitor = await newVisitor(browser!, { baseUrl, ...options });
  const context = visitor.page.context();
  await context.addCookies(cookies);
  if (cookies.length === 0) {
    await visitor.page.goto("/sign-in");
    await visitor.page.getByLabel("E-mail").fill("fleet@example.org");
    await visitor.page.getByLabel("Password").fill("correct horse");
    await visitor.page.getByRole("button", { name: "Sign in" }).click();
    await visitor.page.getByRole("heading", { level: 1, name: "Bases" }).waitFor();
    cookies = await context.cookies();
  }
  await visitor.page.goto(path);
  return visitor;
}

test.skipIf(noBrowser)("the palette finds by keyboard what the account has", async () => {
  // A page that does not poll.
  await using visitor = await visit(`/bases/${base.id}/settings`);
  const { page } = visitor;
  const field = page.getByRole("combobox", { name: /^Search bases/ });
  const current = () => page.locator("[role=option][aria-selected=true]");
  const option = (name: RegExp) => page.getByRole("option", { name });
  await page.keyboard.press("Control+k");
  await option(/^Resync\s*Acme CRM/).waitFor();
  await visitor.inspect("palette-light");

  await field.pressSequentially("orders");
  await option(/^Orders/).waitFor();
  expect(await current().textContent()).toMatch(/^Orders\s+Acme CRM$/);
  expect(await field.getAttribute("aria-activedescendant")).toBe(await current().getAttribute("id"));
  await page.keyboard.press("ArrowDown");
  expect(await current().textContent()).toMatch(/^Open orders/);
  await page.keyboard.press("ArrowUp");
  await visitor.inspect("palette-orders");
  await page.keyboard.press("Enter");
  await page.waitForURL(`**/bases/${base.id}/data/orders`);
  await page.getByRole("link", { name: "Bolts" }).waitFor();

  // Typed and sent faster than the palette asks.
  await page.keyboard.press("/");
  await field.waitFor();
  await page.keyboard.type("history_days");
  await page.keyboard.press("Enter");
  await page.waitForURL(`**/bases/${base.id}/settings#history_days`);

  await page.keyboard.press("Control+k");
  await field.fill("turbo");
  await page
    .getByRole("group", { name: "Docs" })
    .getByRole("option", { name: /^Turbo/ })
    .waitFor();
  await field.fill("no such thing");
  await page.getByText("Nothing matches “no such thing”").waitFor();
  await visitor.inspect("palette-nothing");
  await page.keyboard.press("Escape");
  await field.waitFor({ state: "hidden" });

  await page.getByRole("link", { name: /^Switch base/ }).click();
  await option(/^Acme CRM/).waitFor();
  expect(await page.locator("#palette-list").getByRole("option").count()).toBe(1);
  visitor.expectNoProblems();
});

test.skipIf(noBrowser)(
  "shortcuts lead to the pages of the sheet, and do nothing while one types",
  async () => {
    await using visitor = await visit(`/bases/${base.id}/data/orders`, { isDark: true });
    const { page } = visitor;
    const [first, second] = await page.locator("tbody th").allTextContents();
    const focused = page.locator("a:focus");
    for (const [key, name] of [
      ["j", first],
      ["j", second],
      ["k", first],
    ] as const) {
      await page.keyboard.press(key);
      expect(await focused.textContent()).toBe(name);
    }

    await page.keyboard.press("?");
    const sheet = page.getByRole("dialog", { name: "Keyboard shortcuts" });
    await sheet.getByText("Settings of this base").waitFor();
    await visitor.inspect("shortcuts-dark");
    const rows = await sheet
      .locator("[data-href]")
      .evaluateAll((all) =>
        all.map((one) => [(one as HTMLElement).dataset.keys!, (one as HTMLElement).dataset.href!]),
      );
    expect(rows.length).toBeGreaterThan(15);
    await page.keyboard.press("g");
    await page.keyboard.press("b");
    await page.keyboard.press("Escape");
    expect(page.url()).toContain("/data/orders");
    for (const [keys, href] of rows.filter(([keys]) => ["n", "g u", "b f"].includes(keys!))) {
      for (const key of keys!.split(" ")) await page.keyboard.press(key);
      await page.waitForURL(`**${href}`);
      if (!href!.startsWith("/bases")) await page.goto(`/bases/${base.id}`);
    }

    await page.goto("/search");
    await page.getByRole("searchbox").pressSequentially("gb?/n");
    expect(await page.getByRole("searchbox").inputValue()).toBe("gb?/n");
    expect(await page.locator("dialog[open]").count()).toBe(0);

    await page.locator("main").focus();
    await page.keyboard.press("?");
    await page.getByLabel("Use shortcuts of single keys").uncheck();
    await page.keyboard.press("Escape");
    await page.reload();
    await page.locator("main").focus();
    await page.keyboard.press("?");
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: /^Search bases/ }).waitFor();
    await visitor.inspect("palette-dark");
    expect(await sheet.isVisible()).toBe(false);
    visitor.expectNoProblems();
  },
);

test.skipIf(noBrowser)("without a script, and on a phone, the sidebar leads to the search", async () => {
  await using plain = await visit("/bases", { hasScript: false });
  await plain.page.getByRole("link", { name: "Search" }).click();
  await plain.page.getByRole("searchbox").fill("due date");
  await plain.page.getByRole("button", { name: "Search" }).click();
  await plain.page.getByText("2 results for “due date”").waitFor();
  await plain.inspect("search-noscript");
  await plain.page.getByRole("region", { name: "Columns" }).getByRole("link").first().click();
  await plain.page.getByRole("heading", { level: 2, name: "orders" }).waitFor();

  await using phone = await visit("/bases", { isPhone: true });
  await phone.page.getByRole("button", { name: "Menu" }).click();
  await phone.page.getByRole("link", { name: "Search" }).click();
  await phone.page.getByRole("combobox", { name: /^Search bases/ }).fill("ord");
  await phone.page
    .getByRole("option", { name: /^Open orders/ })
    .first()
    .waitFor();
  await phone.inspect("palette-phone");
  await phone.page.goto("/search?q=order");
  await phone.inspect("search-phone");
  phone.expectNoProblems();
});

test.skipIf(noBrowser)(
  "times are those of the browser, in parts that are refreshed too; without a script, UTC",
  async () => {
    // A paused base shows as of when its data is. A sync that is running may still change the time.
    await fleet.ctx.db`update bases set is_paused = true, state = 'paused' where id = ${base.id}`;
    const here = new Intl.DateTimeFormat("sv", {
      timeZone: "Asia/Kolkata",
      dateStyle: "short",
      timeStyle: "short",
    });
    const shown = (element: Element) => {
      const { dateTime, textContent, title } = element as HTMLTimeElement;
      return [dateTime, textContent, title] as const;
    };
    const utcOf = (iso: string) => `${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC`;
    await using visitor = await visit(`/bases/${base.id}`, { timeZone: "Asia/Kolkata" });
    const { page } = visitor;
    const asOf = page.locator(".as-of time");
    for (const moment of ["at first", "after a refresh"]) {
      const [iso, text, title] = await asOf.evaluate(shown);
      expect([moment, text.slice(-5), title]).toEqual([
        moment,
        here.format(new Date(iso)).slice(-5),
        utcOf(iso),
      ]);
      // The second poll begins after the answer of the first was swapped in.
      for (let poll = 0; poll < 2; poll++) await page.waitForResponse(/\/live\?seen=/);
    }
    await page.goto(`/bases/${base.id}/runs`);
    const ago = page.locator("main td time").first();
    await ago.hover();
    expect(await ago.getAttribute("title")).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \(\d{4}-.* UTC\)$/);
    await page.goto(`/bases/${base.id}/freshness`);
    const [iso, text] = await page.locator(".time-foot time").first().evaluate(shown);
    expect(text).toBe(here.format(new Date(iso)).slice(-5));
    expect(await page.locator(".time-zone").first().isVisible()).toBe(false);
    // It ended at the time of day in UTC at which it began here.
    const began = new Date(Date.now() - 20 * 3_600_000);
    const ended = new Date(began.getTime() + 5.5 * 3_600_000);
    await fleet.ctx.db`
      insert into base_periods (base_id, kind, label, began_at, ended_at)
      values (${base.id}, 'outage', 'Airtable is away', ${began}, ${ended})`;
    await page.goto(`/bases/${base.id}/freshness?range=24h`);
    await page.locator(".time-bars .span.outage").dispatchEvent("pointerover");
    const [from, to] = [began, ended].map((at) => here.format(at).slice(-5));
    await page
      .locator(".chart-value")
      .getByText(new RegExp(`${from} to \\d+ \\w+ ${to},`))
      .waitFor();

    await using plain = await visit(`/bases/${base.id}`, { hasScript: false, timeZone: "Asia/Kolkata" });
    const [plainIso, plainText] = await plain.page.locator(".as-of time").evaluate(shown);
    expect(plainText).toBe(`${plainIso.slice(11, 16)} UTC`);
  },
);

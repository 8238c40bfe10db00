/** The pages of a base in a real browser: live figures, Connect, settings, and the indicator. */

import type { Browser, Cookie, Page } from "playwright-core";
import postgres from "postgres";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { type RunningConsole, startConsole } from "../../apps/console/start";
import { createAccount } from "../../core/control/accounts";
import { type Base, getBase } from "../../core/control/bases";
import { indicatorOf } from "../../core/control/status";
import { BROWSER_TEST_MS, newVisitor, noBrowser, openBrowser, type VisitorOptions } from "../support/browser";
import { type Fleet, startFleet } from "../support/fleet";
import { until } from "../support/poll";

vi.setConfig({ testTimeout: BROWSER_TEST_MS });

const OWNER = { email: "fleet@example.org", password: "correct horse" };
const OPERATOR = { email: "operator@example.org", password: "correct horse" };

let fleet: Fleet;
let running: RunningConsole;
let browser: Browser | undefined;
let baseUrl: string;

beforeAll(async () => {
  if (noBrowser) return;
  fleet = await startFleet();
  await createAccount(fleet.ctx.db, { ...OPERATOR, isOperator: true });
  running = await startConsole(fleet.ctx, { port: 0 });
  baseUrl = `http://localhost:${running.port}`;
  browser = await openBrowser();
});
afterAll(async () => {
  await browser?.close();
  await running?.stop();
  await fleet?.[Symbol.asyncDispose]();
});

/** Users who have signed in before: attempts are limited, and sessions last. */
const sessions = new Map<typeof OWNER, Cookie[]>();

async function visit(who = OWNER, options: Omit<VisitorOptions, "baseUrl"> = {}) {
  const visitor = await newVisitor(browser!, { baseUrl, ...options });
  const context = visitor.page.context();
  await context.addCookies(sessions.get(who) ?? []);
  await visitor.page.goto(sessions.has(who) ? "/bases" : "/sign-in");
  if (sessions.has(who)) return visitor;
  await visitor.page.getByLabel("E-mail").fill(who.email);
  await visitor.page.getByLabel("Password").fill(who.password);
  await visitor.page.getByRole("button", { name: "Sign in" }).click();
  await visitor.page.getByRole("heading", { level: 1, name: "Bases" }).waitFor();
  sessions.set(who, await context.cookies());
  return visitor;
}

/** A base of a small table, connected and synced. */
async function syncedBase(name: string): Promise<Base> {
  const sourceId = fleet.sandbox.control.createBase({
    name,
    tables: [
      {
        name: "Items <i>& more",
        fields: [
          { name: "Name", type: "singleLineText" },
          { name: "Code", type: "barcode" },
        ],
        records: [{ fields: { Name: "bolt", Code: { text: "12a" } } }, { fields: { Name: "nut" } }],
      },
      {
        name: "People",
        fields: [{ name: "Name", type: "singleLineText" }],
        records: [{ fields: { Name: "Ana" } }],
      },
    ],
  });
  return fleet.synced((await fleet.connect(sourceId)).id);
}

const figure = (page: Page, name: string) =>
  page.locator("#now dl div", { hasText: name }).locator("dd").first();

test("the overview is updated without a reload, and pauses while it is hidden", async ({ skip }) => {
  skip(noBrowser !== undefined, noBrowser);
  const base = await syncedBase("Live & well");
  await using visitor = await visit();
  const { page } = visitor;
  await page.getByRole("link", { name: "Live & well" }).click();
  await page.getByRole("heading", { level: 1, name: "Live & well" }).waitFor();
  expect(await figure(page, "Records").textContent()).toBe("3");
  await page.evaluate(() => Object.assign(window, { isSamePage: true }));

  fleet.sandbox.control.createRecords(base.sourceBaseId, "People", [{ fields: { Name: "Bo" } }]);
  await until(async () => (await figure(page, "Records").textContent()) === "4", {
    what: "the new record is counted",
  });
  await page
    .locator("#tables")
    .getByRole("row", { name: "People" })
    .getByText("2", { exact: true })
    .waitFor();
  expect(await page.evaluate(() => "isSamePage" in window)).toBe(true);

  // Each table leads to its rows, its schema and SQL by keyboard.
  await page.getByRole("link", { name: "Schema of people" }).press("Enter");
  await page.getByRole("heading", { name: "people" }).waitFor();
  await page.goBack();
  await page.getByRole("button", { name: "SQL of people" }).press("Enter");
  await page.getByRole("cell", { name: "Bo", exact: true }).waitFor();
  await page.goBack();
  await page.getByRole("link", { name: "Schema changes" }).click();
  await page.getByText("New table people").waitFor();
  await visitor.inspect("schema-changes");
  await page.goBack();

  await page.evaluate(() => {
    Object.defineProperty(document, "hidden", { value: true, configurable: true });
  });
  // Requests that the page sent before it was hidden have been answered by now.
  const asked: string[] = [];
  page.on("request", (request) => asked.push(request.url()));
  await page.evaluate(() => document.querySelector("#live")!.dispatchEvent(new Event("every")));
  expect(asked).toEqual([]);
  const caughtUp = page.waitForRequest(/\/live\?seen=/);
  await page.evaluate(() => {
    Object.defineProperty(document, "hidden", { value: false, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  });
  await caughtUp;
  visitor.expectNoProblems();
});

test.for([
  { name: "with JavaScript", hasScript: true },
  { name: "without JavaScript", hasScript: false },
])(
  "Connect shows how to open the database, and hides the password until requested: $name",
  { timeout: 90_000 },
  async (options, { skip }) => {
    skip(noBrowser !== undefined, noBrowser);
    const base = await syncedBase(`Connect ${options.name}`);
    await using visitor = await visit(OWNER, options);
    const { page } = visitor;
    await page.goto(`/bases/${base.id}`);
    await page.getByRole("link", { name: "Connect", exact: true }).click();
    await page.getByText("Connection URL", { exact: true }).first().waitFor();
    await visitor.inspect(`connect-${options.hasScript ? "dialog" : "page"}`);
    expect(page.url().endsWith("/connect")).toBe(!options.hasScript);
    const looks = () => fleet.ctx.db`
      select subject, details from audit_log where action = 'credentials.shown' and account_id = ${base.accountId}`;
    const before = await looks();
    expect(await page.locator("#connect-url").textContent()).toContain(":DB_PASSWORD@");
    await page.getByRole("link", { name: "psql", exact: true }).click();
    await page.locator("#connect-psql").waitFor();
    await page.getByRole("link", { name: "URL", exact: true }).click();
    await page.locator("#connect-url").waitFor();
    expect(await page.content()).not.toContain("connect-password");
    expect(await looks()).toEqual(before);
    await page.getByRole("button", { name: "Show password" }).click();
    await page.locator("#connect-password").waitFor();
    expect(await looks()).not.toEqual(before);
    const url = options.hasScript
      ? await copied(page, "Connection URL")
      : await page.locator("#connect-url").textContent();
    const sql = postgres(url!, { max: 1, onnotice: () => {} });
    try {
      expect(await sql`select name from items_i_more order by name`).toMatchObject([
        { name: "bolt" },
        { name: "nut" },
      ]);
    } finally {
      await sql.end();
    }
    if (options.hasScript) {
      const parts = { psql: "psql command", host: "Host", port: "Port", database: "Database", user: "User" };
      for (const [part, label] of Object.entries({ ...parts, password: "Password" })) {
        expect(await copied(page, label)).toBe(await page.locator(`#connect-${part}`).textContent());
      }
      await page.keyboard.press("Escape");
      expect(await page.locator("#dialog").isVisible()).toBe(false);
    }

    // A user of its own for a program: made, used and revoked.
    await page.goto(`/bases/${base.id}/connect`);
    await page.getByText("New SQL user", { exact: true }).click();
    await page.getByLabel("Name", { exact: true }).fill("Metabase <i>");
    await page.getByRole("button", { name: "Create SQL user" }).click();
    await page.getByRole("heading", { name: "Connect as Metabase <i>" }).waitFor();
    await visitor.inspect(`sql-users-${options.hasScript ? "with" : "without"}-script`);
    await page.getByRole("button", { name: "Show password" }).click();
    await page.locator("#connect-password").waitFor();
    const user = postgres((await page.locator("#connect-url").textContent())!, {
      max: 1,
      onnotice: () => {},
    });
    try {
      expect(await user`select count(*)::int as rows from items_i_more`).toEqual([{ rows: 2 }]);
      await page.getByRole("link", { name: "Revoke Metabase <i>" }).click();
      await page.getByRole("button", { name: "Revoke SQL user" }).click();
      await page.getByText("No SQL users yet").waitFor();
      await expect(user`select 1`.then(() => user`select 1`)).rejects.toThrow();
    } finally {
      await user.end();
    }
    visitor.expectNoProblems();
  },
);

/** What a click on the value's button puts on the clipboard. */
async function copied(page: Page, label: string): Promise<string> {
  const button = page.getByRole("button", { name: `Copy ${label}`, exact: true });
  await button.click();
  return page.evaluate(() => navigator.clipboard.readText());
}

test.for([
  { name: "by mouse and by keyboard", hasScript: true },
  { name: "without JavaScript", hasScript: false },
])(
  "each setting is enabled and disabled again: $name",
  { timeout: 90_000 },
  async ({ name, hasScript }, { skip }) => {
    skip(noBrowser !== undefined, noBrowser);
    const base = await syncedBase(`Settings ${name}`);
    await using visitor = await visit(OWNER, { hasScript });
    const { page } = visitor;
    await page.goto(`/bases/${base.id}/settings`);
    const settings = {
      Turbo: "turbo",
      "Linked records as text": "linkedRecordsAsText",
      "Lookups as text": "lookupsAsText",
      "Rapid creates and updates": "rapid",
    } as const;
    for (const [label, key] of Object.entries(settings)) {
      for (const isOn of [true, false]) {
        const toggle = page.getByRole("switch", { name: label });
        if (hasScript && !isOn) {
          await toggle.focus();
          await page.keyboard.press("Space");
        } else await toggle.setChecked(isOn);
        if (!hasScript) await page.getByRole("button", { name: `Save ${label}` }).click();
        // What retypes columns asks first.
        if (key.endsWith("AsText"))
          await page.getByRole("button", { name: isOn ? "Turn on" : "Turn off", exact: true }).click();
        await until(async () => (await getBase(fleet.ctx.db, base.id)).settings[key] === isOn, {
          what: `${label} is ${isOn ? "on" : "off"}`,
        });
        expect(await page.getByRole("switch", { name: label }).isChecked()).toBe(isOn);
      }
    }
    await page.reload();
    expect(await page.getByRole("switch", { checked: true }).count()).toBe(0);

    // An index is chosen from lists, or written as text.
    const indexes = async () =>
      (await getBase(fleet.ctx.db, base.id)).settings.indexes.map(({ column }) => column);
    if (hasScript) {
      await page.getByLabel("Table", { exact: true }).selectOption("people");
      await until(
        async () => (await page.getByLabel("Column", { exact: true }).locator("option").count()) === 2,
        {
          what: "the columns are those of people",
        },
      );
      await page.getByLabel("Column", { exact: true }).selectOption("name");
      await page.getByRole("button", { name: "Add index" }).click();
    } else {
      await page.getByText("Indexed columns as text").click();
      await page.getByRole("textbox", { name: "One per line" }).fill("people.nam");
      await page.getByRole("button", { name: "Save the indexed columns" }).click();
      await page.getByText("Table people has no column nam: it has name").waitFor();
      await page.getByRole("textbox", { name: "One per line" }).fill("people.name");
      await page.getByRole("button", { name: "Save the indexed columns" }).click();
    }
    await page.locator(".index-list code", { hasText: "people.name" }).waitFor();
    expect(await indexes()).toEqual(["name"]);
    await page.getByText("More about Turbo").click();
    await page.getByText("Leave it off if other integrations call the same base.").waitFor();
    await visitor.inspect(`settings-index-${hasScript ? "with" : "without"}-script`);
    await page.getByRole("button", { name: "Remove the index people.name" }).click();
    await page.locator(".index-list").waitFor({ state: "detached" });
    expect(await indexes()).toEqual([]);
    visitor.expectNoProblems();
  },
);

test("the indicator turns yellow when the source slows down, red when it fails, and green again, without a reload", async ({
  skip,
}) => {
  skip(noBrowser !== undefined, noBrowser);
  const { control } = fleet.sandbox;
  control.settings({ latency: { before: { minMs: 500, maxMs: 500 } } });
  const base = await syncedBase("Indicated");
  await until(async () => (await getBase(fleet.ctx.db, base.id)).recentSweepMs.length >= 4, {
    what: "enough sweeps for a usual duration",
    timeoutMs: 30_000,
  });
  await using visitor = await visit();
  const { page } = visitor;
  await page.goto(`/bases/${base.id}`);
  const badge = page.locator("#now .badge.state");
  const isNow = (color: string) => page.locator(`#now .badge.state.${color}`).waitFor({ timeout: 25_000 });
  await isNow("green");

  control.settings({ latency: { before: { minMs: 2200, maxMs: 2200 } } });
  await isNow("yellow");
  expect(await badge.getAttribute("title")).toMatch(/took [\d.]+ s; usually it takes/);
  await visitor.inspect("indicator-yellow");

  control.settings({ latency: still });
  control.addFault({ kind: "status_503", base: base.sourceBaseId });
  const unreachable = page.locator("#now .badge.state.red", { hasText: "Airtable unreachable" });
  await unreachable.waitFor({ timeout: 25_000 });
  await page.locator("#now").getByText("Data as of").waitFor();
  await visitor.inspect("indicator-red");

  control.clearFaults();
  await isNow("green");
  const { color } = indicatorOf(await getBase(fleet.ctx.db, base.id), new Date());
  expect(color).toBe("green");
}, 90_000);

const still = { before: { minMs: 0, maxMs: 0 } };

test("issues are muted without scripts, and every part of their pages is accessible", async ({ skip }) => {
  skip(noBrowser !== undefined, noBrowser);
  const ratio = {
    formula: "{fldPaid0000000001}/{fldDays0000000001}",
    referencedFieldIds: ["fldPaid0000000001", "fldDays0000000001"],
    isValid: true,
    result: { type: "number" },
  };
  const sourceId = fleet.sandbox.control.createBase({
    name: "Fees",
    tables: [
      {
        name: "Members",
        fields: [
          { name: "Code", type: "barcode" },
          { name: "Card", type: "barcode" },
          { id: "fldPaid0000000001", name: "Paid", type: "number" },
          { id: "fldDays0000000001", name: "Days", type: "number" },
          { name: "Fee a day", type: "formula", options: ratio },
        ],
        records: [{ fields: { Code: { text: "12a" }, Card: { text: "x" }, Paid: 1, Days: 0 } }],
      },
    ],
  });
  const { id } = await fleet.synced((await fleet.connect(sourceId)).id);
  await using plain = await visit(OWNER, { hasScript: false });
  await plain.page.goto(`/bases/${id}/issues`);
  await plain.page.getByRole("heading", { name: "Issues: 2" }).waitFor();
  await plain.page.getByRole("button", { name: "Mute this field Members, Code" }).click();
  await plain.page.getByText("Muted. Issues of this field do not count.").waitFor();
  await plain.page.getByRole("heading", { name: "Issues: 1" }).waitFor();
  await plain.inspect("issues-noscript");
  await plain.page.locator("#muted-fields").getByRole("link", { name: "1 record" }).click();
  await plain.page.getByRole("heading", { name: "1 record" }).waitFor();
  await using visitor = await visit(OWNER, { isTwofold: true });
  const { page } = visitor;
  await page.goto(`/bases/${id}/issues`);
  await visitor.inspect("issues");
  await page.locator("#formula-errors").getByRole("link", { name: "1 record" }).click();
  await page.getByRole("heading", { name: "1 record" }).waitFor();
  await visitor.inspect("issue-records");
  await page.goto(`/bases/${id}`);
  await page.locator("#tables-card").getByRole("link", { name: "1 of members" }).waitFor();
  await visitor.inspect("issues-overview");
  visitor.expectNoProblems();
  await plain.page.goto(`/bases/${id}/issues`);
  await plain.page.getByRole("button", { name: "Unmute Members, Code" }).click();
  await plain.page.getByRole("heading", { name: "Issues: 2" }).waitFor();
});

test("the overview of a healthy base of six tables fits two thirds of a page, and leads to all that it sums up", async ({
  skip,
}) => {
  skip(noBrowser !== undefined, noBrowser);
  const sourceId = fleet.sandbox.control.generate({ name: "Six tables", records: 60, tables: 6 });
  const base = await fleet.synced((await fleet.connect(sourceId)).id);
  await using visitor = await visit(OWNER, { isTwofold: true });
  const { page } = visitor;
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.goto(`/bases/${base.id}`);
  await page.locator(".first-queries details").waitFor();
  expect(await page.locator("#now dl > div").count()).toBe(4);
  expect(await page.evaluate(() => document.documentElement.scrollHeight)).toBeLessThanOrEqual(1100);
  for (const link of ["Freshness", "Usage", "Schema changes"])
    await page.locator(".overview").getByRole("link", { name: link, exact: true }).waitFor();
  await visitor.inspect("overview-six");
  visitor.expectNoProblems();
});

test("every page of a base and the admin page is accessible and fits", async ({ skip }) => {
  skip(noBrowser !== undefined, noBrowser);
  const base = await syncedBase("Pages <img src=x onerror=alert(1)>");
  const look = async (who: typeof OWNER, paths: Record<string, string>) => {
    await using visitor = await visit(who, { isTwofold: true });
    for (const [title, path] of Object.entries(paths)) {
      await visitor.page.goto(path);
      await visitor.inspect(title);
    }
    visitor.expectNoProblems();
  };
  const path = `/bases/${base.id}`;
  await look(OWNER, {
    bases: "/bases",
    overview: path,
    "schema-changes": `${path}/schema-changes`,
    issues: `${path}/issues`,
    proxy: `${path}/proxy`,
    runs: `${path}/runs`,
    settings: `${path}/settings`,
    delete: `${path}/delete`,
    requests: "/requests",
  });
  await look(OPERATOR, {
    fleet: "/operator",
    desk: "/operator/requests",
    clusters: "/operator/clusters",
    accounts: "/operator/accounts",
  });
});

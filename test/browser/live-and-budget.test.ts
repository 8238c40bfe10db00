/** Live mode and the call budget as users see them, in a real browser: every state, wide and narrow, light and dark. */
import type { Browser, Cookie, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type RunningConsole, startConsole } from "../../apps/console/start";
import { createAccount } from "../../core/control/accounts";
import { type Base, getBase, recordProblems, recordRun, updateSettings } from "../../core/control/bases";
import { createWorkspace } from "../../core/control/budgets";
import type { FoundProblem } from "../../core/sync/host";
import { BROWSER_TEST_MS, newVisitor, noBrowser, openBrowser, type VisitorOptions } from "../support/browser";
import { type Fleet, startFleet } from "../support/fleet";
import { recordCalls, recordFeed } from "../support/live-rows";
import { until } from "../support/poll";

const OWNER = { email: "fleet@example.org", password: "correct horse" };
/** One user without a workspace when a test begins, and one with a workspace. */
const CUSTOMER = { email: "customer@example.org", password: "correct horse" };
const AGENCY = { email: "agency@example.org", password: "correct horse" };

let fleet: Fleet;
let running: RunningConsole;
let browser: Browser | undefined;
let baseUrl: string;
let customerId: string;

beforeAll(async () => {
  if (noBrowser) return;
  // Without a worker, the pages show what the test has recorded.
  fleet = await startFleet({ workers: 0 });
  customerId = (await createAccount(fleet.ctx.db, CUSTOMER)).id;
  const agency = await createAccount(fleet.ctx.db, AGENCY);
  await createWorkspace(fleet.ctx, agency.id, { name: "Agency", plan: "team" });
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
  const { page } = visitor;
  await page.context().addCookies(sessions.get(who) ?? []);
  if (sessions.has(who)) return visitor;
  await page.goto("/sign-in");
  await page.getByLabel("E-mail").fill(who.email);
  await page.getByLabel("Password").fill(who.password);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { level: 1, name: "Bases" }).waitFor();
  sessions.set(who, await page.context().cookies());
  return visitor;
}

/** A base with a day of batches in its history. */
async function liveBase(name: string): Promise<Base> {
  const { ctx, sandbox } = fleet;
  const base = await fleet.connect(sandbox.control.generate({ name, records: 20 }), { live: true });
  const tables = [{ name: "orders", source_name: "Orders", source_id: "tblOne", records: 84_000 }];
  const usual = { seen: 20, inserted: 0, updated: 2, deleted: 0, requests: 3, waitMs: 0, tables };
  const ended = (secondsAgo: number, ms: number) => ({
    startedAt: new Date(Date.now() - secondsAgo * 1000 - ms),
    completedAt: new Date(Date.now() - secondsAgo * 1000),
  });
  await recordRun(ctx.db, base.id, { ...usual, kind: "first", ...ended(90_000, 290_000) });
  for (let index = 20; index > 0; index--) {
    const times = ended(index * 700, 300 + 37 * ((index * 7) % 11));
    await recordRun(ctx.db, base.id, { ...usual, kind: "live", ...times });
  }
  await ctx.db`update bases set sweep_started_at = now() - interval '5 hours', sweep_completed_at = now() - interval '4 hours' where id = ${base.id}`;
  return getBase(ctx.db, base.id);
}

test("every state of live mode is described", { timeout: BROWSER_TEST_MS }, async ({ skip }) => {
  skip(noBrowser !== undefined, noBrowser);
  const { db } = fleet.ctx;
  const base = await liveBase("Live");
  await using visitor = await visit(OWNER, { isTwofold: true });
  const { page } = visitor;
  const states: [string, Parameters<typeof recordFeed>[2], string][] = [
    ["pings", { hasNotifications: true, pace: 1200, missed: 0 }, "Live"],
    ["polled", { pace: 5, waiting: 4210, waitingAgo: 20, missed: 3 }, "Live"],
    ["stale", { staleAgo: 70, comparedAgo: 70, gapAgo: 70 }, "Catching up"],
    ["refused", { state: "refused", reason: REFUSED, offAgo: 5000 }, "Not live"],
    ["failing", { state: "failing", reason: "Airtable answered 503.", offAgo: 90 }, "Not live"],
  ];
  for (const [state, feed, word] of states) {
    await recordFeed(db, base, feed);
    await page.goto(`/bases/${base.id}`);
    await page.locator("#now .badge.state", { hasText: word }).waitFor();
    await visitor.inspect(`live-${state}`);
  }
  await recordFeed(db, base, { hasNotifications: true, pace: 298 });
  const missing = { kind: "missing_table", message: NOT_FOUND, agoMs: 90_000, nextInMs: 45_000 } as const;
  const settings = {
    kind: "settings",
    tableId: null,
    name: "",
    message: "Queries of yours hold what must change.",
    agoMs: 400_000,
    nextInMs: null,
  } as const;
  const problems: [string, FoundProblem[], string][] = [
    [
      "missing",
      ["Orders", "Arrivals"].map((table) => ({ ...missing, tableId: table, name: table })),
      "Table missing",
    ],
    ["settings", [settings], "Settings wait"],
  ];
  for (const [state, found, word] of problems) {
    await recordProblems(db, base.id, found);
    await page.goto(`/bases/${base.id}`);
    await page.locator("#now .badge.state", { hasText: word }).waitFor();
    await visitor.inspect(`live-${state}`);
  }
  await page.goto("/bases");
  await visitor.inspect("live-list");
  visitor.expectNoProblems();
});

const NOT_FOUND = "Airtable answered 404 for its records.";
const REFUSED =
  "The key may not manage webhooks: tick the scope webhook:manage in the token's settings, and save it.";

test("pending changes are counted without a reload, and the rapid switch says what it does to live mode", {
  timeout: BROWSER_TEST_MS,
}, async ({ skip }) => {
  skip(noBrowser !== undefined, noBrowser);
  const { db } = fleet.ctx;
  const base = await liveBase("Watched");
  await recordFeed(db, base);
  await using visitor = await visit();
  const { page } = visitor;
  await page.goto(`/bases/${base.id}`);
  await recordFeed(db, base, { waiting: 1234, waitingAgo: 3 });
  await page.locator("#now dl div", { hasText: "Waiting" }).getByText("1,234").waitFor();

  await page.goto(`/bases/${base.id}/settings`);
  const note = page.getByText("Rapid mode is on and replaces it");
  const rapid = page.getByRole("switch", { name: "Rapid creates and updates" });
  for (const isOn of [true, false]) {
    await rapid.setChecked(isOn);
    await until(async () => (await note.count()) === Number(isOn), { what: `live mode is ${isOn}` });
    expect((await getBase(db, base.id)).settings).toMatchObject({ live: true, rapid: isOn });
  }
  await page.getByRole("switch", { name: "Live changes" }).setChecked(false);
  await until(async () => !(await getBase(db, base.id)).settings.live, { what: "live is off" });
  visitor.expectNoProblems();
});

test.for([
  { name: "with JavaScript", isTwofold: true },
  { name: "without JavaScript", hasScript: false },
])(
  "a workspace is added, selected, changed and deleted, and its calls are shown: $name",
  { timeout: BROWSER_TEST_MS },
  async ({ name, ...look }, { skip }) => {
    skip(noBrowser !== undefined, noBrowser);
    const { db } = fleet.ctx;
    const base = await liveBase(`Budget ${name}`);
    await db`update bases set account_id = ${customerId} where id = ${base.id}`;
    await recordFeed(db, base, { hasNotifications: true, pace: 1200 });
    await using visitor = await visit(CUSTOMER, look);
    const { page } = visitor;
    const inspect = (view: string) => visitor.inspect(`budget-${view}-${name.replaceAll(" ", "-")}`);

    await page.goto("/account/workspaces");
    await inspect("1-none");
    await page.getByText("Add your workspace").click();
    await page.getByLabel("Name").fill("Marketing <b>");
    await page.getByLabel("Custom").check();
    await page.getByRole("textbox", { name: "Calls per month" }).fill("many");
    await page.getByRole("button", { name: "Add workspace" }).click();
    await page.getByText("Enter a whole number of at least 1").waitFor();
    await inspect("2-wrong");
    await page.getByRole("textbox", { name: "Calls per month" }).fill("100,000");
    await page.getByRole("button", { name: "Add workspace" }).click();
    await page.getByText("Workspace created").waitFor();

    await page.goto(`/bases/${base.id}/settings`);
    await page.getByLabel("Workspace").selectOption({ label: "Marketing <b> (100,000 calls per month)" });
    await inspect("3-settings");
    await page.locator("#call-budget").getByRole("button", { name: "Save" }).click();
    await page.getByText("Saved.").waitFor();
    await recordCalls(db, base, {
      client: 4_200,
      byKind: { payloads: 21_000, records: 6_300, sweep: 3_100, schema: 610, freshness: 900, webhooks: 12 },
    });
    await page.goto(`/bases/${base.id}`);
    await page.getByRole("link", { name: "Usage of Marketing <b>" }).waitFor();
    await inspect("4-base");
    await page.goto("/account/workspaces");
    await inspect("5-list");
    await page.getByRole("link", { name: "Change Marketing" }).click();
    await page.getByRole("heading", { name: "Sync's calls by purpose" }).waitFor();
    await inspect("6-one");
    await page.getByLabel("Free").check();
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Saved. The change takes effect").waitFor();
    await page.getByText("This month's calls are used up.").waitFor();
    await inspect("7-over");
    await page.getByRole("link", { name: "Delete workspace" }).click();
    await page.getByRole("button", { name: "Delete workspace", exact: true }).click();
    await page.getByText("Move them to another workspace first").waitFor();
    await updateSettings(fleet.ctx, await getBase(db, base.id), { workspaceId: null });
    await page.getByRole("link", { name: "Delete workspace" }).click();
    await page.getByRole("button", { name: "Delete workspace", exact: true }).click();
    await page.getByText("Workspace deleted").waitFor();
    visitor.expectNoProblems();
  },
);

test("the last step of connecting a base asks for the plan", { timeout: BROWSER_TEST_MS }, async ({
  skip,
}) => {
  skip(noBrowser !== undefined, noBrowser);
  const { ctx, sandbox } = fleet;
  const who = { email: `${crypto.randomUUID()}@example.org`, password: OWNER.password };
  const account = await createAccount(ctx.db, who);
  await createWorkspace(ctx, account.id, { name: "Agency", plan: "team" });
  sandbox.control.generate({ name: "Asked", records: 5 });
  await using visitor = await visit(AGENCY, { isTwofold: true });
  const { page } = visitor;
  await connectUpToStart(page, "Asked");
  // The only workspace is preset; no plan is.
  expect(await page.getByLabel("Agency").isChecked()).toBe(true);
  expect(await page.getByLabel("Business or no cap").isChecked()).toBe(false);
  await visitor.inspect("budget-start");
  await page.getByRole("button", { name: "Start syncing" }).click();
  await page.waitForURL(/\/bases\/bas_/);
  await page.getByRole("link", { name: "Usage of Agency" }).waitFor();
  visitor.expectNoProblems();
});

async function connectUpToStart(page: Page, name: string): Promise<void> {
  await page.goto("/new");
  await page.getByRole("button", { name: "Airtable" }).click();
  await page.getByLabel("API key").fill(fleet.sandbox.key);
  await page.getByRole("button", { name: "Check key" }).click();
  await page.getByLabel(name).check();
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByRole("heading", { name: "Where should we store the data?" }).waitFor();
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByRole("heading", { name: "Ready to sync" }).waitFor();
}

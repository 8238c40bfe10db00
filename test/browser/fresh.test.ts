/**
 * How fresh a base is, as users see it in a real browser: charts over time, the list, the status page, and a page that
 * loses its connection. Without a worker, the pages show what the test has recorded.
 */
import type { Browser, Cookie } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type RunningConsole, startConsole } from "../../apps/console/start";
import { type Base, recordRun } from "../../core/control/bases";
import { newStatusPage, rollUpHours, statusToken } from "../../core/control/history";
import { BROWSER_TEST_MS, newVisitor, noBrowser, openBrowser, type VisitorOptions } from "../support/browser";
import { countCalls } from "../support/count-calls";
import { type Fleet, startFleet } from "../support/fleet";
import { recordFeed } from "../support/live-rows";

const OWNER = { email: "fleet@example.org", password: "correct horse" };
const MINUTE_MS = 60_000;

let fleet: Fleet;
let running: RunningConsole;
let browser: Browser | undefined;
let baseUrl: string;
let base: Base;
let statusPath: string;
let cookies: Cookie[] | undefined;

beforeAll(async () => {
  if (noBrowser) return;
  fleet = await startFleet({ workers: 0 });
  running = await startConsole(fleet.ctx, { port: 0 });
  baseUrl = `http://localhost:${running.port}`;
  browser = await openBrowser();
  base = await busyBase("Acme CRM with a long name for a narrow screen");
  for (const name of ["Hiring", "Product roadmap", "Content calendar"]) await busyBase(name);
  const actor = { kind: "cli", name: "test" } as const;
  await newStatusPage(fleet.ctx, base.accountId, actor);
  statusPath = `/status/${await statusToken(fleet.ctx.db, base.accountId)}`;
}, BROWSER_TEST_MS);
afterAll(async () => {
  await browser?.close();
  await running?.stop();
  await fleet?.[Symbol.asyncDispose]();
});

async function visit(options: Omit<VisitorOptions, "baseUrl"> = {}) {
  const visitor = await newVisitor(browser!, { baseUrl, ...options });
  const { page } = visitor;
  if (cookies) {
    await page.context().addCookies(cookies);
    return visitor;
  }
  await page.goto("/sign-in");
  await page.getByLabel("E-mail").fill(OWNER.email);
  await page.getByLabel("Password").fill(OWNER.password);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { level: 1, name: "Bases" }).waitFor();
  cookies = await page.context().cookies();
  return visitor;
}

/** A day of syncs with a first sync, an outage, a pause, a schema change and issues. */
async function busyBase(name: string): Promise<Base> {
  const { ctx, sandbox } = fleet;
  const made = await fleet.connect(sandbox.control.generate({ name, records: 20 }));
  const tables = [{ name: "orders", source_name: "Orders", source_id: "tblOne", records: 84_000 }];
  const usual = { seen: 20, inserted: 0, deleted: 0, requests: 3, waitMs: 0, tables, issueCount: 5 };
  const ended = (minutesAgo: number, ms: number) => ({
    startedAt: new Date(Date.now() - minutesAgo * MINUTE_MS - ms),
    completedAt: new Date(Date.now() - minutesAgo * MINUTE_MS),
  });
  await ctx.db`update bases set created_at = now() - interval '2 days' where id = ${made.id}`;
  await recordRun(ctx.db, made.id, { ...usual, kind: "first", updated: 0, ...ended(1400, 290_000) });
  for (let minutes = 1390; minutes >= 0; minutes -= 4) {
    if ((minutes > 700 && minutes < 800) || (minutes > 300 && minutes < 420)) continue;
    const times = ended(minutes, 300 + 137 * ((minutes * 7) % 23));
    await recordRun(ctx.db, made.id, { ...usual, kind: "sweep", updated: (minutes * 13) % 40, ...times });
  }
  await ctx.db`
    insert into base_periods (base_id, kind, label, began_at, ended_at, as_of) values
      (${made.id}, 'outage', 'Airtable unreachable', now() - interval '800 minutes', now() - interval '700 minutes',
        now() - interval '800 minutes'),
      (${made.id}, 'pause', 'Paused', now() - interval '420 minutes', now() - interval '300 minutes',
        now() - interval '420 minutes')`;
  await ctx.db`
    insert into schema_changes (base_id, seen_at, kind, table_name, field_name)
    values (${made.id}, now() - interval '200 minutes', 'field_dropped', 'orders', 'price')`;
  for (let hours = 0; hours < 24; hours++) {
    const at = Date.now() - hours * 60 * MINUTE_MS;
    await countCalls(ctx.db, `airtable:${made.sourceBaseId}`, { sync: 40 + hours * 3, client: hours }, at);
  }
  await rollUpHours(ctx.db);
  return made;
}

test("every page about freshness is accessible and fits", { timeout: BROWSER_TEST_MS }, async ({ skip }) => {
  skip(noBrowser !== undefined, noBrowser);
  await using visitor = await visit({ isTwofold: true });
  const { page } = visitor;
  const path = `/bases/${base.id}`;
  for (const [title, where] of Object.entries({
    overview: path,
    hour: `${path}/freshness?range=1h`,
    day: `${path}/freshness?range=24h`,
    month: `${path}/freshness?range=30d`,
    list: "/bases",
    "list-empty": "/bases?state=problem&q=nothing&sort=lag",
    "status-settings": "/account/status",
    status: statusPath,
  })) {
    await page.goto(where);
    await visitor.inspect(`fresh-${title}`);
  }
  await page.goto(`${path}/freshness?range=24h`);
  await page.getByRole("img", { name: /^Lag, the last 24 hours\. Median/ }).waitFor();
  await page.getByText("Outage: Airtable unreachable", { exact: true }).waitFor();
  visitor.expectNoProblems();
});

test("a page that gets no news says so, with the age of what it shows, until the next answer", {
  timeout: BROWSER_TEST_MS,
}, async ({ skip }) => {
  skip(noBrowser !== undefined, noBrowser);
  await recordFeed(fleet.ctx.db, base);
  await using visitor = await visit();
  const { page } = visitor;
  await page.goto(`/bases/${base.id}`);
  await page.waitForResponse(/\/live\?seen=/);
  await page.context().setOffline(true);
  await page.getByRole("alert").getByText("Connection lost").waitFor();
  await page.getByText(/Last update \d+ s ago/).waitFor();
  expect(await page.locator("html.is-stale").count()).toBe(1);
  await visitor.inspect("connection-lost");
  await page.context().setOffline(false);
  await page.getByText("Connection lost").waitFor({ state: "detached" });
  expect(await page.locator("html.is-stale").count()).toBe(0);
});

import { afterAll, beforeAll, expect, test } from "vitest";
import { consoleApp } from "../../../apps/console/app";
import type { Account } from "../../../core/control/accounts";
import { type Base, createBase, getBase, recordRun, updateSettings } from "../../../core/control/bases";
import { asker, authByHeader } from "../../support/console";
import { GOOD_KEY, type TestControl, testControl } from "../../support/control-support";
import { type FeedNoted, recordFeed } from "../../support/live-rows";

let control: TestControl;
let ask: ReturnType<typeof asker>;
let owner: Account;
let base: Base;

beforeAll(async () => {
  control = await testControl();
  ask = asker(consoleApp(control.ctx, authByHeader()));
  owner = await control.addAccount("live@example.com");
  const made = { platform: "airtable", apiKey: GOOD_KEY, sourceBaseId: "appOne" };
  base = await createBase(control.ctx, owner.id, made);
  const completedAt = new Date();
  const startedAt = new Date(completedAt.getTime() - 400);
  await recordRun(control.ctx.db, base.id, {
    kind: "first",
    startedAt,
    completedAt,
    seen: 3,
    inserted: 3,
    updated: 0,
    deleted: 0,
    requests: 2,
    waitMs: 0,
    tables: [{ name: "items", source_name: "Items", source_id: "tblOne", records: 3 }],
  });
});
afterAll(() => control?.[Symbol.asyncDispose]());

/** The text of a page, without markup. */
async function wordsOf(path: string): Promise<string> {
  const { text } = await ask(path, { account: owner });
  return text
    .replaceAll(/<[^>]*>/g, " ")
    .replaceAll("&#39;", "'")
    .replaceAll(/\s+/g, " ");
}

const freshness = () => wordsOf(`/bases/${base.id}/freshness`);

async function pageWith(feed: FeedNoted): Promise<string> {
  await recordFeed(control.ctx.db, base, feed);
  return wordsOf(`/bases/${base.id}`);
}

test("a live base shows how changes arrive, when the last one did, and that SQL was compared with the source", async () => {
  expect(await pageWith({ hasNotifications: true, pace: 1200 })).toMatch(
    /Live The database matched Airtable .* ago. Changes arrive immediately Airtable notifies us/,
  );
  const polled = await pageWith({ pace: 5, changedAgo: 200, comparedAgo: 70 });
  expect(polled).toContain("Changes arrive within 5 s we poll Airtable");
  expect(polled).toContain("Last change 3 min ago");
  expect(polled).not.toContain("Last comparison");
  expect(await freshness()).toContain("Last comparison 1 min ago the database matched Airtable");
});

test("pending and missed changes are counted and explained", async () => {
  const well = await pageWith({});
  expect(well).toContain("Waiting 0 every known change is in SQL");
  expect(await freshness()).toContain("No missed changes");
  const busy = await pageWith({ waiting: 4210, waitingAgo: 20, missed: 1 });
  expect(busy).toMatch(/Waiting 4,210 changed records, the oldest for 2\d s/);
  expect(await freshness()).toContain("Missed changes: 1 record that Airtable did not report");
});

test("a base that lags is not green, and shows since when and what is done about it", async () => {
  const stale = await pageWith({ staleAgo: 70, gapAgo: 70 });
  expect(stale).toContain("Catching up The database was found to lag behind Airtable 1 min 10 s ago");
  expect(stale).toContain("Every record is being re-read now");
  expect(stale).toMatch(/Data as of \d\d:\d\d UTC/);
  expect(stale).not.toMatch(/Changes arrive|every known change/);
  expect(await freshness()).not.toMatch(/Last comparison|No missed changes/);
  expect(await pageWith({ readAgo: 900 })).toContain("Airtable has not been checked for changes for 15 min");
});

test("a key without permission: the page says what to enable and where, as text, and the base is judged by its sweeps", async () => {
  const reason = "Tick the scope webhook:manage <script>alert(1)</script>";
  await recordFeed(control.ctx.db, base, { state: "refused", reason });
  const { text } = await ask(`/bases/${base.id}`, { account: owner });
  expect(text).toContain("Live sync is off");
  expect(text).toContain("Tick the scope webhook:manage &lt;script>");
  expect(text).toContain('href="https://example.com/keys"');
  expect(text).toMatch(new RegExp(`href="/bases/${base.id}/settings">new API key`));
  expect(text).toContain("Lag, last hour");
  expect(text).not.toContain("Changes arrive");
});

test("before the first read, and with live mode disabled or rapid mode enabled, no page says live", async () => {
  expect(await pageWith({ state: "making", readAgo: null })).toContain("Live sync is being set up");
  const found = await getBase(control.ctx.db, base.id);
  await updateSettings(control.ctx, found, { live: false });
  expect(await pageWith({})).toMatch(/Live changes are turned off ?, so we poll/);
  await updateSettings(control.ctx, found, { live: true, rapid: true });
  expect(await pageWith({})).not.toMatch(/Changes arrive|turned off/);
  await updateSettings(control.ctx, found, { rapid: false });
});

test("the list marks a live base, and says so when its changes are no longer read", async () => {
  await recordFeed(control.ctx.db, base, { readAgo: 125, pace: 1200, hasNotifications: true });
  const words = await wordsOf("/bases");
  expect(words).toMatch(/Inventory Live : Live; .* ago\. – 3 0 /);
  await recordFeed(control.ctx.db, base, { readAgo: 1000 });
  expect(await wordsOf("/bases")).toContain("Late : Airtable has not been checked for changes");
});

test("live mode is a setting with its own form; rapid mode says there that it takes precedence", async () => {
  const path = `/bases/${base.id}/settings`;
  const { text } = await ask(path, { account: owner });
  expect(text).toMatch(/<form[^>]*id="setting-live"/);
  expect(text).not.toContain("Rapid mode is on");
  const changed = await ask(`${path}/rapid`, { account: owner, form: { value: "on" }, isHtmx: true });
  expect(changed.text).toMatch(/id="setting-live"[^>]* hx-swap-oob="outerMorph"/);
  expect(changed.text).toContain("Rapid mode is on and replaces it");
  expect((await ask(path, { account: owner })).text).toContain("Rapid mode is on and replaces it");
  await ask(`${path}/rapid`, { account: owner, form: {} });
  expect((await ask(`${path}/live`, { account: owner, form: {} })).status).toBe(303);
  expect((await getBase(control.ctx.db, base.id)).settings).toMatchObject({ live: false, rapid: false });
  await ask(`${path}/live`, { account: owner, form: { value: "on" } });
  expect((await getBase(control.ctx.db, base.id)).settings.live).toBe(true);
});

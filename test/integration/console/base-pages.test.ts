import { afterAll, beforeAll, expect, test } from "vitest";
import { consoleApp } from "../../../apps/console/app";
import type { Account } from "../../../core/control/accounts";
import {
  type Base,
  createBase,
  getBase,
  type Progress,
  recordRun,
  saveProgress,
  settingList,
} from "../../../core/control/bases";
import type { IssueGroup } from "../../../core/replica";
import { asker, authByHeader } from "../../support/console";
import { GOOD_KEY, OTHER_KEY, type TestControl, testControl } from "../../support/control-support";

/** Contents of a name that could be taken for code. */
const HOSTILE = `</script><script>alert(1)</script>"'><img src=x onerror=alert(2)>\u202e<b hx-get="/x">`;

let control: TestControl;
let ask: ReturnType<typeof asker>;

beforeAll(async () => {
  control = await testControl();
  ask = asker(consoleApp(control.ctx, authByHeader()));
});
afterAll(() => control?.[Symbol.asyncDispose]());

let accounts = 0;
const newAccount = () => control.addAccount(`pages${accounts++}@example.com`);
const connect = (account: Account) =>
  createBase(control.ctx, account.id, { platform: "airtable", apiKey: GOOD_KEY, sourceBaseId: "appOne" });

function completed(base: Base, facts: Partial<Parameters<typeof recordRun>[2]> = {}) {
  const startedAt = new Date(Date.now() - 400);
  return recordRun(control.ctx.db, base.id, {
    kind: "sweep",
    startedAt,
    completedAt: new Date(),
    seen: 3,
    inserted: 0,
    updated: 0,
    deleted: 0,
    requests: 2,
    waitMs: 0,
    ...facts,
  });
}

const issue: IssueGroup = {
  ...{ kind: "value" as const, table: "items", column: "price", reason: "not a number", count: 1 },
  ...{ record_id: "rec1", value: '"x"', table_id: null, field_id: null },
};

test("the pages of a base belong to its account: 404 for another account, and none of its forms has an effect", async () => {
  const [owner, other] = [await newAccount(), await newAccount()];
  const base = await connect(owner);
  const reads = [
    "",
    "/live?seen=",
    "/schema-changes",
    "/issues",
    "/freshness",
    "/runs",
    "/proxy",
    "/settings",
    "/connect",
    "/delete",
  ];
  for (const read of reads) {
    const answer = await ask(`/bases/${base.id}${read}`, { account: other });
    expect([read, answer.status]).toEqual([read, 404]);
    expect(answer.text).not.toContain(base.database.name);
  }
  const forms: [string, Record<string, string>][] = [
    ["/pause", { paused: "on" }],
    ["/sync", {}],
    ["/settings/turbo", { value: "on" }],
    ["/key", { api_key: GOOD_KEY }],
    ["/connect/rotate", {}],
    ["/delete", { name: base.name }],
  ];
  for (const [path, form] of forms) {
    expect([path, (await ask(`/bases/${base.id}${path}`, { account: other, form })).status]).toEqual([
      path,
      404,
    ]);
    const foreign = await ask(`/bases/${base.id}${path}`, { account: owner, form, from: "cross-site" });
    expect([path, foreign.status]).toEqual([path, 403]);
  }
  const untouched = await getBase(control.ctx.db, base.id);
  expect(untouched).toMatchObject({ state: "starting", settings: { turbo: false, paused: false } });
  expect((await ask("/bases", { account: other })).text).not.toContain(base.id);
  expect((await ask("/bases")).headers.get("location")).toMatch(/^\/sign-in/);
});

test("any names at the source are shown as text", async () => {
  const owner = await newAccount();
  const base = await connect(owner);
  await control.ctx.db`update bases set name = ${HOSTILE} where id = ${base.id}`;
  const table = { name: HOSTILE, source_name: HOSTILE, source_id: `"><script>`, records: 1 };
  const hostileIssue: IssueGroup = {
    ...issue,
    table_id: table.source_id,
    table: HOSTILE,
    record_id: `javascript:alert(1)//"><script>`,
    column: HOSTILE,
    value: HOSTILE,
    reason: HOSTILE,
  };
  await completed(base, { tables: [table], issueCount: 1, issues: [hostileIssue] });
  await completed(base, {
    completedAt: null,
    error: { code: "source_rejected", message: HOSTILE },
  });
  await saveProgress(control.ctx.db, base.id, {
    kind: "rebuild",
    started_at: new Date().toISOString(),
    tables: [{ ...table, records_done: 1, records_estimate: null, done: false }],
  });
  const pages = ["", "/live?seen=", "/issues", "/runs", "/proxy", "/settings", "/connect", "/delete"];
  for (const path of ["/bases", ...pages.map((page) => `/bases/${base.id}${page}`)]) {
    const { status, text } = await ask(path, { account: owner });
    expect([path, status]).toEqual([path, 200]);
    const markup = text.replaceAll(/<script src="\/assets\/[\w.]+\.js" defer><\/script>/g, "");
    expect(markup).not.toMatch(/<script|<img|<b hx-get|\son\w+="|\sstyle=|href="javascript:/i);
    if (!path.endsWith("/runs")) expect(text).toContain("&lt;img src=x");
  }
  const { text } = await ask(`/bases/${base.id}/issues`, { account: owner });
  expect(text).toContain(
    `href="https://airtable.com/appOne/%22%3E%3Cscript%3E/javascript%3Aalert(1)%2F%2F%22%3E%3Cscript%3E"`,
  );
  const { text: searched } = await ask(`/bases?q=${encodeURIComponent(HOSTILE)}`, { account: owner });
  expect(searched).not.toContain("<img");
});

test("objects that a rebuild could not restore are shown with their statements, apart from cells", async () => {
  const owner = await newAccount();
  const base = await connect(owner);
  const lost: IssueGroup = {
    ...issue,
    kind: "object",
    table: "orders",
    record_id: "",
    column: "index orders_by_price",
    value: "create index orders_by_price on public.orders using btree (price)",
    reason: "no longer on the table since its rebuild: its column price was dropped or renamed",
  };
  await completed(base, { issueCount: 1, issues: [lost] });
  const page = async (path: string) => (await ask(`/bases/${base.id}${path}`, { account: owner })).text;
  const shown = await page("/issues");
  expect(shown).toContain("Objects that a rebuild could not keep");
  for (const part of ["index orders_by_price", lost.value, lost.reason]) expect(shown).toContain(part);
  expect(shown).not.toContain("Cells that do not fit");
  expect(shown).not.toContain("https://airtable.com/appOne/");
  expect(await page("")).toContain(`href="/bases/${base.id}/issues">1 issue<`);
  await completed(base, { issueCount: 2, issues: [lost, issue] });
  const { text } = await ask(`/bases/${base.id}/issues`, { account: owner });
  expect(text).toContain("Objects that a rebuild could not keep");
  expect(text).toContain("Cells that do not fit");
});

test("a base whose key is refused links to the form for a new key", async () => {
  const owner = await newAccount();
  const base = await connect(owner);
  await completed(base, {
    completedAt: null,
    error: { code: "source_key_refused", message: "The source does not accept this key" },
  });
  const { text } = await ask(`/bases/${base.id}`, { account: owner });
  expect(text).toContain(`href="/bases/${base.id}/settings#key"`);
});

test("every page has a strict policy, and no cache stores what belongs to an account", async () => {
  const owner = await newAccount();
  const base = await connect(owner);
  for (const path of ["/bases", `/bases/${base.id}`, `/bases/${base.id}/connect`, "/requests"]) {
    const { headers } = await ask(path, { account: owner });
    expect(headers.get("content-security-policy")).toMatch(/default-src 'none'/);
    expect(headers.get("content-security-policy")).not.toMatch(/unsafe/);
    expect(headers.get("cache-control")).toBe("no-store");
  }
});

test("a first sync is visible from its first second, table by table", async () => {
  const owner = await newAccount();
  const base = await connect(owner);
  const page = (await ask(`/bases/${base.id}`, { account: owner })).text;
  expect(page).toContain("First sync");
  // What is counted from the end of the first sync is not there yet.
  expect(page).not.toMatch(/No sync in this time|Lag, last|Schema changes|when the first sync has finished/);
  const orders = { name: "orders", source_name: "Orders", records_done: 1200, done: false };
  const started = new Date(Date.now() - 6000).toISOString();
  const progress = (estimate: { records_estimate: number | null; records_error?: number }): Progress => ({
    kind: "first",
    started_at: started,
    pages: 16,
    calls: 18,
    tables: [
      { ...orders, ...estimate },
      { name: "people", source_name: "People", records_done: 300, records_estimate: 500, done: false },
      { name: "done", source_name: "Done", records_done: 0, records_estimate: 0, done: true },
    ],
  });
  const now = async () =>
    (await ask(`/bases/${base.id}/live?seen=`, { account: owner, isHtmx: true })).text.replaceAll(
      /<!--.*?-->/g,
      "",
    );
  const isWatched = async () => (await getBase(control.ctx.db, base.id)).isWatched;
  expect(await isWatched()).toBe(false);
  await saveProgress(control.ctx.db, base.id, progress({ records_estimate: 30_123, records_error: 2000 }));
  const estimated = await now();
  // From now on, tables are measured for it.
  expect(await isWatched()).toBe(true);
  expect(estimated).toContain("1,200 of about 30,000");
  expect(estimated).toMatch(/<dt>Time left<\/dt><dd>1 min \d\d s to 2 min \d\d? s</);
  expect(estimated).toMatch(/<dt>Records a second<\/dt><dd>2[345]\d</);
  expect(estimated).toMatch(/Turn on Turbo.*5 calls a second instead of 3/s);
  expect(estimated).toContain('value="select *\nfrom done\norder by created_time desc\nlimit 20;"');
  await saveProgress(control.ctx.db, base.id, progress({ records_estimate: null }));
  const text = await now();
  expect(text).toContain("counting the others");
  expect(text).toContain("1 of 3 tables ready");
  expect(text).toContain("Done is ready to query.");
  expect(text).toMatch(/<progress aria-label="Orders"><\/progress>/);
  expect(text).toMatch(/<progress aria-label="People" max="500" value="300">/);
  expect(text).toMatch(/<progress aria-label="Done" max="1" value="1">/);
  expect(text).toContain("1,200 so far");
  const { status } = await ask(`/bases/${base.id}/turbo`, { account: owner, form: {} });
  expect(status).toBe(303);
  expect((await getBase(control.ctx.db, base.id)).settings.turbo).toBe(true);
  expect(await now()).not.toContain("Turn on Turbo");
});

test("news contain the small part, and of the larger ones only what has changed", async () => {
  const owner = await newAccount();
  const base = await connect(owner);
  const table = { name: "items", source_name: "Items", source_id: "tblOne", records: 3 };
  await completed(base, { kind: "first", tables: [table] });
  const page = (await ask(`/bases/${base.id}`, { account: owner })).text;
  const next = (text: string) => /hx-get="(\/bases\/[^"]+\/live\?seen=[^"]+)"/.exec(text)![1]!;
  const quiet = (await ask(next(page), { account: owner, isHtmx: true })).text;
  expect(quiet).toContain('id="live"');
  expect(quiet).not.toContain("hx-swap-oob");
  expect(quiet.length).toBeLessThan(3000);
  await completed(base, { tables: [{ ...table, records: 4 }], issueCount: 1, issues: [issue] });
  const news = (await ask(next(quiet), { account: owner, isHtmx: true })).text;
  const parts = [...news.matchAll(/<div id="(\w+)"[^>]* hx-swap-oob="innerMorph">/g)].map(([, id]) => id);
  // A second sync that took as long leaves the chart as it is.
  expect(parts.filter((part) => part !== "history")).toEqual(["tables"]);
  const after = (await ask(next(news), { account: owner, isHtmx: true })).text;
  expect(after).not.toContain("hx-swap-oob");
});

test("each run is a bar of what it changed, and a first sync does not hide the others", async () => {
  const owner = await newAccount();
  const base = await connect(owner);
  const runs = async () => (await ask(`/bases/${base.id}/runs`, { account: owner })).text;
  expect(await runs()).not.toContain('class="time-bars"');
  await completed(base, { kind: "first", inserted: 30_000 });
  await completed(base, { completedAt: null, error: { code: "source_timeout", message: "No answer" } });
  await completed(base, { inserted: 1, updated: 2, deleted: 1 });
  const text = await runs();
  expect(text).toContain("1 of 2 later runs changed rows, at most 4; 1 failed or left tables out.");
  const bars = [...text.matchAll(/<path class="(bar[^"]*)" d="([^"]*)"/g)].map(([, kind, path]) => [
    kind,
    path!.match(/(?<=v-)\d+/g)!.map(Number),
  ]);
  expect(bars).toEqual([
    ["bar", [160, 160]],
    ["bar failed", [40]],
  ]);
  expect(text).toMatch(/UTC: Full sync, 1 inserted, 2 updated, 1 deleted<\/title>/);
});

test("a failing base shows one headline, the age of its data and one action; the raw answer only under Details", async () => {
  const owner = await newAccount();
  const base = await connect(owner);
  await completed(base, {
    tables: [{ name: "items", source_name: "Items", source_id: "tblOne", records: 3 }],
    issueCount: 5,
  });
  const error = {
    code: "source_key_refused",
    message: "Airtable answered 401 AUTHENTICATION_REQUIRED",
  } as const;
  await completed(base, { completedAt: null, error });
  for (const path of ["/bases", `/bases/${base.id}`]) {
    const { text } = await ask(path, { account: owner });
    expect(text).toMatch(/class="badge state red" title="Airtable rejected the API key[^"]*"/);
    expect(text).toMatch(/Key rejected/);
    expect(text).toContain("5 issues");
  }
  const { text } = await ask(`/bases/${base.id}`, { account: owner });
  const card = /<section class="card" id="now".*?<\/section>/s.exec(text)![0];
  expect(card).toMatch(/Data as of .*less than a minute old/);
  expect(card).toContain("Add a new API key");
  expect(card.match(/Airtable rejected the API key/g)).toHaveLength(2); // on hover, in sight
  expect(card.split("<details")[0]).not.toContain("AUTHENTICATION_REQUIRED");
  expect(card.split("<details")[1]).toContain("AUTHENTICATION_REQUIRED");
  expect(card).not.toMatch(/Changes arrive|Sync time|Last sync/);
  expect(text).toMatch(/Issues<span class="tab-mark">5<\/span>/);
});

test("a base that the call budget or Airtable holds back does not claim to be in sync", async () => {
  const owner = await newAccount();
  const base = await connect(owner);
  await completed(base);
  const text = async (path = "/bases") => (await ask(path, { account: owner })).text;
  expect(await text()).toContain("In sync");
  await control.ctx.db`update bases set rests_until = now() + interval '57 minutes' where id = ${base.id}`;
  expect(await text()).toContain("Paced · next in 57 min");
  expect(await text()).not.toContain("In sync");
  expect(await text(`/bases/${base.id}`)).toMatch(
    /Data as of .*Next try: <time[^>]*>\d\d:\d\d UTC<\/time>, in 56 min/s,
  );
  await control.ctx.db`
    insert into quota_blocks values ('airtable:appOne', 'rate_limited', now(), now() + interval '30 seconds')`;
  expect(await text()).toMatch(/badge state yellow" title="Airtable asked for a pause/);
  await control.ctx.db`delete from quota_blocks`;
});

test("settings are saved with a form and with htmx", async () => {
  const owner = await newAccount();
  const base = await connect(owner);
  // SQL writes need an endpoint, which no console has.
  const toggles = settingList.filter(
    ({ type, section, name }) => type === "boolean" && section && name !== "sql_writes",
  );
  expect(toggles.length).toBeGreaterThan(9);
  for (const { name, key, default: isOn } of toggles) {
    const path = `/bases/${base.id}/settings/${name}`;
    const saved = async () => (await getBase(control.ctx.db, base.id)).settings[key];
    const byForm = await ask(path, { account: owner, form: { value: "on" } });
    expect([byForm.status, byForm.headers.get("location")]).toEqual([303, `/bases/${base.id}/settings`]);
    expect(await saved()).toBe(true);
    // An unchecked box sends nothing.
    const byHtmx = await ask(path, { account: owner, form: {}, isHtmx: true });
    expect(byHtmx.text).toMatch(new RegExp(`^<form[^>]*id="setting-${name}"`));
    expect(byHtmx.text).toContain('aria-checked="false"');
    expect(byHtmx.text).toMatch(/id="toasts"[^>]*hx-swap-oob="innerHTML"><div class="toast good"><p>Saved\./);
    expect(await saved()).toBe(false);
    await ask(path, { account: owner, form: isOn ? { value: "on" } : {} });
  }
  expect(
    (await ask(`/bases/${base.id}/settings/paused`, { account: owner, form: { value: "on" } })).status,
  ).toBe(404);
});

test("the days of history are a whole number from 1 to 3650, and errors are shown next to the field", async () => {
  const owner = await newAccount();
  const base = await connect(owner);
  const path = `/bases/${base.id}/settings/history_days`;
  const days = async () => (await getBase(control.ctx.db, base.id)).settings.historyDays;
  expect(await days()).toBe(30);
  expect((await ask(path, { account: owner, form: { value: "7" } })).status).toBe(303);
  expect(await days()).toBe(7);
  for (const wrong of ["", "0", "-1", "1.5", "3651", "many"]) {
    const answer = await ask(path, { account: owner, form: { value: wrong } });
    expect([wrong, answer.status]).toEqual([wrong, 422]);
    expect(answer.text).toContain("Enter a whole number of days");
  }
  expect(await days()).toBe(7);
});

test("attachment links can be revoked if there are any", async () => {
  const owner = await newAccount();
  const base = await connect(owner);
  const version = async () => (await getBase(control.ctx.db, base.id)).attachmentKeyVersion;
  const revoke = () => ask(`/bases/${base.id}/attachment-links/revoke`, { account: owner, form: {} });
  const page = async () => (await ask(`/bases/${base.id}/settings`, { account: owner })).text;
  expect(await page()).not.toContain("Revoke all");
  expect([(await revoke()).status, await version()]).toEqual([409, 0]);
  const path = `/bases/${base.id}/settings/own_attachment_urls`;
  const switched = await ask(path, { account: owner, form: { value: "on" }, isHtmx: true });
  expect(switched.text).toMatch(/id="attachment-links" hx-swap-oob="outerMorph">.*Revoke all/s);
  // When links are disabled, earlier links still work and can be revoked.
  await ask(path, { account: owner, form: {} });
  expect(await page()).toContain("Revoke all");
  expect((await revoke()).headers.get("location")).toBe(`/bases/${base.id}/settings`);
  expect(await version()).toBe(2);
});

test("pause, resume, resync and a new key do what they say, and confirm it", async () => {
  const owner = await newAccount();
  const base = await connect(owner);
  const state = async () => (await getBase(control.ctx.db, base.id)).state;
  const post = (path: string, form: Record<string, string> = {}) =>
    ask(`/bases/${base.id}${path}`, { account: owner, form });
  expect((await post("/pause", { paused: "on" })).headers.get("location")).toBe(`/bases/${base.id}`);
  expect(await state()).toBe("paused");
  expect((await post("/sync")).status).toBe(409);
  const page = await ask(`/bases/${base.id}`, { account: owner });
  expect(page.text).toContain(">Resume<");
  expect(page.text).not.toContain(">Resync<");
  await post("/pause", { paused: "off" });
  expect(await state()).toBe("starting");
  expect((await post("/sync")).headers.get("location")).toBe(`/bases/${base.id}`);
  const refused = await post("/key", { api_key: OTHER_KEY });
  expect(refused.status).toBe(422);
  expect(refused.text).toMatch(/id="api_key-error" role="alert">[^<]*does not have access to the base/);
  expect(refused.text).not.toContain(OTHER_KEY);
  expect((await post("/key", { api_key: "pat with spaces" })).status).toBe(422);
  expect((await post("/key", { api_key: GOOD_KEY })).headers.get("location")).toBe(
    `/bases/${base.id}/settings`,
  );
});

test("credentials are shown only on the page that was opened for them, and a rotated password opens the database", async () => {
  const owner = await newAccount();
  const base = await connect(owner);
  const connectPage = () => ask(`/bases/${base.id}/connect`, { account: owner, form: {} });
  const passwordOf = (text: string) => /id="connect-password"[^>]*>([^<]+)</.exec(text)![1]!;
  const before = passwordOf((await connectPage()).text);
  const looks = async () => {
    const [row] = await control.ctx.db`
      select (details->>'times')::int as count from audit_log
      where action = 'credentials.shown' and account_id = ${owner.id}`;
    return row!.count;
  };
  expect(await looks()).toBe(1);
  for (const path of ["", "/settings", "/proxy", "/runs", "/connect", "/connect?with=psql"]) {
    expect((await ask(`/bases/${base.id}${path}`, { account: owner })).text).not.toContain(before);
  }
  expect(await looks(), "a page without the password is no look at it").toBe(1);
  const rotated = await ask(`/bases/${base.id}/connect/rotate`, { account: owner, form: {} });
  expect(rotated.headers.get("location")).toBe(`/bases/${base.id}/connect`);
  const { text } = await connectPage();
  expect(passwordOf(text)).not.toBe(before);
  for (const part of ["url", "psql", "host", "port", "database", "user"]) {
    expect(text).toMatch(new RegExp(`id="connect-${part}"[^>]*>[^<]+<`));
  }
  const { text: hidden } = await ask(`/bases/${base.id}/connect`, { account: owner });
  expect(hidden).not.toContain(passwordOf(text));
  expect(hidden).toContain(":DB_PASSWORD@");
});

test("a base is deleted by typing its name as shown", async () => {
  const owner = await newAccount();
  const base = await connect(owner);
  await control.ctx.db`update bases set name = ${"Two  words "} where id = ${base.id}`;
  const remove = (name: string) => ask(`/bases/${base.id}/delete`, { account: owner, form: { name } });
  const wrong = await remove("Two word");
  expect(wrong.status).toBe(422);
  expect(wrong.text).toContain('id="name-error" role="alert"');
  expect((await remove("Two words")).headers.get("location")).toBe("/bases");
  await expect(getBase(control.ctx.db, base.id)).rejects.toMatchObject({ code: "not_found" });
});

test("the list finds a base by its name and by its ids", async () => {
  const owner = await newAccount();
  const base = await connect(owner);
  const list = async (q: string) => (await ask(`/bases?q=${q}`, { account: owner, isHtmx: true })).text;
  for (const q of ["invent", "APPONE", base.database.name, base.id]) expect(await list(q)).toContain(base.id);
  expect(await list("nothing")).toContain("No base matches");
});

import { afterAll, beforeAll, expect, test } from "vitest";
import { type SandboxHandle, startSandbox } from "../../../apps/sandbox/server";
import { getBase, listBases } from "../../../core/control/bases";
import { budgetOf, createWorkspace, getWorkspace, listWorkspaces } from "../../../core/control/budgets";
import { platforms } from "../../../core/source";
import { type TestConsole, testConsole } from "../../support/console-support";
import { countCalls } from "../../support/count-calls";
import { recordCalls } from "../../support/live-rows";

let sandbox: SandboxHandle;
let site: TestConsole;

beforeAll(async () => {
  sandbox = await startSandbox({ port: 0 });
  const upstreams = { "api.airtable.com": sandbox.url };
  site = await testConsole({ platforms: platforms({ upstreams, upstreamTimeoutMs: 5_000 }) });
});
afterAll(async () => {
  await site?.[Symbol.asyncDispose]();
  await sandbox?.stop();
});

type Person = Awaited<ReturnType<TestConsole["person"]>>;

const PATH = "/account/workspaces";
const db = () => site.control.ctx.db;
const add = (person: Person, form: Record<string, string>) => person.post(PATH, form);
const workspacesOf = (person: Person) => listWorkspaces(db(), person.accountId);

let seed = 0;

/** A base that is one step from being connected; `start` submits the form of that step. */
async function atStart(person: Person) {
  const sourceBaseId = sandbox.control.generate({ name: `Base ${++seed}`, records: 2, seed });
  const { location } = await person.post("/new", { platform: "airtable" });
  const path = location!.replace(/\/key$/, "");
  await person.post(`${path}/key`, { key: sandbox.key });
  await person.post(`${path}/base`, { base: sourceBaseId });
  expect((await person.post(`${path}/destination`, { kind: "new" })).location).toBe(`${path}/start`);
  return {
    sourceBaseId,
    page: () => person.get(`${path}/start`),
    start: (form: Record<string, string>) => person.post(`${path}/start`, form),
  };
}

const only = async (person: Person) => (await listBases(db(), person.accountId))[0]!;

test("a workspace is added, changed and deleted with forms alone, with the calls of its plan, of which a fifth is reserved", async () => {
  const person = await site.person();
  expect((await person.get(PATH)).text).toContain("Add your workspace");
  expect((await add(person, { name: "Sales", plan: "team" })).location).toBe(`${PATH}`);
  const [made] = await workspacesOf(person);
  expect(made).toMatchObject({ name: "Sales", plan: "team", callsPerMonth: 100_000, reserve: 20_000 });
  const page = (await person.get(`${PATH}/${made!.id}`)).text;
  expect(page).toContain('value="20000"');

  // The form still shows the reserve of the old plan.
  const free = await person.post(`${PATH}/${made!.id}`, {
    name: "Sales",
    plan: "free",
    calls: "",
    reserve: "20000",
  });
  expect(free.location).toBe(`${PATH}/${made!.id}`);
  expect(await getWorkspace(db(), made!.id)).toMatchObject({ callsPerMonth: 1000, reserve: 200 });
  await person.post(`${PATH}/${made!.id}`, {
    name: "Sales",
    plan: "custom",
    calls: "50 000",
    reserve: "1,500",
  });
  expect(await getWorkspace(db(), made!.id)).toMatchObject({ callsPerMonth: 50_000, reserve: 1500 });
  await person.post(`${PATH}/${made!.id}`, { name: "Sales", plan: "business", calls: "", reserve: "1500" });
  expect(await getWorkspace(db(), made!.id)).toMatchObject({ callsPerMonth: null, reserve: 0 });
  expect((await person.get(PATH)).text).toContain("No cap: sync runs at full speed");
  expect((await person.post(`${PATH}/${made!.id}/delete`, {})).location).toBe(`${PATH}`);
  expect(await workspacesOf(person)).toEqual([]);
  expect((await (await atStart(person)).start({ plan: "unsure" })).location).toMatch(/^\/bases\/bas_/);
  expect(await workspacesOf(person)).toMatchObject([{ name: "Free workspace", callsPerMonth: 1000 }]);
});

test.for([
  [{ name: "", plan: "team" }, "name", "Enter its name in Airtable"],
  [{ name: "x".repeat(101), plan: "team" }, "name", "must have 1 to 100 characters"],
  [{ name: "Twice", plan: "team" }, "name", "A workspace named"],
  [{ name: "A", plan: "custom", calls: "" }, "calls", "Enter a whole number of at least 1"],
  [{ name: "A", plan: "custom", calls: "0" }, "calls", "Enter a whole number of at least 1"],
  [{ name: "A", plan: "custom", calls: "-5" }, "calls", "Enter a whole number of at least 1"],
  [{ name: "A", plan: "custom", calls: "1.5" }, "calls", "Enter a whole number of at least 1"],
  [{ name: "A", plan: "team", reserve: "lots" }, "reserve", "Enter a whole number"],
  [{ name: "A", plan: "free", reserve: "1001" }, "reserve", "The reserve cannot exceed"],
] as const)(
  "an invalid value is reported next to its field, and the input stays: %j",
  async ([form, field, message]) => {
    const person = await site.person();
    await add(person, { name: "Twice", plan: "free" });
    const { status, text } = await add(person, form);
    expect([status === 422 || status === 409, text]).toEqual([true, expect.stringContaining(message)]);
    expect(text).toContain(`id="${field}-error"`);
    expect(text).toContain(`value="${form.plan}" checked`);
    expect(await workspacesOf(person)).toHaveLength(1);
  },
);

test("an unknown plan is refused in words", async () => {
  const { status, text } = await add(await site.person(), { name: "A", plan: "golden" });
  expect([status, text]).toEqual([422, expect.stringContaining("Choose one of these options")]);
});

test("a workspace is hidden from other accounts, safe from other sites, and its name is text", async () => {
  const owner = await site.person();
  const stranger = await site.person();
  const name = `<img src=x onerror=alert(1)>`;
  const { id } = await createWorkspace(site.control.ctx, owner.accountId, { name, plan: "team" });
  expect((await stranger.get(`${PATH}/${id}`)).status).toBe(404);
  for (const path of [`${PATH}/${id}`, `${PATH}/${id}/delete`]) {
    expect((await stranger.post(path, { name: "Mine", plan: "free" })).status).toBe(404);
    const foreign = await owner.post(path, { name: "B", plan: "free" }, { "sec-fetch-site": "cross-site" });
    expect(foreign.status).toBe(403);
  }
  expect((await stranger.get(PATH)).text).not.toContain("onerror");
  const theirs = await atStart(stranger);
  expect((await theirs.page()).text).not.toContain(id);
  expect((await theirs.start({ plan: id })).status).toBe(404);
  expect(await listBases(db(), stranger.accountId)).toEqual([]);
  const draft = await atStart(owner);
  for (const { text } of [await owner.get(PATH), await owner.get(`${PATH}/${id}`), await draft.page()]) {
    expect(text).toContain("&lt;img src=x");
    expect(text).not.toContain("<img");
  }
});

test("the last step begins with the strictest plan until the user knows better; no cap creates no workspace", async () => {
  const person = await site.person();
  const first = await atStart(person);
  expect((await first.page()).text.match(/name="plan"[^>]* checked/g)).toEqual([
    'name="plan" id="plan-unsure" value="unsure" checked',
  ]);
  expect((await first.start({ plan: "business" })).location).toMatch(/^\/bases\/bas_/);
  expect(await only(person)).toMatchObject({ workspaceId: null });
  expect(await workspacesOf(person)).toEqual([]);
});

test("a plan creates a workspace for the base; the next base may share it or have its own", async () => {
  const person = await site.person();
  await (await atStart(person)).start({ plan: "team" });
  const [team] = await workspacesOf(person);
  expect(team).toMatchObject({ name: "Team workspace", callsPerMonth: 100_000, reserve: 20_000 });
  expect((await only(person)).workspaceId).toBe(team!.id);
  await recordCalls(db(), await only(person), { client: 10, byKind: { sweep: 1234 } });

  const second = await atStart(person);
  expect((await second.page()).text).toMatch(/1,24\d of 100,000 calls used this month/);
  await second.start({ plan: team!.id });
  await (await atStart(person)).start({ plan: "team" });
  await (await atStart(person)).start({ plan: "custom", calls: "5,000" });
  const all = await workspacesOf(person);
  expect(all.map(({ name, callsPerMonth, baseIds }) => [name, callsPerMonth, baseIds.length])).toEqual([
    ["Team workspace", 100_000, 2],
    ["Team workspace 2", 100_000, 1],
    ["Workspace", 5000, 1],
  ]);
});

test("an invalid number starts nothing, and the form is shown again with its input", async () => {
  const person = await site.person();
  const draft = await atStart(person);
  const { status, text } = await draft.start({ plan: "custom", calls: "some" });
  expect([status, text]).toEqual([422, expect.stringContaining("Enter a whole number of at least 1")]);
  expect(text).toMatch(/value="custom" checked/);
  expect(text).toContain('value="some"');
  expect(await listBases(db(), person.accountId)).toEqual([]);
});

test("sent twice, or in vain, the last step leaves no workspace without a base", async () => {
  const person = await site.person();
  const draft = await atStart(person);
  const answers = await Promise.all([draft.start({ plan: "free" }), draft.start({ plan: "free" })]);
  expect(new Set(answers.map(({ location }) => location)).size).toBe(1);
  expect((await workspacesOf(person)).map(({ baseIds }) => baseIds.length)).toEqual([1]);

  const other = await site.person();
  const failing = await atStart(other);
  sandbox.control.addFault({ kind: "status_503" });
  try {
    const { status, text } = await failing.start({ plan: "team" });
    expect([status >= 400, text]).toEqual([true, expect.stringContaining("Syncing did not start")]);
    expect(text).toMatch(/value="team" checked/);
  } finally {
    sandbox.control.clearFaults();
  }
  expect(await workspacesOf(other)).toEqual([]);
});

test("a base is added to a workspace and removed from it in its settings, and shows its budget", async () => {
  const person = await site.person();
  await (await atStart(person)).start({ plan: "business" });
  const base = await only(person);
  const settings = `/bases/${base.id}/settings`;
  expect((await person.get(settings)).text).toContain("Add your workspace and its plan");
  const { id } = await createWorkspace(site.control.ctx, person.accountId, { name: "Ours", plan: "team" });
  const choose = (workspace: string) => person.post(`/bases/${base.id}/workspace`, { workspace });
  const stranger = await site.person();
  const foreign = await createWorkspace(site.control.ctx, stranger.accountId, {
    name: "Theirs",
    plan: "free",
  });
  for (const wrong of [foreign.id, "wsp_nope", ""]) {
    const { status, text } = await choose(wrong);
    expect([wrong, status, text]).toEqual([wrong, 404, expect.stringContaining('id="workspace-error"')]);
  }
  expect((await choose(id)).location).toBe(`${settings}`);
  expect((await person.get(settings)).text).toMatch(new RegExp(`value="${id}" selected`));
  await recordCalls(db(), base, { client: 4000, byKind: { payloads: 300, sweep: 700, schema: 9 } });
  const { text } = await person.get(`/bases/${base.id}`);
  expect(text).toContain("Sync keeps within this month's calls.");
  expect(text).toMatch(/aria-label="5,0(09|1\d) of 100,000 calls used this month\."/);
  expect(text).toContain("Usage of Ours");
  expect((await person.get(`${PATH}/${id}`)).text).toContain("Not enough history for a forecast yet");
  // A week of whole days with the same base.
  await db()`update bases set created_at = now() - interval '9 days' where id = ${base.id}`;
  await db()`
    insert into quota_days (key, day, sync, client)
    select ${`airtable:${base.sourceBaseId}`}, (now() at time zone 'UTC')::date - ago, array_fill(10, array[24]), array_fill(2, array[24])
    from generate_series(1, 7) as ago`;
  const forecast = (await person.get(`/bases/${base.id}`)).text;
  expect(forecast).toMatch(/aria-label="5,0(09|1\d) of 100,000 calls used this month; about [\d,]+ forecast/);
  expect(forecast).toContain("This month's calls will last.");
  expect((await budgetOf(db(), { id }))!.forecast).toMatchObject({ nextDay: 288, missing: null });
  const page = (await person.get(`${PATH}/${id}`)).text;
  const kinds = [...page.matchAll(/<th scope="row">([^<]+)<\/th><td class="number">([^<]+)</g)];
  expect(kinds.map(([, kind, calls]) => [kind, calls])).toEqual([
    ["Reading whole tables", "700"],
    ["Checking for changes", "300"],
    ["Reading the schema", "9"],
  ]);
  expect((await person.post(`${PATH}/${id}/delete`, {})).text).toContain(
    "Move them to another workspace first",
  );
  await choose("none");
  expect((await getBase(db(), base.id)).workspaceId).toBeNull();
  expect((await person.get(`/bases/${base.id}`)).text).not.toContain("calls used this month");
});

test("usage lists the calls of every base by day and purpose, with or without a cap, in one vocabulary", async () => {
  const person = await site.person();
  await (await atStart(person)).start({ plan: "business" });
  const base = await only(person);
  const key = `airtable:${base.sourceBaseId}`;
  await db()`delete from quota_days where key = ${key}`;
  await db()`delete from quota_callers where key = ${key}`;
  const yesterday = new Date(Date.now() - 30 * 3_600_000);
  await countCalls(db(), key, { sync: 1200, client: 40 }, yesterday.getTime());
  await countCalls(db(), key, { sync: 34, client: 9, callers: { console: 5 } });
  const { text } = await person.get(PATH);
  const [, table] = /Calls by base[\s\S]*?<tbody>([\s\S]*?)<\/tbody>/.exec(text)!;
  const numbers = (row: string) => [...row.matchAll(/<td class="number">([^<]*)</g)].map(([, one]) => one);
  expect(table).toContain(`href="/bases/${base.id}/freshness?range=30d#calls-card"`);
  expect(numbers(table!)).toEqual(["1,234", "44", "5", "1,283"]);
  expect(text).toMatch(/<th scope="col">Base<\/th>(<th[^>]*>\w[^<]*<\/th>){4}/);
  for (const name of ["Sync", "Your apps", "Console"]) expect(text).toContain(`>${name}</th>`);
  const [, byDay] = /Calls by day and base[\s\S]*?<tbody>([\s\S]*?)<\/tbody>/.exec(text)!;
  expect(byDay!.match(/<tr>/g)).toHaveLength(2);
  expect(numbers(byDay!.split("<tr>")[1]!)).toEqual(["34", "4", "5", "43"]);

  // The same figures on the base's own pages, but of this month.
  const overview = (await person.get(`/bases/${base.id}`)).text;
  const isOfThisMonth = yesterday.getUTCMonth() === new Date().getUTCMonth();
  expect(overview).toContain(
    isOfThisMonth ? "sync 1,234, your apps 44, console 5." : "sync 34, your apps 4, console 5.",
  );
  const stranger = await site.person();
  expect((await stranger.get(PATH)).text).toContain("No base is connected, so nothing calls Airtable.");
});

test("a spent budget is shown, with when it continues, and so is a source that has throttled the base", async () => {
  const person = await site.person();
  await (await atStart(person)).start({ plan: "free" });
  const base = await only(person);
  const page = async () => (await person.get(`/bases/${base.id}`)).text;
  await recordCalls(db(), base, { client: 0, byKind: { sweep: 795 } });
  expect(await page()).toMatch(
    /Sync has used its share of this month's calls\.<\/strong> Syncing resumes on 1 \w+\./,
  );
  await recordCalls(db(), base, { client: 300, byKind: { sweep: 795 } });
  expect(await page()).toMatch(
    /This month's calls are used up\.<\/strong> Syncing resumes on 1 \w+\. Your apps can keep calling/,
  );
  expect(await page()).not.toContain("only two calls per second");
  const key = `airtable:${base.sourceBaseId}`;
  const until = Date.now() + 3_600_000;
  await db()`select quota_throttle(${key}, ${until}::float8, false)`;
  expect(await page()).toContain("Airtable answers only two calls per second");
  expect((await person.get(PATH)).text).toContain("Airtable answers only two calls per second");
});

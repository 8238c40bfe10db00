import { afterAll, beforeAll, expect, test } from "vitest";
import { type SandboxHandle, startSandbox } from "../../../apps/sandbox/server";
import { listBases } from "../../../core/control/bases";
import {
  addCluster,
  drainCluster,
  ensureDefaultCluster,
  THIS_MACHINE,
} from "../../../core/control/placement";
import { platforms } from "../../../core/source";
import { type TestConsole, testConsole } from "../../support/console-support";
import { ownDatabase } from "../../support/control-support";
import { until } from "../../support/poll";

let sandbox: SandboxHandle;
let site: TestConsole;
const baseIds: string[] = [];
/** Bases without a name in any test: each test takes the next, since checking one counts in its quota. */
const spareIds: string[] = [];
let used = 0;

beforeAll(async () => {
  // Two installations ask for the same bases, and each takes the whole limit.
  sandbox = await startSandbox({ port: 0, settings: { rateLimitOff: true } });
  for (const name of ["Zebra", "Älpha", "Inventory <i>"]) {
    baseIds.push(sandbox.control.generate({ name, records: 5, seed: baseIds.length }));
  }
  for (let seed = 100; seed < 110; seed++) {
    spareIds.push(sandbox.control.generate({ name: `Spare ${seed}`, records: 5, seed }));
  }
  const upstreams = { "api.airtable.com": sandbox.url };
  site = await testConsole({ platforms: platforms({ upstreams, upstreamTimeoutMs: 5_000 }) });
});
afterAll(async () => {
  await site?.[Symbol.asyncDispose]();
  await sandbox?.stop();
});

type Person = Awaited<ReturnType<TestConsole["person"]>>;

/** Starts to connect a base; `to` is the path of a step. */
async function begin(person: Person) {
  const { location } = await person.post("/new", { platform: "airtable" });
  const path = location!.replace(/\/key$/, "");
  return { id: path.split("/").at(-1)!, to: (step: string) => `${path}/${step}` };
}

async function beginWithBase(person: Person, baseId = spareIds[used++ % spareIds.length]!) {
  const draft = await begin(person);
  await person.post(draft.to("key"), { key: sandbox.key });
  const chosen = await person.post(draft.to("base"), { base: baseId });
  expect(chosen, /role="alert".*?<\/div>/.exec(chosen.text)?.[0]).toMatchObject({
    location: draft.to("destination"),
  });
  return draft;
}

test("an early step leads to the missing one, and every page can be reloaded", async () => {
  const person = await site.person();
  const draft = await begin(person);
  for (const step of ["base", "destination", "start"]) {
    expect((await person.get(draft.to(step))).location).toBe(draft.to("key"));
  }
  await person.post(draft.to("key"), { key: sandbox.key });
  expect((await person.get(draft.to("start"))).location).toBe(draft.to("base"));
  await person.post(draft.to("base"), { base: baseIds[1]! });
  await person.post(draft.to("destination"), { kind: "new" });
  for (const step of ["key", "base", "destination", "start"]) {
    expect([step, (await person.get(draft.to(step))).status]).toEqual([step, 200]);
  }
  expect((await person.get(draft.to("base"))).text).toMatch(new RegExp(`value="${baseIds[1]}"[^>]* checked`));
  expect((await person.get("/new")).text).toContain("Continue connecting <bdi>Älpha</bdi>");
  expect((await person.get(`/new/${draft.id}`)).location).toBe(draft.to("start"));
});

test("one account's unfinished steps are hidden from the others", async () => {
  const draft = await beginWithBase(await site.person());
  const stranger = await site.person();
  for (const step of ["key", "base", "destination", "start"]) {
    expect((await stranger.get(draft.to(step))).status).toBe(404);
    expect((await stranger.post(draft.to(step), { key: sandbox.key })).status).toBe(404);
  }
  expect((await stranger.get("/new")).text).not.toContain("Continue connecting");
});

test.for([
  { scopes: [], names: "schema.bases:read" },
  { scopes: ["data.records:read"], names: "schema.bases:read" },
])("a key without $names is reported with their names, next to the field", async ({ scopes, names }) => {
  const person = await site.person();
  const draft = await begin(person);
  const key = sandbox.control.createKey({ scopes });
  const { status, text } = await person.post(draft.to("key"), { key });
  expect([status, text]).toEqual([422, expect.stringContaining(`lacks the scope ${names}`)]);
  expect(text).toContain('id="key-error"');
  expect((await person.get(draft.to("base"))).location).toBe(draft.to("key"));
});

test("a key that may not read records is detected when the base is selected", async () => {
  const person = await site.person();
  const draft = await begin(person);
  await person.post(draft.to("key"), { key: sandbox.control.createKey({ scopes: ["schema.bases:read"] }) });
  const { status, text } = await person.post(draft.to("base"), { base: baseIds[0]! });
  expect([status, text]).toEqual([422, expect.stringContaining("lacks the scope data.records:read")]);
});

test("an invalid key, one without bases, and an unreachable source are reported", async () => {
  const person = await site.person();
  const draft = await begin(person);
  const tryKey = async (key: string) => (await person.post(draft.to("key"), { key })).text;
  expect(await tryKey("patWrong.0")).toContain("rejected this token");
  expect(await tryKey("ключ")).toContain("rejected this token");
  expect(await tryKey("")).toContain("rejected this token");
  expect(await tryKey(sandbox.control.createKey({ bases: {} }))).toContain("The key has access to no bases");
  await using away = await testConsole({
    platforms: platforms({
      upstreams: { "api.airtable.com": "http://127.0.0.1:1" },
      upstreamTimeoutMs: 5_000,
    }),
  });
  const other = await away.person();
  const answer = await other.post((await begin(other)).to("key"), { key: sandbox.key });
  expect(answer.status).toBe(502);
  expect(answer.text).toContain('id="key-error"');
});

test("bases are found by name, sorted, escaped, and connected ones cannot be selected again", async () => {
  const person = await site.person();
  const first = await beginWithBase(person, baseIds[2]!);
  await person.post(first.to("destination"), { kind: "new" });
  const started = await person.post(first.to("start"), { plan: "business" });
  expect(started.location).toMatch(/^\/bases\/bas_/);

  const draft = await begin(person);
  await person.post(draft.to("key"), { key: sandbox.key });
  const { text } = await person.get(draft.to("base"));
  expect(text.indexOf("Älpha")).toBeLessThan(text.indexOf("Zebra"));
  expect(text).toContain("Inventory &lt;i>");
  expect(text).toContain(`href="${started.location}"`);
  const found = await person.get(`${draft.to("base")}?q=ZEB`, { "hx-request": "true" });
  expect(found.text).toContain("Zebra");
  expect(found.text).not.toContain("Älpha");
  const again = await person.post(draft.to("base"), { base: baseIds[2]!, q: "" });
  expect([again.status, again.text]).toEqual([409, expect.stringContaining("is already connected")]);
  expect((await person.post(draft.to("base"), { base: "appNope" })).status).toBe(422);
});

test("starting twice creates one base, and leaves no secret behind", async () => {
  const person = await site.person();
  const draft = await beginWithBase(person);
  await person.post(draft.to("destination"), { kind: "new" });
  const encrypted = () => site.control.ctx.db`
    select encrypted_api_key, encrypted_url, choices from base_drafts where id = ${draft.id}`;
  const [kept] = await encrypted();
  expect(kept!.encrypted_api_key).toMatch(/^v1\./);
  const answers = await Promise.all([
    person.post(draft.to("start"), { plan: "business" }),
    person.post(draft.to("start"), { plan: "business" }),
  ]);
  expect(new Set(answers.map((answer) => answer.location)).size).toBe(1);
  const bases = await listBases(site.control.ctx.db, person.accountId);
  expect(answers[0]!.location).toBe(`/bases/${bases[0]!.id}`);
  expect(bases).toHaveLength(1);
  expect(await encrypted()).toEqual([{ encrypted_api_key: null, encrypted_url: null, choices: null }]);
  expect((await person.get(draft.to("key"))).location).toBe(`/bases/${bases[0]!.id}`);
  // Nor does a form that was still open elsewhere.
  await person.post(draft.to("key"), { key: sandbox.key });
  const [left] = await encrypted();
  expect(left!.encrypted_api_key).toBeNull();
});

test("what is copied is chosen before anything is read: the base begins with it", async () => {
  const person = await site.person();
  const draft = await beginWithBase(person);
  expect((await person.get(draft.to("selection"))).status).toBe(200);
  const { text } = await person.get(draft.to("selection"));
  const [first, ...others] = [...text.matchAll(/name="table_(tbl\w+)"/g)].map(([, id]) => id!);
  const shown = [first, ...others].join(" ");
  const wrong = await person.post(draft.to("selection"), { new_tables: "ask", shown, set: "omitted", q: "" });
  expect([wrong.status, wrong.text]).toEqual([422, expect.stringContaining("No table would be copied")]);
  const form = { new_tables: "ignore", shown, [`table_${first}`]: "on", q: "" };
  expect((await person.post(draft.to("selection"), form)).location).toBe(draft.to("selection"));
  expect((await person.get(draft.to("selection"))).text).toContain(`href="${draft.to("start")}"`);
  const stranger = await site.person();
  expect((await stranger.get(draft.to("selection"))).status).toBe(404);

  await person.post(draft.to("destination"), { kind: "new" });
  expect((await person.get(draft.to("start"))).text).toMatch(/A part of \d tables?, \d+ records/);
  await person.post(draft.to("start"), { plan: "business" });
  const [base] = await listBases(site.control.ctx.db, person.accountId);
  const ignored = others.map((id) => [id, { copied: false }]);
  expect(base!.selection).toEqual({
    newTables: "ignore",
    tables: { [first!]: { copied: true }, ...Object.fromEntries(ignored) },
  });
});

test("two bases can share a database under different schemas", async () => {
  const person = await site.person();
  const first = await beginWithBase(person, baseIds[0]!);
  await person.post(first.to("destination"), { kind: "new" });
  await person.post(first.to("start"), { plan: "business" });
  const second = await beginWithBase(person, baseIds[2]!);
  const [base] = await listBases(site.control.ctx.db, person.accountId);
  const page = (await person.get(second.to("destination"))).text;
  expect(page).toContain(`Zebra (${base!.database.name.slice(0, 7)}…), 0 tables`);
  expect(page).toContain('value="inventory_i"');
  const choose = (schema: string, database = base!.database.id) =>
    person.post(second.to("destination"), { kind: "existing", database, schema });
  for (const [schema, message] of [
    ["public", "Another base uses the schema public"],
    ["Robert'); drop table", "is not a valid schema name"],
    ["pg_catalog", "is not a valid schema name"],
    ["x_swap", "is not a valid schema name"],
  ]) {
    const { text } = await choose(schema!);
    expect(text).toContain('id="schema-error"');
    expect(text.replaceAll("&#39;", "'").replaceAll("&quot;", '"')).toContain(message);
  }
  expect((await choose("inventory", "dat_00000000000000000000")).text).toContain('id="database-error"');
  const stranger = await beginWithBase(await site.person());
  expect(stranger.id).not.toBe(second.id);
  expect((await choose("inventory")).location).toBe(second.to("start"));
  // A database that is dropped meanwhile has to be chosen again.
  await site.control.ctx.db`
    update base_drafts set destination = jsonb_set(destination, '{database_id}', '"dat_dropped"') where id = ${second.id}`;
  expect((await person.get(second.to("start"))).location).toBe(second.to("destination"));
  expect((await choose("inventory")).location).toBe(second.to("start"));
  expect((await person.get(second.to("start"))).text).toContain(`${base!.database.name}, schema inventory`);
  const { location } = await person.post(second.to("start"), { plan: "business" });
  const bases = await listBases(site.control.ctx.db, person.accountId);
  expect(bases.find((one) => location?.endsWith(one.id))!.database).toMatchObject({
    id: base!.database.id,
    schema: "inventory",
  });
});

test("a customer's own database is checked step by step, and the missing GRANT is shown verbatim", async () => {
  await using own = await ownDatabase(site.control.serverUrl);
  const person = await site.person();
  const draft = await beginWithBase(person);
  const look = async (url: string, more: Record<string, string> = { test: "on" }) => {
    const { text, ...answer } = await person.post(draft.to("destination"), {
      kind: "external",
      url,
      external_schema: "copy",
      ...more,
    });
    return { ...answer, text: text.replaceAll("&quot;", '"').replaceAll("&amp;", "&") };
  };
  expect((await look("postgres://a:b@127.0.0.1:1/c")).text).toContain("no server listens on port 1");
  expect((await look(own.url.replace("s%2Fe%3Acret", "wrong"))).text).toMatch(
    /rejected the password|PostgreSQL/,
  );
  const missing = await look(own.url);
  expect(missing.status).toBe(422);
  expect(missing.text).toContain(`grant create on database "${own.name}" to "${own.name}";`);
  expect((await person.get(draft.to("start"))).location).toBe(draft.to("destination"));

  await own.admin.unsafe(`grant create on database ${own.name} to ${own.name}`);
  await own.inside.unsafe("create schema copy");
  expect((await look(own.url)).text).toContain(`grant usage, create on schema "copy" to "${own.name}"`);
  await own.inside.unsafe(`grant usage, create on schema copy to ${own.name}`);
  const well = await look(own.url);
  expect([well.status, well.location]).toEqual([200, null]);
  expect(well.text).toContain("This database can be used");
  expect((await look(own.url, {})).location).toBe(draft.to("start"));
  expect((await person.get(draft.to("destination"))).text).not.toContain("cret");
  expect((await look("", {})).location).toBe(draft.to("start"));
  const { location } = await person.post(draft.to("start"), { plan: "business" });
  expect(location).toMatch(/^\/bases\/bas_/);
});

test.for([
  ["http://169.254.169.254/latest", "must have the form postgres://"],
  ["postgres://a:b@169.254.169.254/c", "is not a valid address for a database"],
  ["postgres://a:b@[::ffff:169.254.169.254]/c", "is not a valid address for a database"],
  ["postgres://a:b@10.0.0.1/c", "is in a private network"],
  ["postgres://a:b@%zz/c", "must have the form postgres://"],
  ["postgres://a:b@good.example,169.254.169.254/c", "must have the form postgres://"],
  ["postgres://a:%zz@127.0.0.1/c", "cannot be used"],
])("a URL to an address that no customer's database can have is refused: %s", async ([url, message]) => {
  const person = await site.person();
  const draft = await beginWithBase(person);
  const { status, text } = await person.post(draft.to("destination"), { kind: "external", url: url! });
  expect([status, text]).toEqual([422, expect.stringContaining(message!)]);
});

test("where private destinations are not allowed, neither this machine nor the control plane can be one", async () => {
  const { databaseUrl } = site.control.ctx.config;
  const person = await site.person();
  const draft = await beginWithBase(person);
  const ours = await person.post(draft.to("destination"), { kind: "external", url: databaseUrl! });
  expect([ours.status, ours.text]).toEqual([422, expect.stringContaining("belongs to Basetide itself")]);

  await using strict = await testConsole({
    config: { privateDestinations: "no" },
    platforms: platforms({ upstreams: { "api.airtable.com": sandbox.url }, upstreamTimeoutMs: 5_000 }),
  });
  const other = await strict.person();
  const blocked = await beginWithBase(other);
  for (const host of ["127.0.0.1", "localhost", "0.0.0.0", "[::1]", "[::ffff:7f00:1]"]) {
    const { status, text } = await other.post(blocked.to("destination"), {
      kind: "external",
      url: `postgres://a:b@${host}/c`,
    });
    expect([
      host,
      status,
      text.includes("Basetide&#39;s own machine") || text.includes("Basetide's own machine"),
    ]).toEqual([host, 422, true]);
  }
});

test("a key that may not read changes is said to be one before the user goes on, and can be checked again", {
  timeout: 120_000,
}, async () => {
  const person = await site.person();
  const draft = await begin(person);
  const scopes = ["schema.bases:read", "data.records:read"];
  const key = sandbox.control.createKey({ scopes });
  // Other tests ask for the same base: while it is paused, the key's rights cannot be determined.
  const staysAfter = (body: Record<string, string>) =>
    until(async () => (await person.post(draft.to("key"), body)).location === draft.to("key"), {
      what: "the step to ask about the key",
      timeoutMs: 45_000,
      intervalMs: 1000,
    });
  await staysAfter({ key });
  const { text } = await person.get(draft.to("key"));
  expect(text).toContain("This key works, but not for live sync");
  expect(text).toContain("webhook:manage");
  expect(text).toContain(`href="${draft.to("base")}"`);
  // Nothing has changed yet.
  await staysAfter({ recheck: "on" });
  expect((await person.post(draft.to("key"), { key: "" })).location).toBe(draft.to("base"));
  await person.post(draft.to("base"), { base: baseIds[0]! });
  await person.post(draft.to("destination"), { kind: "new" });
  // It polls all day, whether anything changes or not.
  expect((await person.get(draft.to("start"))).text).toMatch(/up to \d{2,3},000 calls<\/td>/);
  expect((await person.post(draft.to("key"), { key: sandbox.key })).location).toBe(draft.to("base"));
  expect((await person.get(draft.to("key"))).text).not.toContain("not for live sync");
});

test("each plan shows what it costs on this base, and the only workspace is preset", async () => {
  const person = await site.person();
  const draft = await beginWithBase(person);
  await person.post(draft.to("destination"), { kind: "new" });
  const page = await person.get(draft.to("start"));
  expect(page.text).toMatch(/(All \d+ tables|1 table), \d+ records/);
  expect(page.text).toContain("Less than 5 s.");
  expect(page.text.match(/Paced to last the month/g)).toHaveLength(3);
  const refused = await person.post(draft.to("start"), {});
  expect([refused.status, refused.text]).toEqual([422, expect.stringContaining("Choose a plan")]);
  await person.post("/account/workspaces", { name: "Sales", plan: "free" });
  expect((await person.get(draft.to("start"))).text).toMatch(/name="plan"[^>]*value="wsp_\w+" checked/);
});

test("pages say where data lies only as far as the operator has said it", async () => {
  const { ctx } = site.control;
  const person = await site.person();
  const draft = await beginWithBase(person);
  const told = async (location: string | null) => {
    await ensureDefaultCluster({ ...ctx, config: { ...ctx.config, location } });
    const { text: destination } = await person.get(draft.to("destination"));
    await person.post(draft.to("destination"), { kind: "new" });
    const { text: start } = await person.get(draft.to("start"));
    return [destination, start].map((text) => /created [^.<]*/.exec(text)?.[0].trim());
  };
  expect(await told(null)).toEqual(Array(2).fill("created and hosted by us"));
  expect(await told("eu-central-1")).toEqual(
    Array(2).fill("created and hosted by us in eu-central-1 (Frankfurt)"),
  );
  expect(await told("Our data center")).toEqual(Array(2).fill("created and hosted by us in Our data center"));
  expect(await told(THIS_MACHINE)).toEqual(Array(2).fill("created on this machine"));

  await person.post(draft.to("start"), { plan: "business" });
  const [base] = await listBases(ctx.db, person.accountId);
  const path = `/bases/${base!.id}/connect`;
  expect((await person.get(path)).text).toContain("Location: this machine. ");
  await ensureDefaultCluster(ctx);
  const { text } = await person.get(path);
  expect(text).not.toMatch(/Location:|Region:|us-west|Oregon/);
});

test("a refused base stays chosen, and its error leads to the key", async () => {
  const person = await site.person();
  const draft = await begin(person);
  const key = sandbox.control.createKey({ scopes: ["schema.bases:read"] });
  await person.post(draft.to("key"), { key });
  const { text } = await person.post(draft.to("base"), { base: baseIds[1]! });
  expect(text).toMatch(new RegExp(`value="${baseIds[1]}" checked`));
  expect(text).toContain(`href="${draft.to("key")}"`);
  const wrong = await person.post(draft.to("key"), { key: "patWrong.1" });
  expect(wrong.text).toContain('value="patWrong.1"');
  expect(wrong.text).toContain("Open your tokens");
});

test("when Airtable fails, the error offers another try and does not blame the key", async () => {
  const person = await site.person();
  const draft = await begin(person);
  await person.post(draft.to("key"), { key: sandbox.key });
  const tables = "/meta/bases/[^/]+/tables";
  const records = `/v0/${baseIds[1]!}/`;
  const cases = [
    [
      "status_503",
      tables,
      "read the tables of this base failed: Airtable answered 503",
      "Try again in a minute.",
    ],
    [
      "status_503",
      records,
      "read the records of this base failed: Airtable answered 503",
      "Try again in a minute.",
    ],
    [
      "billing_limit",
      tables,
      "read the tables of this base failed: Airtable answered 429",
      "Upgrade its plan",
    ],
    [
      "unauthorized",
      tables,
      "read the tables of this base failed: Airtable answered 401",
      "Enter another one.",
    ],
    ["rate_limited", tables, "read the tables of this base failed: Airtable answered 429", "Wait 30 seconds"],
  ] as const;
  for (const [kind, path, failed, remedy] of cases) {
    const { id } = sandbox.control.addFault({ kind, path });
    const { text } = await person.post(draft.to("base"), { base: baseIds[1]! });
    expect([kind, text]).toEqual([kind, expect.stringContaining(failed)]);
    expect([kind, text]).toEqual([kind, expect.stringContaining(remedy)]);
    expect(text).not.toMatch(/[Rr]etries automatically|resumes automatically/);
    expect(text.includes("Change the token")).toBe(kind === "unauthorized");
    sandbox.control.clearFaults(id);
    await site.control.ctx.db`delete from quota_blocks`;
  }
  // The list of bases is kept for a moment.
  await site.control.ctx.db`update base_drafts set choices = null`;
  const { id } = sandbox.control.addFault({ kind: "status_503", path: "/meta/bases" });
  for (const { status, text } of [
    await person.get(draft.to("base")),
    await person.post(draft.to("base"), { base: baseIds[1]! }),
  ]) {
    expect(status).toBe(502);
    expect(text).toContain("The request to list your bases failed: Airtable answered 503");
    expect(text).toMatch(new RegExp(`href="${draft.to("base")}"[^>]*>Try again<`));
  }
  sandbox.control.clearFaults(id);
  // Not the one that is paused after the 429.
  expect((await person.post(draft.to("base"), { base: baseIds[2]! })).location).toBe(draft.to("destination"));
});

test("with several clusters, the region of a new database can be chosen; an unknown one is refused", async () => {
  const { db, secrets, config } = site.control.ctx;
  const far = {
    name: "far",
    region: "eu-central-1",
    adminUrl: site.control.serverUrl,
    publicHost: "far.example",
  };
  await addCluster({ db, secrets, actor: undefined }, far);
  try {
    const person = await site.person();
    const draft = await beginWithBase(person);
    const { text } = await person.get(draft.to("destination"));
    expect(text).toContain(`<option value="${config.defaultRegion}" selected`);
    expect(text).toContain("eu-central-1 (Frankfurt)");
    const moon = await person.post(draft.to("destination"), { kind: "new", region: "moon-1" });
    expect([moon.status, moon.text]).toEqual([422, expect.stringContaining("Choose one of: eu-central-1")]);
    await person.post(draft.to("destination"), { kind: "new", region: "eu-central-1" });
    expect((await person.get(draft.to("start"))).text).toContain("eu-central-1 (Frankfurt)");
    await person.post(draft.to("start"), { plan: "business" });
    const [base] = await listBases(db, person.accountId);
    expect(base!.database.host).toBe("far.example");
  } finally {
    await drainCluster(db, "far");
  }
});

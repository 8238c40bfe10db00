/** What agents learn of changes and schemas at `/mcp`: only what their role may read now, whatever the history has. */
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { type RunningConsole, startConsole } from "../../../apps/console/start";
import { createAgent, getAgent, updateAgent } from "../../../core/control/agents";
import { type Base, getBase, updateSettings } from "../../../core/control/bases";
import { type AgentClient, agentClient, PROTOCOL_REVISIONS } from "../../support/agent-client";
import { type Fleet, startFleet } from "../../support/fleet";
import { until } from "../../support/poll";

vi.setConfig({ testTimeout: 60_000 });

const ACTOR = { kind: "user", name: "owner@example.org" } as const;
const LARGE = "x".repeat(20_000);

interface Change {
  at: string;
  table: string;
  record: string;
  operation: string;
  by: string;
  old: Record<string, unknown> | null;
  new: Record<string, unknown> | null;
  is_too_large?: true;
}

let fleet: Fleet;
let console_: RunningConsole;
let origin: string;
let base: Base;
let other: Base;
let agent: AgentClient;
let agentId: string;
const clients: AgentClient[] = [];

const as = () => ({ ...fleet.ctx, actor: ACTOR });
const fields = (...names: string[]) => names.map((name) => ({ name, type: "singleLineText" }));

async function newAgent(name: string, asked: object = {}) {
  const made = await createAgent(as(), base.accountId, {
    name,
    mayPropose: false,
    bases: [{ baseId: base.id, tables: ["orders"], hidden: ["orders.secret"], ...asked }],
  });
  const client = await agentClient(origin, made.token);
  clients.push(client);
  return { id: made.agent.id, client };
}

beforeAll(async () => {
  fleet = await startFleet({ sandbox: { settings: { rateLimitOff: true } } });
  const { control } = fleet.sandbox;
  const orders = {
    name: "Orders",
    fields: [...fields("Name", "Status", "Secret"), { name: "Contact", type: "email" }],
    records: [{ fields: { Name: "One", Status: "open", Secret: "hidden text", Contact: "ada@example.org" } }],
  };
  const salaries = { name: "Salaries", fields: fields("Who"), records: [{ fields: { Who: "Ada" } }] };
  const sourceId = control.createBase({ name: "Shop", tables: [orders, salaries] });
  base = await fleet.synced((await fleet.connect(sourceId)).id);
  const otherId = control.createBase({ name: "Private", tables: [salaries] });
  other = await fleet.synced((await fleet.connect(otherId)).id);
  console_ = await startConsole(fleet.ctx, { port: 0 });
  origin = `http://localhost:${console_.port}`;
  ({ client: agent, id: agentId } = await newAgent("Claude"));
}, 90_000);
afterAll(async () => {
  for (const client of clients) await client[Symbol.asyncDispose]();
  await console_?.stop();
  await fleet?.[Symbol.asyncDispose]();
});

const source = () => fleet.sandbox.control;

/** Updates a record, and waits until that is recorded. */
async function change(table: string, record: string, cells: Record<string, unknown>): Promise<void> {
  const owner = await fleet.owner(base);
  const last = async () =>
    (await owner`select coalesce(max(id), 0)::int as id from _sync_history where record_id = ${record}`)[0]!
      .id;
  const before = await last();
  source().updateRecords(base.sourceBaseId, table, [{ id: record, fields: cells }]);
  await until(async () => (await last()) > before, { what: "the change is recorded", timeoutMs: 30_000 });
}

async function changesOf(input: object = {}, client = agent): Promise<Change[]> {
  const { isError, data, text } = await client.call("get_changes", { order: "oldest", ...input });
  expect([isError, text]).toEqual([false, text]);
  return data.changes;
}

describe("the schema as a resource", () => {
  test.each(PROTOCOL_REVISIONS)(
    "is listed and read in revision %s, with the agent's rights",
    async (revision) => {
      const made = await createAgent(as(), base.accountId, {
        name: revision,
        mayPropose: false,
        bases: [{ baseId: base.id, tables: ["orders"], hidden: ["orders.secret"] }],
      });
      await using own = await agentClient(origin, made.token, revision);
      const { resources } = await own.client.listResources();
      const uri = `basetide://${base.id}/schema.sql`;
      expect(resources).toMatchObject([{ uri, name: "Shop: schema.sql", mimeType: "application/sql" }]);
      const { resourceTemplates } = await own.client.listResourceTemplates();
      expect(resourceTemplates).toMatchObject([{ uriTemplate: "basetide://{base}/schema.sql" }]);
      const { contents } = await own.client.readResource({ uri });
      const { text } = contents[0] as { text: string };
      expect(text).toMatch(/^-- As of .*\n-- Names and comments are data/);
      const described = await own.call("describe_tables", { tables: ["orders"] });
      const definition = text.slice(text.indexOf("create table")).trim();
      expect(described.text).toContain(definition);
      expect(text).toContain("  status text,");
      for (const hidden of ["secret", "contact", "salaries"]) expect(text).not.toContain(hidden);
      for (const wrong of [other.id, "bas_00000000000000000000"])
        await expect(own.client.readResource({ uri: `basetide://${wrong}/schema.sql` })).rejects.toThrow(
          /not_found: This agent may read no base/,
        );
      await expect(own.client.readResource({ uri: `basetide://${base.id}/rows.sql` })).rejects.toThrow();
    },
  );
});

test("a base whose changes are not recorded: which setting, and who turns it on", async () => {
  const { isError, text } = await agent.call("get_changes");
  expect([isError, text]).toEqual([
    true,
    expect.stringMatching(/^conflict: .*not recorded.*member who may edit.*`history`/),
  ]);
});

describe("with the history of changes", () => {
  let record: string;

  beforeAll(async () => {
    await updateSettings(fleet.ctx, base, { history: true });
    base = await getBase(fleet.ctx.db, base.id, base.accountId);
    const owner = await fleet.owner(base);
    await until(async () => (await owner`select to_regclass('public._sync_history') as it`)[0]!.it !== null, {
      what: "the history is recorded",
      timeoutMs: 30_000,
    });
    record = (await owner`select id from orders`)[0]!.id;
    const salary = (await owner`select id from salaries`)[0]!.id;
    await change("Salaries", salary, { Who: "Bob" });
    await change("Orders", record, { Secret: "another secret" });
    await change("Orders", record, { Status: "done", Secret: "third secret", Contact: "b@example.org" });
  }, 90_000);

  test("changes without hidden columns, private fields, and tables that are not granted", async () => {
    const { data, text } = await agent.call("get_changes");
    expect(data).toMatchObject({
      as_of: expect.any(String),
      is_complete: expect.any(Boolean),
      is_cut: false,
    });
    expect(data.changes).toEqual([
      {
        at: expect.stringMatching(/^\d{4}-.*\.\d{6}Z$/),
        table: "orders",
        record,
        operation: "update",
        by: "sync",
        old: { status: "open" },
        new: { status: "done" },
      },
    ]);
    for (const hidden of ["secret", "contact", "example.org", "salaries", "Ada", "Bob"])
      expect(text).not.toContain(hidden);
    expect(text).toMatch(/^The lines between the two marks/m);
    const everything = await newAgent("All", { tables: null, hidden: [], hasPrivate: true });
    const all = await changesOf({}, everything.client);
    expect(all.map(({ table, new: values }) => [table, values])).toEqual([
      ["salaries", { who: "Bob" }],
      ["orders", { secret: "another secret" }],
      ["orders", { status: "done", secret: "third secret", contact: "b@example.org" }],
    ]);
  });

  test("of a table and a record, from a time on, in both orders, and whether they are cut", async () => {
    await change("Orders", record, { Name: "Two" });
    await change("Orders", record, { Name: "Three" });
    const all = await changesOf({ table: "Orders", record });
    expect(all.map((one) => one.new)).toEqual([{ status: "done" }, { name: "Two" }, { name: "Three" }]);
    expect(await changesOf({ order: "newest" })).toEqual(all.toReversed());
    expect(await changesOf({ since: all[1]!.at })).toEqual(all.slice(1));
    expect(await changesOf({ record: "recAAAAAAAAAAAAAA" })).toEqual([]);
    // As if the table had been made again, without grants.
    const owner = await fleet.owner(base);
    const [user] = await fleet.ctx.db`select role_name as role from sql_users where agent_id = ${agentId}`;
    await owner`revoke all on orders from ${owner(user!.role)}`;
    expect(await changesOf()).toEqual(all);
    const cut = await agent.call("get_changes", { order: "oldest", limit: 2 });
    expect(cut.data).toMatchObject({ changes: all.slice(0, 2), is_cut: true, cut_by: "limit" });
    expect(cut.text).toContain(`There are more changes: continue with after: "${cut.data.next}".`);
  });

  test.each(["oldest", "newest"])("page by page, the %s first, each change once", async (order) => {
    const { client: agent } = await newAgent(order);
    const all = await changesOf({ order }, agent);
    for (const limit of [1, 2]) {
      const seen: Change[] = [];
      let page = await agent.call("get_changes", { order, limit });
      for (
        ;
        page.data.is_cut;
        page = await agent.call("get_changes", { order, limit, after: page.data.next })
      )
        seen.push(...page.data.changes);
      expect([...seen, ...page.data.changes]).toEqual(all);
      const { next } = page.data;
      const rest = await agent.call("get_changes", { order, after: next });
      expect(rest.data).toMatchObject({ changes: [], is_cut: false, next });
    }
    const other = await agent.call("get_changes", { after: "1-1" });
    expect([other.isError, other.text]).toEqual([true, expect.stringMatching(/^invalid_request: .*since/)]);
  });

  test("the oldest first, no change of a transaction that ends later is passed over", async () => {
    const { client: agent } = await newAgent("Follower");
    const owner = await fleet.owner(base);
    const insert = (sql: typeof owner, name: string) => sql`
      insert into _sync_history (seen_at, table_name, record_id, operation, old, new, by)
      values (clock_timestamp(), 'orders', ${record}, 'update', '{"name": "-"}', ${sql.json({ name })}, 'proxy')`;
    const { data: before } = await agent.call("get_changes", { order: "oldest" });
    const after = () => changesOf({ after: before.next }, agent);
    await owner.begin(async (open) => {
      await insert(open as unknown as typeof owner, "early");
      await insert(owner, "late");
      expect(await after()).toEqual([]);
    });
    expect((await after()).map((one) => one.new?.name)).toEqual(["early", "late"]);
    await owner`delete from _sync_history where by = 'proxy'`;
  });

  test("at most 64 kB, by whole changes, and one that is too large without its values", async () => {
    const owner = await fleet.owner(base);
    const since = (await owner`select now()::timestamptz(3) as at`)[0]!.at.toISOString();
    const insert = (text: string, count: number) => owner`
      insert into _sync_history (seen_at, table_name, record_id, operation, old, new, by)
      select clock_timestamp(), 'orders', ${record}, 'update', '{"name": "\u00e4"}',
        jsonb_build_object('name', ${text}::text || n), 'proxy'
      from generate_series(1, ${count}) as n`;
    await insert(LARGE, 1);
    await insert('"'.repeat(1000), 200);
    const { data, bytes } = await agent.call("get_changes", { since, order: "oldest", limit: 500 });
    expect(data).toMatchObject({ is_cut: true, cut_by: "bytes" });
    expect(data.changes.length).toBeGreaterThan(5);
    expect(bytes).toBeLessThanOrEqual(64_000 + 2000);
    expect(data.changes[0]).toMatchObject({ by: "proxy", old: null, new: null, is_too_large: true });
    expect(data.changes[1].new.name).toBe(`${'"'.repeat(1000)}1`);
    const names: string[] = data.changes.slice(1).map((one: Change) => one.new!.name);
    for (let page = data; page.is_cut; ) {
      ({ data: page } = await agent.call("get_changes", { order: "oldest", limit: 500, after: page.next }));
      names.push(...page.changes.map((one: Change) => one.new!.name));
    }
    expect(names).toEqual(Array.from({ length: 200 }, (_, n) => `${'"'.repeat(1000)}${n + 1}`));
    await owner`delete from _sync_history where by = 'proxy'`;
  });

  test("bad arguments are refused with a code, and bases of others are not found", async () => {
    const code = async (input: object) => {
      const { isError, text } = await agent.call("get_changes", input as Record<string, unknown>);
      expect(isError).toBe(true);
      return text;
    };
    expect(await code({ record: "x' or true --" })).toMatch(/^invalid_request: /);
    for (const table of ["salaries", "Salaries", "_sync_history", "nothing"])
      expect(await code({ table })).toMatch(/^not_found: There is no table/);
    for (const name of [other.id, other.name, "bas_00000000000000000000"])
      expect(await code({ base: name })).toMatch(/^not_found: .*It may read: bas_\w+ \(Shop\)$/);
    for (const input of [{ since: "yesterday" }, { limit: 0 }, { limit: 501 }, { order: "random" }])
      expect(await code(input)).toMatch(/-32602|[Ii]nvalid/);
  });

  test("what a name meant before it was used again is not shown under it", async () => {
    const owner = await fleet.owner(base);
    // Old names still answer in SQL: the catalog has the current ones.
    const columns = async () =>
      (
        await owner`select c.name from public_swap._tables as t
          cross join jsonb_to_recordset(t.spec -> 'columns') as c (name text) where t.name = 'orders'`
      ).map(({ name }) => name as string);
    const renamed = async (rename: () => void, isDone: () => Promise<boolean>) => {
      rename();
      await fleet.ctx.db`update bases set schema_check_requested_at = now() where id = ${base.id}`;
      await until(isDone, { what: "the name is changed", timeoutMs: 30_000 });
    };
    // The hidden field gets another name, and its former name goes to a field that may be read.
    await renamed(
      () => source().renameField(base.sourceBaseId, "Orders", "Secret", "Old secret"),
      async () => (await columns()).includes("old_secret"),
    );
    await renamed(
      () => source().renameField(base.sourceBaseId, "Orders", "Status", "Secret"),
      async () => !(await columns()).includes("status"),
    );
    await change("Orders", record, { Secret: "public now", "Old secret": "fourth secret" });
    const all = await changesOf();
    expect(all.at(-1)!.new).toEqual({ secret: "public now" });
    expect(JSON.stringify(all)).not.toMatch(/third secret|another secret|fourth secret|hidden text/);
    // The same of tables.
    const isThere = async (name: string) =>
      (await owner`select from pg_tables where schemaname = 'public' and tablename = ${name}`).length > 0;
    await renamed(
      () => source().renameTable(base.sourceBaseId, "Orders", "Sales"),
      () => isThere("sales"),
    );
    await renamed(
      () => source().renameTable(base.sourceBaseId, "Salaries", "Orders"),
      () => isThere("orders"),
    );
    expect(await changesOf()).toEqual([]);
    await change("Sales", record, { Secret: "after" });
    expect(await changesOf()).toMatchObject([{ table: "sales", new: { secret: "after" } }]);
  }, 180_000);

  test("rights that are taken away hold for what was recorded before", async () => {
    await updateAgent(as(), await getAgent(fleet.ctx.db, base.accountId, agentId), {
      bases: [{ baseId: base.id, tables: ["sales"], hidden: ["sales.secret", "sales.old_secret"] }],
    });
    expect(await changesOf()).toEqual([]);
  });
});

/** I8 for agents: what one may no longer read it cannot read, whatever happened before, and whichever call is under way. */
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { type RunningConsole, startConsole } from "../../../apps/console/start";
import { createToken } from "../../../core/control/accounts";
import {
  type AskedBase,
  agentTarget,
  createAgent,
  getAgent,
  listAgents,
  renewAgentToken,
  revokeAgent,
  updateAgent,
} from "../../../core/control/agents";
import { type Base, createBase, deleteBase } from "../../../core/control/bases";
import { removeMember } from "../../../core/control/members";
import { type AgentClient, agentClient } from "../../support/agent-client";
import { type Fleet, startFleet } from "../../support/fleet";
import { until } from "../../support/poll";
import { testAccount } from "../../support/test-account";

vi.setConfig({ testTimeout: 60_000 });

const ACTOR = { kind: "user", name: "owner@example.org" } as const;

let fleet: Fleet;
let console_: RunningConsole;
let origin: string;
/** Statements of the console for the control plane. */
let statements = 0;
const clients: AgentClient[] = [];

const as = () => ({ ...fleet.ctx, actor: ACTOR });
const fields = (...names: string[]) => names.map((name) => ({ name, type: "singleLineText" }));

beforeAll(async () => {
  fleet = await startFleet({ sandbox: { settings: { rateLimitOff: true } } });
  const db = new Proxy(fleet.ctx.db, {
    apply(target, self, args) {
      statements++;
      return Reflect.apply(target, self, args);
    },
  });
  console_ = await startConsole({ ...fleet.ctx, db }, { port: 0 });
  origin = `http://localhost:${console_.port}`;
}, 90_000);
afterAll(async () => {
  for (const client of clients) await client[Symbol.asyncDispose]();
  await console_?.stop();
  await fleet?.[Symbol.asyncDispose]();
});

async function shop(): Promise<Base> {
  const orders = {
    name: "Orders",
    fields: fields("Name", "Notes", "Secret"),
    records: [{ fields: { Name: "One", Notes: "open text", Secret: "hidden text" } }],
  };
  const sourceId = fleet.sandbox.control.createBase({ name: "Shop", tables: [orders] });
  return fleet.synced((await fleet.connect(sourceId)).id);
}

/** Another base in the same database. */
async function addedTo(first: Base): Promise<Base> {
  const things = { name: "Things", fields: fields("Name"), records: [{ fields: { Name: "thing" } }] };
  const added = await createBase(fleet.ctx, first.accountId, {
    platform: "airtable",
    apiKey: fleet.sandbox.key,
    sourceBaseId: fleet.sandbox.control.createBase({ name: "Things", tables: [things] }),
    destination: { kind: "existing", database_id: first.database.id, schema: "added" },
    settings: { live: false },
  });
  return fleet.synced(added.id);
}

let agents = 0;
async function newAgent(accountId: string, bases: AskedBase[]) {
  const made = await createAgent(as(), accountId, { name: `Agent ${++agents}`, mayPropose: false, bases });
  const client = await agentClient(origin, made.token);
  clients.push(client);
  const query = (base: Base, sql: string | string[]) => client.call("query", { base: base.id, sql });
  return { ...made.agent, token: made.token, query, call: client.call };
}

async function roleOf(agentId: string): Promise<string> {
  const [row] = await fleet.ctx.db<
    { role: string }[]
  >`select role_name as role from sql_users where agent_id = ${agentId}`;
  return row!.role;
}

const sqlUsersOf = async (agentId: string) =>
  (await fleet.ctx.db`select from sql_users where agent_id = ${agentId}`).length;

/** Has the schema checked, and waits until the catalog fulfills the condition. */
async function resynced(base: Base, condition: (columns: Record<string, string>) => boolean): Promise<void> {
  const owner = await fleet.owner(base);
  await fleet.ctx.db`update bases set schema_check_requested_at = now() where id = ${base.id}`;
  await until(
    async () => {
      const columns = await owner<{ name: string; type: string }[]>`
        select c.name, c.type from public_swap._tables as t
          cross join jsonb_to_recordset(t.spec -> 'columns') as c (name text, type text)`;
      return condition(Object.fromEntries(columns.map(({ name, type }) => [name, type])));
    },
    { what: "the catalog to follow the source", timeoutMs: 30_000 },
  );
}

const status = async (token: string) =>
  (
    await fetch(`${origin}/mcp`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "mcp-protocol-version": "2025-11-25",
        authorization: `Bearer ${token}`,
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "list_bases" } }),
    })
  ).status;

test("a base that is removed during a call is not readable by its next statement, or through another base", async () => {
  const first = await shop();
  const second = await addedTo(first);
  const agent = await newAgent(first.accountId, [{ baseId: first.id }, { baseId: second.id }]);
  const things = "select name from added.things";
  expect((await agent.query(second, things)).data.results[0].rows).toEqual([["thing"]]);
  const slow = agent.query(second, ["select count(*) from generate_series(1, 12000000)", things]);
  const owner = await fleet.owner(second);
  const running = async () =>
    (
      await owner`select from pg_stat_activity
        where query like '%generate_series(1, 12%' and state = 'active' and pid <> pg_backend_pid()`
    ).length > 0;
  await until(running, { what: "the first statement to run" });
  await updateAgent(as(), await getAgent(fleet.ctx.db, first.accountId, agent.id), {
    bases: [{ baseId: first.id }],
  });
  expect((await slow).text).toMatch(/^not_found/);
  const after = await agent.query(first, things);
  expect([after.isError, after.text.includes("42501")]).toEqual([true, true]);
});

test("a base whose removal did not reach the database is not readable through another base of it", async () => {
  const first = await shop();
  const second = await addedTo(first);
  const agent = await newAgent(first.accountId, [{ baseId: first.id }, { baseId: second.id }]);
  const things = "select name from added.things";
  expect((await agent.query(first, things)).isError).toBe(false);
  await fleet.ctx.db`delete from agent_bases where agent_id = ${agent.id} and base_id = ${second.id}`;
  expect((await agent.query(first, things)).text).toContain("42501");
});

test("a hidden field that takes over the name of another is not readable", async () => {
  const base = await shop();
  const agent = await newAgent(base.accountId, [{ baseId: base.id, hidden: ["orders.secret"] }]);
  const sql = "select notes from orders";
  expect((await agent.query(base, sql)).data.results[0].rows).toEqual([["open text"]]);
  const { control } = fleet.sandbox;
  control.renameField(base.sourceBaseId, "Orders", "Notes", "Public notes");
  await resynced(base, ({ public_notes }) => public_notes !== undefined);
  control.renameField(base.sourceBaseId, "Orders", "Secret", "Notes");
  await resynced(base, ({ secret }) => secret === undefined);
  const owner = await fleet.owner(base);
  expect(await owner`select notes from orders`).toEqual([{ notes: "hidden text" }]);
  const after = await agent.query(base, sql);
  expect([after.isError, JSON.stringify(after).includes("hidden text")]).toEqual([true, false]);
  const still = await agent.query(base, "select public_notes from orders");
  expect(still.data.results[0].rows).toEqual([["open text"]]);
});

test("a field that becomes personal data is not readable by an agent that may not read such", async () => {
  const base = await shop();
  const agent = await newAgent(base.accountId, [{ baseId: base.id }]);
  const sql = "select notes from orders";
  expect((await agent.query(base, sql)).isError).toBe(false);
  fleet.sandbox.control.retypeField(base.sourceBaseId, "Orders", "Notes", "email");
  await resynced(base, ({ notes }) => notes === "email");
  expect((await agent.query(base, sql)).text).toContain("42501");
  expect((await agent.query(base, "select secret from orders")).isError).toBe(false);
});

test("whatever is under way, the next call after a field was hidden does not read it, and no call fails", async () => {
  const base = await shop();
  const answers = new Set<string>();
  const toggled = async () => {
    const agent = await newAgent(base.accountId, [{ baseId: base.id }]);
    await updateAgent(as(), agent, { limits: { calls: 600, queries: 10 } });
    const set = async (hidden: string[]) =>
      updateAgent(as(), await getAgent(fleet.ctx.db, base.accountId, agent.id), {
        bases: [{ baseId: base.id, hidden }],
      });
    const reads = async () => {
      const { isError, text } = await agent.query(base, "select secret from orders");
      answers.add(isError ? text.slice(0, 30) : "rows");
      return !isError;
    };
    let left = 200;
    const calls = [1, 2].map(async () => {
      while (left-- > 0) await reads();
    });
    const after: boolean[] = [];
    for (let nth = 0; nth < 10; nth++) {
      await set(["orders.secret"]);
      after.push(await reads());
      await set([]);
      after.push(await reads());
    }
    left = 0;
    await Promise.all(calls);
    return after;
  };
  const expected = Array.from({ length: 10 }, () => [false, true]).flat();
  expect(await Promise.all([toggled(), toggled()])).toEqual([expected, expected]);
  expect([...answers].toSorted()).toEqual(["query_failed: 42501: permissio", "rows"]);
});

test("rights that the role has for another reason are revoked by the next call, and lost ones granted", async () => {
  const base = await shop();
  const agent = await newAgent(base.accountId, [{ baseId: base.id, hidden: ["orders.secret"] }]);
  expect((await agent.query(base, "select notes from orders")).isError).toBe(false);
  const owner = await fleet.owner(base);
  const role = owner(await roleOf(agent.id));
  // As after a restore of the database as it was before the field was hidden.
  await owner`grant select on orders, _sync_issues to ${role}`;
  for (const sql of ["select secret from orders", "select * from _sync_issues"])
    expect((await agent.query(base, sql)).text).toContain("42501");
  await owner`revoke all on orders from ${role}`;
  expect((await agent.query(base, "select notes from orders")).isError).toBe(false);
});

test("a role is dropped with the agent's last base in its database", async () => {
  const [first, other] = [await shop(), await shop()];
  const second = await addedTo(first);
  const agent = await newAgent(first.accountId, [{ baseId: second.id }, { baseId: other.id }]);
  expect(await sqlUsersOf(agent.id)).toBe(2);
  const role = await fleet.ctx.db<{ role: string }[]>`
    select role_name as role from sql_users where agent_id = ${agent.id} and database_id = ${first.database.id}`;
  await updateAgent(as(), agent, { bases: [{ baseId: other.id }] });
  const owner = await fleet.owner(first);
  expect(await sqlUsersOf(agent.id)).toBe(1);
  expect(await owner`select from pg_roles where rolname = ${role[0]!.role}`).toHaveLength(0);
  await updateAgent(as(), agent, { bases: [{ baseId: second.id }, { baseId: other.id }] });
  expect((await agent.query(second, "select name from things")).isError).toBe(false);
  await deleteBase(fleet.ctx, second);
  expect(await sqlUsersOf(agent.id)).toBe(1);
});

test("an agent that is being revoked gets no SQL user from a call under way, and is gone once its users are", async () => {
  const base = await shop();
  const agent = await newAgent(base.accountId, [{ baseId: base.id }]);
  const owner = await fleet.owner(base);
  const held = Promise.withResolvers<void>();
  const holding = Promise.withResolvers<void>();
  // The role cannot be dropped while somebody changes the rights on a table.
  const holder = owner.begin(async (tx) => {
    await tx`grant select on orders to ${tx(await roleOf(agent.id))}`;
    holding.resolve();
    await held.promise;
  });
  await holding.promise;
  try {
    await expect(revokeAgent(as(), agent)).rejects.toMatchObject({ code: "replica_busy" });
    expect(await status(agent.token)).toBe(401);
    await expect(agentTarget(as(), agent, base)).rejects.toThrow();
  } finally {
    held.resolve();
    await holder;
  }
  await revokeAgent(as(), await getAgent(fleet.ctx.db, base.accountId, agent.id));
  expect(await sqlUsersOf(agent.id)).toBe(0);
  await expect(agentTarget(as(), agent, base)).rejects.toMatchObject({ code: "not_found" });
  expect(await sqlUsersOf(agent.id)).toBe(0);
});

test("the token of an agent that is being revoked ends at once, also while a call makes its SQL user", async () => {
  const base = await shop();
  const { db } = fleet.ctx;
  const agent = await newAgent(base.accountId, [{ baseId: base.id, tables: null }]);
  const hasToken = async () => (await db`select from api_tokens where agent_id = ${agent.id}`).length > 0;
  const made = Promise.withResolvers<void>();
  const locked = Promise.withResolvers<void>();
  const making = db.begin(async (tx) => {
    await tx`select from agents where id = ${agent.id} for key share`;
    locked.resolve();
    await made.promise;
  });
  await locked.promise;
  const revoking = revokeAgent(as(), agent);
  await until(async () => !(await hasToken()), { what: "the token has ended" });
  made.resolve();
  await Promise.all([making, revoking]);
});

test("an agent that a member makes or renews by the API ends with their role, and with their membership", async () => {
  const base = await shop();
  const { accountId } = base;
  const { db } = fleet.ctx;
  const member = async (email: string) => {
    const { id } = await testAccount(db, { email });
    const [{ userId }] = (await db`
      select user_id as "userId" from account_members where account_id = ${id}`) as unknown as [
      { userId: string },
    ];
    await db`insert into account_members (account_id, user_id, role) values (${accountId}, ${userId}, 'editor')`;
    return { userId, token: await createToken(db, accountId, email, { userId }) };
  };
  const post = async (token: string, path: string, body: object = {}) => {
    const response = await fetch(`${origin}/api/v1/agents${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
      body: JSON.stringify(body),
    });
    return response.json() as Promise<{ agent: { id: string }; token: string }>;
  };
  const [first, second] = [await member("editor@example.org"), await member("other@example.org")];
  const asked = (name: string) => ({ name, bases: [{ base_id: base.id }] });
  const made = await post(first.token, "", asked("By the API"));
  const other = await post(second.token, "", asked("Of another"));
  const renewed = await post(first.token, `/${other.agent.id}/token`);
  const kept = await post(second.token, "", asked("Kept"));
  const all = () => Promise.all([made, renewed, kept].map(({ token }) => status(token)));
  expect(await all()).toEqual([200, 200, 200]);
  const setRole = (role: string) =>
    db`update account_members set role = ${role} where account_id = ${accountId} and user_id = ${first.userId}`;
  await setRole("viewer");
  expect(await all()).toEqual([403, 403, 200]);
  await setRole("editor");
  expect(await all()).toEqual([200, 200, 200]);
  await removeMember(fleet.ctx, { accountId, userId: null, isOwner: true, actor: ACTOR }, first.userId);
  expect(await all()).toEqual([401, 401, 200]);
});

test("of tokens that are made at once, one works, and the agent is listed once", async () => {
  const base = await shop();
  const agent = await newAgent(base.accountId, [{ baseId: base.id }]);
  const { db } = fleet.ctx;
  const held = Promise.withResolvers<void>();
  const holding = Promise.withResolvers<void>();
  const holder = db.begin(async (tx) => {
    await tx`select from api_tokens where agent_id = ${agent.id} for update`;
    holding.resolve();
    await held.promise;
  });
  await holding.promise;
  const renewals = Promise.all(Array.from({ length: 3 }, () => renewAgentToken(as(), agent)));
  const waiting = async () =>
    (
      await db`select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()
        and query ~ 'api_tokens|agents'`
    ).length >= 3;
  await until(waiting, { what: "all renewals to wait" });
  held.resolve();
  await holder;
  const tokens = await renewals;
  const working = (await Promise.all(tokens.map(status))).filter((one) => one === 200);
  expect(working).toHaveLength(1);
  expect(await status(agent.token)).toBe(401);
  const listed = await listAgents(db, base.accountId);
  expect(listed.filter(({ id }) => id === agent.id)).toHaveLength(1);
});

test("a call asks the control plane as often for many bases as for one", async () => {
  const first = await shop();
  const others = [await addedTo(first), await shop(), await shop()];
  const counts: number[][] = [];
  for (const bases of [[first], [first, ...others]]) {
    const asked = bases.map(({ id }) => ({ baseId: id }));
    const { call } = await newAgent(first.accountId, asked);
    // The fewest: in the background the console asks, too.
    const fewest = async (tool: string, input: Record<string, unknown>) => {
      const all: number[] = [];
      for (let nth = 0; nth < 5; nth++) {
        statements = 0;
        expect((await call(tool, input)).isError).toBe(false);
        all.push(statements);
      }
      return Math.min(...all);
    };
    const query = { base: first.id, sql: "select 1" };
    counts.push([await fewest("list_bases", {}), await fewest("query", query)]);
  }
  expect(counts[1]).toEqual(counts[0]);
});

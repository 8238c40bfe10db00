/** Workspaces and budgets over the management API. */
import { beforeEach, expect, test } from "vitest";
import { deleteBase, listBases } from "../../../core/control/bases";
import { allowancesOf } from "../../../core/control/budgets";
import { connectBase, managementApi } from "../../support/control-support";

const api = managementApi();
const { call, newAccount } = api;
beforeEach(async () => {
  for (const base of await listBases(api.control.ctx.db)) await deleteBase(api.control.ctx, base);
});

const PATH = "/api/v1/workspaces";
const month = new Date().toISOString().slice(0, 7);

async function addWorkspace(token: string, body: Record<string, unknown>) {
  const answer = await call("POST", PATH, { token, body });
  expect(answer.status, JSON.stringify(answer.body)).toBe(201);
  return answer.body;
}

async function connect(token: string, base_id: string, body: Record<string, unknown> = {}) {
  const answer = await connectBase(call, token, { base_id, ...body });
  expect(answer.status, JSON.stringify(answer.body)).toBe(201);
  return answer.body;
}

test("a plan sets its calls, and a fifth of them is reserved for clients by default", async () => {
  const { token } = await newAccount();
  const team = await addWorkspace(token, { name: "Sales", plan: "team" });
  expect(team).toMatchObject({
    id: expect.stringMatching(/^wsp_/),
    name: "Sales",
    plan: "team",
    calls_per_month: 100_000,
    reserve: 20_000,
    bases: [],
    used: { month, sync: 0, client: 0, by_kind: {} },
    forecast: { calls: null, next_day: null, ends_inside: null, missing: "history" },
    state: "inside",
    left: 79_000,
    slowed: null,
  });
  const own = await addWorkspace(token, { name: "Own", plan: "custom", calls_per_month: 5000, reserve: 0 });
  expect(own).toMatchObject({ calls_per_month: 5000, reserve: 0, left: 4950 });
  const business = await addWorkspace(token, { name: "Big", plan: "business" });
  expect(business).toMatchObject({
    calls_per_month: null,
    reserve: 0,
    state: "no_cap",
    left: null,
    rate_per_hour: null,
  });
  expect((await call("GET", PATH, { token })).body.map((one: { name: string }) => one.name)).toEqual([
    "Sales",
    "Own",
    "Big",
  ]);

  const change = (body: unknown) => call("PATCH", `${PATH}/${team.id}`, { token, body });
  expect((await change({ reserve: 50_000 })).body).toMatchObject({
    plan: "team",
    reserve: 50_000,
    left: 49_000,
  });
  expect((await change({ name: "All" })).body).toMatchObject({ name: "All", reserve: 50_000 });
  expect((await change({ plan: "free" })).body).toMatchObject({ calls_per_month: 1000, reserve: 200 });
});

test("invalid values are refused, with the valid ones", async () => {
  const { token } = await newAccount();
  await addWorkspace(token, { name: "Sales", plan: "team" });
  const refused = async (body: unknown) => {
    const answer = await call("POST", PATH, { token, body });
    return [answer.status, answer.body.error.code, answer.body.error.message];
  };
  expect(await refused({ name: "Sales", plan: "free" })).toEqual([
    409,
    "already_exists",
    'A workspace named "Sales" already exists',
  ]);
  expect(await refused({ name: "X", plan: "team", calls_per_month: 5 })).toEqual([
    422,
    "invalid_request",
    'The plan "team" has 100000 calls a month. For another number, use "custom"',
  ]);
  expect(await refused({ name: "X", plan: "free", reserve: 1001 })).toEqual([
    422,
    "invalid_request",
    "The reserve for clients must be a whole number, at most 1000",
  ]);
  expect(await refused({ name: "X", plan: "business", reserve: 1 })).toMatchObject([
    422,
    "invalid_request",
    expect.any(String),
  ]);
  expect(await refused({ name: " ", plan: "free" })).toMatchObject([
    422,
    "invalid_request",
    expect.any(String),
  ]);
  expect(await refused({ name: "X", plan: "enterprise" })).toMatchObject([
    422,
    "invalid_request",
    expect.any(String),
  ]);
  expect(await refused({ name: "X", plan: "free", cap: 1 })).toMatchObject([
    422,
    "invalid_request",
    expect.any(String),
  ]);
});

test("a base is added to a workspace, shows its budget, and is removed again", async () => {
  const { token } = await newAccount();
  const workspace = await addWorkspace(token, { name: "Sales", plan: "team" });
  const base = await connect(token, "appOne", { workspace_id: workspace.id });
  expect(base.budget).toMatchObject({
    workspace_id: workspace.id,
    plan: "team",
    calls_per_month: 100_000,
    reserve: 20_000,
    state: "inside",
    spent: false,
  });
  expect(base.budget.rate_per_hour).toBeGreaterThan(100);
  const other = await connect(token, "appTwo");
  expect(other.budget).toBeNull();
  const { rate_per_hour: alone } = (await call("GET", `${PATH}/${workspace.id}`, { token })).body;
  const change = (id: string, body: unknown) => call("PATCH", `/api/v1/bases/${id}`, { token, body });
  expect((await change(other.id, { workspace_id: workspace.id })).body.budget.workspace_id).toBe(
    workspace.id,
  );
  const both = (await call("GET", `${PATH}/${workspace.id}`, { token })).body;
  expect(both.bases).toEqual([base.id, other.id]);
  expect(both.rate_per_hour).toBeCloseTo(alone / 2, 0);

  expect((await call("DELETE", `${PATH}/${workspace.id}`, { token })).body.error.code).toBe("conflict");
  expect((await change(other.id, { turbo: true })).body.budget).not.toBeNull();
  for (const { id } of [base, other])
    expect((await change(id, { workspace_id: null })).body.budget).toBeNull();
  expect((await call("DELETE", `${PATH}/${workspace.id}`, { token })).status).toBe(204);
  expect((await call("GET", `${PATH}/${workspace.id}`, { token })).status).toBe(404);
});

test("another account's workspace can be neither seen, changed nor used", async () => {
  const [owner, stranger] = [await newAccount(), await newAccount()];
  const { id } = await addWorkspace(owner.token, { name: "Sales", plan: "team" });
  const { token } = stranger;
  expect((await call("GET", PATH, { token })).body).toEqual([]);
  for (const method of ["GET", "PATCH", "DELETE"]) {
    const body = method === "PATCH" ? { name: "Mine" } : undefined;
    expect((await call(method, `${PATH}/${id}`, { token, body })).status).toBe(404);
  }
  expect((await connectBase(call, token, { workspace_id: id })).status).toBe(404);
  const base = await connect(token, "appOne");
  const moved = await call("PATCH", `/api/v1/bases/${base.id}`, { token, body: { workspace_id: id } });
  expect(moved.status).toBe(404);
  expect((await call("GET", `${PATH}/${id}`, { token: owner.token })).body).toMatchObject({
    name: "Sales",
    bases: [],
  });
  expect((await call("GET", PATH, {})).status).toBe(401);
});

test("a deleted base leaves the month's calls to its workspace", async () => {
  const { token } = await newAccount();
  const workspace = await addWorkspace(token, { name: "Sales", plan: "free" });
  const base = await connect(token, "appOne", { workspace_id: workspace.id });
  const first = `${month}-01`;
  await api.control.ctx.db`
    insert into quota_calls (key, month, sync, client) values ('airtable:appOne', ${first}, 300, 20)`;
  await api.control.ctx.db`
    insert into quota_kinds (key, month, kind, calls) values ('airtable:appOne', ${first}, 'sweep', 290)`;
  const used = { sync: 300, client: 20, by_kind: { sweep: 290 } };
  const before = (await call("GET", `${PATH}/${workspace.id}`, { token })).body;
  expect(before).toMatchObject({ used, left: 1000 - 10 - 200 - 300 });
  expect((await call("DELETE", `/api/v1/bases/${base.id}`, { token })).status).toBe(204);
  expect((await call("GET", `${PATH}/${workspace.id}`, { token })).body).toMatchObject({
    used,
    left: before.left,
    bases: [],
  });
  const again = await connect(token, "appOne", { workspace_id: workspace.id });
  expect(again.budget.used).toMatchObject(used);
});

test("a new plan releases at once the bases that waited because of the old one", async () => {
  const { token } = await newAccount();
  const workspace = await addWorkspace(token, { name: "Sales", plan: "free" });
  const base = await connect(token, "appTwo", { workspace_id: workspace.id });
  const { db } = api.control.ctx;
  await db`update bases set rests_until = now() + interval '1 day', state = 'active' where id = ${base.id}`;
  await db`select quota_throttle('airtable:appTwo', extract(epoch from now() + interval '1 day') * 1000, false)`;
  expect((await call("GET", `/api/v1/bases/${base.id}`, { token })).body.budget.slowed).toMatchObject({
    is_certain: false,
  });
  api.control.requested.length = 0;
  await call("PATCH", `${PATH}/${workspace.id}`, { token, body: { plan: "business" } });
  expect(api.control.requested).toEqual([base.id]);
  const [row] = await db`select rests_until from bases where id = ${base.id}`;
  expect(row!.rests_until).toBeNull();
  expect((await call("GET", `/api/v1/bases/${base.id}`, { token })).body.budget.slowed).toBeNull();
});

test("where keys of one user sync more than ten bases, each sync keeps to that user's limit, too", async () => {
  const { token } = await newAccount();
  const { id } = await connect(token, "appOne");
  const { db } = api.control.ctx;
  await db`update bases set source_user_id = 'usrOne' where id = ${id}`;
  const copies = (from: number, to: number) => db`
    insert into bases (id, account_id, platform, source_base_id, name, encrypted_api_key, database_id, schema_name,
      state, source_user_id)
    select 'copy' || n, account_id, platform, 'app' || n, name, '', database_id, 'copy' || n, 'active', source_user_id
    from bases, generate_series(${from}::int, ${to}::int) as n where id = ${id}`;
  const userOf = async () => (await allowancesOf(db, [id]))[0]!.user;
  await copies(1, 9);
  expect(await userOf()).toBeNull();
  await copies(10, 10);
  expect(await userOf()).toBe("airtable:usrOne");
  await db`update bases set state = 'paused', is_paused = true where id = 'copy1'`;
  expect(await userOf()).toBeNull();
  await db`delete from bases where id like 'copy%'`;
});

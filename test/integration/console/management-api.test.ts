import { expect, inject, test } from "vitest";
import { consoleApp } from "../../../apps/console/app";
import { recordRun, saveProgress } from "../../../core/control/bases";
import type { IssueGroup } from "../../../core/replica";
import { about } from "../../support/about";
import { connectAs, GOOD_KEY, managementApi, OTHER_KEY } from "../../support/control-support";

const api = managementApi();
const { call, connect, newAccount } = api;

/** Every call of the API as OpenAPI describes it: method, and path with its parameters in braces. */
async function describedCalls(): Promise<[string, string][]> {
  const { body } = await call("GET", "/openapi");
  return Object.entries(body.paths).flatMap(([path, methods]) =>
    Object.keys(methods as object).map((method): [string, string] => [method.toUpperCase(), path]),
  );
}

test("a call without a valid token is refused before its body is read", async () => {
  const calls = await describedCalls();
  expect(calls.length).toBeGreaterThan(40);
  for (const [method, described] of calls) {
    const path = described.replaceAll(/\{\w+\}/g, "bas_x");
    const body = method === "GET" ? undefined : {};
    const wrong = path.endsWith("/bases") ? ["wrong", `bt_${"A".repeat(43)}`] : [];
    for (const token of [undefined, ...wrong]) {
      const answer = await call(method, path, { ...(token ? { token } : {}), body });
      expect([method, path, answer.status]).toEqual([method, path, 401]);
      expect(answer.body.error).toMatchObject({ code: "unauthorized", request_id: expect.any(String) });
    }
  }
});

test("platforms and the bases of a key are listed; a bad key is reported with the source's text", async () => {
  const { token } = await newAccount();
  const platforms = await call("GET", "/api/v1/platforms", { token });
  expect(platforms.body).toEqual([
    { id: "airtable", name: "Airtable", key_help_url: "https://example.com/keys" },
  ]);
  const ask = (api_key: string) =>
    call("POST", "/api/v1/source-bases", { token, body: { platform: "airtable", api_key } });
  const bases = await ask(OTHER_KEY);
  expect(bases.status).toBe(200);
  expect(bases.body).toMatchObject([{ id: "appTwo", permission: "read" }]);
  const refused = await ask("patWrong");
  expect(refused.status).toBe(422);
  expect(refused.body.error).toMatchObject({
    code: "source_key_refused",
    message: "Authentication required",
  });
  const unknown = await call("POST", "/api/v1/source-bases", {
    token,
    body: { platform: "constructor", api_key: GOOD_KEY },
  });
  expect(unknown.body.error).toMatchObject({
    code: "invalid_request",
    message: expect.stringContaining("airtable"),
  });
});

test("a connected base starts syncing into a database of its own, whose credentials are read-only", async () => {
  const { token } = await newAccount();
  const created = await connect(token, { settings: { turbo: true } });
  expect(created.status).toBe(201);
  expect(created.body).toEqual({
    id: expect.stringMatching(/^bas_/),
    platform: "airtable",
    base_id: "appOne",
    name: "Inventory",
    state: "starting",
    indicator: {
      color: "green",
      reason: "The first sync is running",
      since: null,
      tables: [],
      next: "",
      next_at: null,
    },
    // Another setting changes nothing here.
    settings: expect.objectContaining({
      turbo: true,
      rapid: false,
      replica_reads: false,
      live: true,
      linked_records_as_text: false,
      lookups_as_text: false,
      pinned_names: false,
      alias_days: 7,
      own_names: [],
      muted_fields: [],
      link_views: false,
      history: false,
      history_days: 30,
      notify: false,
      attachment_views: false,
      own_attachment_urls: false,
      indexes: [],
      paused: false,
    }),
    selection: { new_tables: "copy", tables: [] },
    database: {
      id: expect.stringMatching(/^dat_/),
      name: expect.not.stringMatching(/inventory/i),
      schema: "public",
      host: expect.any(String),
      port: Number(new URL(api.control.serverUrl).port),
    },
    tables: [],
    sync: {
      kind: null,
      started_at: null,
      completed_at: null,
      duration_ms: null,
      lag_ms: null,
      progress: null,
    },
    sweep: null,
    error: null,
    failing_tables: [],
    schema_error: null,
    problems: [],
    issues: [],
    issue_count: 0,
    open_issue_count: 0,
    repairs: 0,
    live: null,
    budget: null,
  });
  expect(api.control.requested).toContain(created.body.id);
  expect((await call("GET", "/api/v1/bases", { token })).body).toEqual([created.body]);
  expect((await call("GET", `/api/v1/bases/${created.body.id}`, { token })).body).toEqual(created.body);

  const { body: credentials } = await call("GET", `/api/v1/bases/${created.body.id}/credentials`, { token });
  expect(credentials.psql).toBe(`psql '${credentials.url}'`);
  await using sql = connectAs(credentials.url);
  expect(await sql.db`select count(*)::int as n from _sync_meta`).toEqual([{ n: 1 }]);
  await expect(sql.db`create table mine (id int)`).rejects.toMatchObject({ severity: "ERROR" });
});

test("the same base is refused twice for one account, and accepted from another", async () => {
  const [one, two] = [await newAccount(), await newAccount()];
  const [first, second] = await Promise.all([connect(one.token), connect(one.token)]);
  expect([first.status, second.status].sort()).toEqual([201, 409]);
  expect((await connect(one.token)).body.error).toMatchObject({ code: "already_exists" });
  expect((await connect(two.token)).status).toBe(201);
  const left = await api.control.ctx.db`
    select d.id from databases as d left join bases as b on b.database_id = d.id where b.id is null`;
  expect(left).toEqual([]);
});

test("another account's base does not exist, for every call", async () => {
  const [owner, other] = [await newAccount(), await newAccount()];
  const { id } = (await connect(owner.token)).body;
  const calls: [string, string, unknown?][] = [
    ["GET", ""],
    ["PATCH", "", { turbo: true }],
    ["DELETE", ""],
    ["POST", "/sync"],
    ["GET", "/runs"],
    ["GET", "/credentials"],
    ["POST", "/credentials/rotate"],
  ];
  for (const [method, path, body] of calls) {
    const answer = await call(method, `/api/v1/bases/${id}${path}`, { token: other.token, body });
    expect([method, path, answer.status]).toEqual([method, path, 404]);
  }
  expect((await call("GET", "/api/v1/bases", { token: other.token })).body).toEqual([]);
  expect((await call("GET", `/api/v1/bases/${id}`, { token: owner.token })).body.settings.turbo).toBe(false);
  expect((await call("GET", "/api/v1/bases/bas_%00", { token: other.token })).status).toBe(404);
  const stolen = await connect(other.token, {
    destination: {
      kind: "existing",
      database_id: (await call("GET", `/api/v1/bases/${id}`, { token: owner.token })).body.database.id,
      schema: "mine",
    },
  });
  expect(stolen.status).toBe(404);
});

test("an invalid request is refused with the part that is wrong", async () => {
  const { token } = await newAccount();
  const { id } = (await connect(token)).body;
  const patch = (body: unknown) => call("PATCH", `/api/v1/bases/${id}`, { token, body });
  const wrong = [
    { answer: await connect(token, { base_id: 5 }), part: "base_id" },
    { answer: await connect(token, { settings: { turbo: "yes" } }), part: "turbo" },
    { answer: await connect(token, { destination: { kind: "elsewhere" } }), part: "destination" },
    { answer: await patch({ turboo: true }), part: "turboo" },
    { answer: await patch({ turbo: "true" }), part: "turbo" },
    { answer: await patch({}), part: "body" },
    {
      answer: await call("GET", `/api/v1/bases/${id}/runs?limit=0`, { token }),
      part: "query: Expected integer",
    },
  ];
  for (const { answer, part } of wrong) {
    expect([part, answer.status]).toEqual([part, 422]);
    expect(answer.body.error).toMatchObject({
      code: "invalid_request",
      message: expect.stringContaining(part),
    });
  }
  const broken = await consoleApp(api.control.ctx).handle(
    new Request("http://console/api/v1/bases", {
      method: "POST",
      body: "{nope",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    }),
  );
  expect([broken.status, (await broken.json()).error.message]).toEqual([422, "The body is not JSON"]);
});

test("each missing field is named once", async () => {
  const { token } = await newAccount();
  const { body } = await call("POST", "/api/v1/bases", { token, body: {} });
  for (const field of ["platform", "api_key", "base_id"]) {
    expect(body.error.message.split(`/${field}: `), field).toHaveLength(2);
  }
});

test("a body of another type, or of none, is refused with the type to send; without a token, with 401", async () => {
  const { token } = await newAccount();
  const app = consoleApp(api.control.ctx);
  const send = async (headers: Record<string, string>, body = '{"platform":"airtable","api_key":"x"}') => {
    const bytes = new TextEncoder().encode(body);
    const request = new Request("http://console/api/v1/source-bases", {
      method: "POST",
      body: bytes,
      headers,
    });
    const answer = await app.handle(request);
    return { status: answer.status, error: (await answer.json()).error };
  };
  const authorization = `Bearer ${token}`;
  const types = [undefined, "application/x-www-form-urlencoded", "text/plain", "multipart/form-data"];
  for (const type of types) {
    const { status, error } = await send({ authorization, ...(type && { "content-type": type }) });
    expect([type, status, error.code]).toEqual([type, 415, "unsupported_media_type"]);
    expect(error.message).toContain("content-type: application/json");
  }
  expect((await send({ "content-type": "text/plain" })).status).toBe(401);
  // Nothing is not a body of the wrong type.
  expect((await send({ authorization, "content-type": "text/plain" }, "")).status).toBe(422);
});

test("a body of 50,000 nested levels is refused at once, by name; without a token, like any other", async () => {
  const { token } = await newAccount();
  const app = consoleApp(api.control.ctx);
  const nested = `{"platform":${"[".repeat(50_000)}${"]".repeat(50_000)}}`;
  const send = async (headers: Record<string, string>, body: string) => {
    const answer = await app.handle(
      new Request("http://console/api/v1/source-bases", {
        method: "POST",
        body,
        headers: { "content-type": "application/json", ...headers },
      }),
    );
    return { status: answer.status, error: (await answer.json()).error };
  };
  const authorization = `Bearer ${token}`;
  const { status, error } = await send({ authorization }, nested);
  expect([status, error.code]).toEqual([422, "invalid_request"]);
  expect(error.message).toContain("in more than 20 levels");
  expect((await send({}, nested)).status).toBe(401);
});

test("a method that an address does not have is refused with those that it has", async () => {
  const answer = await call("PUT", "/api/v1/bases/bas_1", {});
  expect([answer.status, answer.headers.get("allow"), answer.body.error.code]).toEqual([
    405,
    "DELETE, GET, PATCH",
    "method_not_allowed",
  ]);
  expect((await call("PUT", "/api/v1/nope")).status).toBe(404);
});

test("settings change one by one, and pausing and resuming keep the others", async () => {
  const { token } = await newAccount();
  const { id } = (await connect(token)).body;
  const patch = async (body: unknown) => (await call("PATCH", `/api/v1/bases/${id}`, { token, body })).body;
  expect((await patch({ rapid: true })).settings).toMatchObject({ rapid: true, turbo: false });
  expect(await patch({ paused: true })).toMatchObject({
    state: "paused",
    settings: { rapid: true, paused: true },
  });
  expect((await call("POST", `/api/v1/bases/${id}/sync`, { token })).status).toBe(409);
  const asked = api.control.requested.length;
  expect(await patch({ paused: false, lookups_as_text: true })).toMatchObject({
    state: "starting",
    settings: { rapid: true, paused: false, lookups_as_text: true },
  });
  expect(api.control.requested.slice(asked)).toEqual([id]);
  expect((await call("POST", `/api/v1/bases/${id}/sync`, { token })).status).toBe(202);
});

test("attachment links can be enabled, and revoked if there are any", async () => {
  const { token } = await newAccount();
  const { id } = (await connect(token)).body;
  const path = `/api/v1/bases/${id}`;
  const revoke = () => call("POST", `${path}/attachment-links/revoke`, { token });
  const refused = await revoke();
  expect([refused.status, refused.body.error.code]).toEqual([409, "conflict"]);
  const changed = await call("PATCH", path, { token, body: { own_attachment_urls: true } });
  expect(changed.body.settings.own_attachment_urls).toBe(true);
  const asked = api.control.requested.length;
  const revoked = await revoke();
  expect([revoked.status, revoked.body.id]).toEqual([202, id]);
  expect(api.control.requested.slice(asked)).toEqual([id]);
});

test("a new API key is checked, and takes a base out of needs_attention", async () => {
  const { token } = await newAccount();
  const { id } = (await connect(token, { base_id: "appTwo" })).body;
  await recordRun(api.control.ctx.db, id, failed("source_key_refused"));
  const red = (await call("GET", `/api/v1/bases/${id}`, { token })).body;
  expect(red).toMatchObject({ state: "needs_attention", indicator: { color: "red" } });
  const patch = (api_key: string) => call("PATCH", `/api/v1/bases/${id}`, { token, body: { api_key } });
  expect((await patch("patWrong")).status).toBe(422);
  expect((await call("GET", `/api/v1/bases/${id}`, { token })).body.state).toBe("needs_attention");
  expect((await patch(OTHER_KEY)).body).toMatchObject({ state: "starting", indicator: { color: "green" } });
});

test("a key for other bases only is refused for this one, and nothing is created", async () => {
  const { token } = await newAccount();
  const before = await api.control.ctx.db`select count(*) from databases`;
  const answer = await connect(token, { api_key: OTHER_KEY });
  expect(answer.status).toBe(422);
  expect(answer.body.error).toMatchObject({
    code: "source_not_found",
    message: expect.stringContaining("appOne"),
  });
  expect(await api.control.ctx.db`select count(*) from databases`).toEqual(before);
});

test("progress, the last sync and the runs are shown as reported", async () => {
  const { token } = await newAccount();
  const { id } = (await connect(token)).body;
  const { db } = api.control.ctx;
  const startedAt = new Date(Date.now() - 5000);
  const table = { name: "items", source_name: "It\u0000ems \ud800" };
  await saveProgress(db, id, {
    kind: "first",
    started_at: startedAt.toISOString(),
    tables: [{ ...table, records_done: 100, records_estimate: null, done: false }],
  });
  const during = (await call("GET", `/api/v1/bases/${id}`, { token })).body;
  expect(during.sync).toMatchObject({ kind: "first", completed_at: null, lag_ms: null });
  expect(during.sync.progress.tables).toMatchObject([{ records_done: 100, source_name: "Items \ufffd" }]);

  const issue: IssueGroup = {
    ...{ kind: "value" as const, table: "items", column: "price", reason: "not a number", count: 101 },
    ...{ record_id: "rec1", value: '"x"', table_id: null, field_id: null },
  };
  await recordRun(db, id, {
    ...failed("source_timeout"),
    kind: "first",
    startedAt,
    completedAt: new Date(startedAt.getTime() + 2000),
    error: undefined,
    tables: [{ ...table, source_id: "tblOne", records: 250 }],
    issueCount: 101,
    issues: [issue],
  });
  const after = (await call("GET", `/api/v1/bases/${id}`, { token })).body;
  expect(after).toMatchObject({
    state: "active",
    issue_count: 101,
    open_issue_count: 101,
    tables: [{ name: "items", records: 250 }],
  });
  expect(after.issues).toEqual([issue]);
  expect(after.sync).toMatchObject({ kind: "first", duration_ms: 2000, progress: null });
  expect(after.sync.lag_ms).toBeGreaterThanOrEqual(5000);

  await recordRun(db, id, failed("source_timeout"));
  const failing = (await call("GET", `/api/v1/bases/${id}`, { token })).body;
  expect(failing).toMatchObject({
    state: "active",
    sync: { duration_ms: 2000 },
    indicator: { color: "red" },
  });
  const runs = (await call("GET", `/api/v1/bases/${id}/runs?limit=2`, { token })).body;
  expect(runs).toMatchObject([
    { kind: "sweep", completed_at: null, duration_ms: null, error: { code: "source_timeout" } },
    { kind: "first", started_at: about(startedAt), duration_ms: 2000, error: null },
  ]);
});

test("OpenAPI describes every call, without a page that loads anything", async () => {
  const { status, body } = await call("GET", "/openapi");
  expect(status).toBe(200);
  expect(body.openapi).toMatch(/^3\./);
  const routes = consoleApp(api.control.ctx)
    .routes.filter(({ path }) => path.startsWith("/api/v1/") && !path.includes("*"))
    .map(({ method, path }) => `${method} ${path.replaceAll(/:(\w+)/g, "{$1}")}`);
  const described = (await describedCalls()).map((one) => one.join(" "));
  expect(described.length).toBeGreaterThan(40);
  expect(described.sort()).toEqual([...new Set(routes)].sort());
});

test("health and readiness need no token, metrics are for this machine only; an unknown address is a plain 404", async () => {
  expect((await call("GET", "/healthz")).status).toBe(200);
  expect((await call("GET", "/readyz")).body).toEqual({ status: "ready" });
  expect((await call("GET", "/metrics")).status).toBe(404);
  expect((await call("GET", "/api/v1/nope")).body.error.code).toBe("not_found");
});

function failed(code: "source_key_refused" | "source_timeout") {
  return {
    kind: "sweep" as const,
    startedAt: new Date(),
    completedAt: null,
    seen: 0,
    inserted: 0,
    updated: 0,
    deleted: 0,
    requests: 1,
    waitMs: 0,
    error: { code, message: "It did not work" },
  };
}

test("a customer's own database is checked before a base is connected: every check, with its remedy", async () => {
  const { token } = await newAccount();
  const check = (url: string) =>
    call("POST", "/api/v1/destinations/check", { token, body: { url, schema: "mine" } });
  const { host } = new URL(inject("postgresUrl"));
  const wrong = await check(`postgres://nobody:there@${host}/postgres`);
  expect(wrong.status).toBe(200);
  expect(wrong.body).toEqual({
    is_usable: false,
    checks: [
      {
        check: "address",
        status: "problem",
        message: expect.stringContaining("nobody"),
        remedy: null,
      },
    ],
  });
  const known = await check("postgres://u:p@db.abcdefghijklmnop.supabase.co:6543/postgres");
  // No DNS lookup is made for that.
  expect(known.body).toMatchObject({
    is_usable: false,
    checks: [
      { check: "pooler", remedy: expect.stringContaining("db.abcdefghijklmnop.supabase.co on port 5432") },
    ],
  });
  expect((await check("no URL")).body).toMatchObject({
    checks: [{ status: "problem", message: expect.stringContaining("must have the form postgres://") }],
  });
});

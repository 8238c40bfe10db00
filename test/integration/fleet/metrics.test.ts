/** What the processes of a service count while they work, and whether `docs/metrics.md` describes it. */
import pino from "pino";
import { Registry } from "prom-client";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { createAccount } from "../../../core/control/accounts";
import { createBase } from "../../../core/control/bases";
import { createWorkspace } from "../../../core/control/budgets";
import { fleetMetrics } from "../../../core/control/fleet";
import { connectControl } from "../../../core/postgres";
import {
  applyRowImages,
  compileMapper,
  loadCatalog,
  mapRecords,
  takeReadVersion,
} from "../../../core/replica";
import { syncBase } from "../../../core/sync/engine";
import { asAdmin } from "../../support/admin";
import { cuttableProxy } from "../../support/cuttable-proxy";
import { controlDatabase } from "../../support/database";
import { testEngine } from "../../support/engine";
import { freePort } from "../../support/free-port";
import { documentedMetrics, readMetrics } from "../../support/metrics";
import { until } from "../../support/poll";
import { type Program, startProgram } from "../../support/program";
import { type ProxyStack, proxyStack } from "../../support/proxy-stack";
import { sourceRecord, sourceTable } from "../../support/source-records";

const ROLES = ["worker", "proxy", "console"] as const;
type Role = (typeof ROLES)[number];

describe("a running service", { timeout: 60_000 }, () => {
  let stack: ProxyStack;
  let ports: Record<Role, number>;
  const programs: Program[] = [];
  const page = (role: Role) => readMetrics(ports[role]);

  beforeAll(async () => {
    stack = await proxyStack({ UPSTREAM_TIMEOUT_MS: "1000" });
    const { config } = stack.ctx;
    ports = { worker: await freePort(), proxy: stack.proxy.port, console: await freePort() };
    const env = {
      DATABASE_URL: config.databaseUrl,
      REPLICA_URL: inject("clusterUrl"),
      SECRET_KEY: config.secretKey,
      UPSTREAMS: `api.airtable.com=${stack.sandbox.url}`,
      WORKER_PORT: String(ports.worker),
      CONSOLE_PORT: String(ports.console),
      CONSOLE_URL: `http://127.0.0.1:${ports.console}`,
    };
    for (const role of ["worker", "console"]) programs.push(startProgram(`apps/${role}/main.ts`, [], env));
    for (const program of programs) await program.says("started");
  }, 60_000);
  afterAll(async () => {
    for (const program of programs) await program[Symbol.asyncDispose]();
    await stack?.[Symbol.asyncDispose]();
  });

  /** Waits until a process has counted this. */
  const counted = (role: Role, name: string, labels: Record<string, string> = {}, least = 1) =>
    until(async () => ((await page(role)).sum(name, labels) ?? 0) >= least, {
      what: `${name}${JSON.stringify(labels)} of the ${role} is ${least}`,
      timeoutMs: 30_000,
      intervalMs: 100,
    });

  function people() {
    const { control } = stack.sandbox;
    const records = Array.from({ length: 150 }, (_, index) => ({ fields: { Name: `Person ${index}` } }));
    const fields = [{ name: "Name", type: "singleLineText" }];
    const sourceId = control.createBase({ name: "People", tables: [{ name: "People", fields, records }] });
    const [table] = control.dump(sourceId).tables;
    return { sourceId, ids: table!.records.map(({ id }) => id) };
  }

  test("a worker counts syncs, what they read, write and request, and how old their data may be", async () => {
    const { sourceId, ids } = people();
    await stack.connect(sourceId);
    await counted("worker", "basetide_syncs_total", { kind: "first", outcome: "completed" });
    await counted("worker", "basetide_syncs_total", { kind: "sweep", outcome: "completed" });
    const { control } = stack.sandbox;
    control.updateRecords(sourceId, "People", [{ id: ids[0]!, fields: { Name: "Ada" } }]);
    control.deleteRecords(sourceId, "People", [ids[1]!]);
    await counted("worker", "basetide_sync_rows_total", { change: "inserted" }, 150);
    await counted("worker", "basetide_sync_rows_total", { change: "updated" });
    await counted("worker", "basetide_sync_rows_total", { change: "deleted" });
    const now = await page("worker");
    expect(now.sum("basetide_sync_records_total")).toBeGreaterThanOrEqual(300);
    expect(now.sum("basetide_sync_requests_total", { kind: "sweep" }), "two pages each").toBeGreaterThan(3);
    expect(now.sum("basetide_sync_requests_total", { kind: "schema" })).toBeGreaterThan(0);
    expect(now.sum("basetide_quota_grants_total", { kind: "sync" })).toBeGreaterThan(4);
    expect(now.sum("basetide_quota_wait_seconds_count", { kind: "sync" })).toBeGreaterThan(4);
    expect(now.sum("basetide_worker_bases")).toBe(1);
    const lags = (kind: string) => now.sum("basetide_sync_lag_seconds_count", { kind });
    expect(lags("first"), "nothing was there before it").toBeUndefined();
    expect(lags("sweep")).toBe(now.sum("basetide_sync_duration_seconds_count", { kind: "sweep" }));
    const seconds = (name: string) => now.sum(`basetide_sync_${name}_seconds_sum`, { kind: "sweep" })!;
    expect(seconds("lag"), "since the one before began").toBeGreaterThan(seconds("duration"));
  });

  test("a live base's batches are counted as such", async () => {
    const { sourceId, ids } = people();
    const account = await createAccount(stack.ctx.db, {
      email: "live@example.org",
      password: "correct horse",
    });
    await createBase(stack.managed, account.id, {
      platform: "airtable",
      apiKey: stack.sandbox.key,
      sourceBaseId: sourceId,
    });
    await counted("worker", "basetide_sync_requests_total", { kind: "payloads" });
    stack.sandbox.control.updateRecords(sourceId, "People", [{ id: ids[0]!, fields: { Name: "Ada" } }]);
    await counted("worker", "basetide_syncs_total", { kind: "live", outcome: "completed" });
    await counted("worker", "basetide_sync_lag_seconds_count", { kind: "live" });
  });

  test("a proxy counts by class, and what the source refuses or leaves unanswered", async () => {
    const { sourceId } = people();
    await stack.connectUnchecked(sourceId);
    const before = await page("proxy");
    const read = () =>
      fetch(`${stack.endpoint}/v0/${sourceId}/People`, {
        headers: { authorization: `Bearer ${stack.sandbox.key}` },
      });
    expect((await read()).status).toBe(200);
    const { control } = stack.sandbox;
    control.addFault({ base: sourceId, kind: "hang", count: 1 });
    const late = await read();
    expect(late.status).toBe(504);
    expect(late.headers.get("x-request-id")).toMatch(/^[\da-f-]{36}$/);
    // With the refused one, as many as may be over the base's limit.
    for (let call = 0; call < 2; call++) expect((await read()).status).toBe(200);
    control.addFault({ base: sourceId, kind: "rate_limited", count: 1 });
    expect((await read()).status).toBe(429);
    const now = await page("proxy");
    const more = (...of: Parameters<typeof now.sum>) => (now.sum(...of) ?? 0) - (before.sum(...of) ?? 0);
    expect(more("basetide_proxy_request_seconds_count", { class: "read" })).toBe(5);
    expect(more("basetide_proxy_added_seconds_count", { class: "read" })).toBe(5);
    expect(more("basetide_proxy_upstream_errors_total", { kind: "timeout" })).toBe(1);
    expect(more("basetide_quota_blocks_total", { reason: "rate_limited" })).toBe(1);
    expect(more("basetide_quota_grants_total", { kind: "client" })).toBe(4);
    expect(more("basetide_quota_grants_total", { kind: "unproven" })).toBe(1);
  });

  test("a proxy counts the writes that a replica was unavailable for, and their repair", async () => {
    const { sourceId } = people();
    const { base, sync } = await stack.connect(sourceId);
    await sync();
    const allow = (isAllowed: boolean) =>
      asAdmin(async (admin) => {
        await admin.unsafe(`alter database ${base.database.name} allow_connections ${isAllowed}`);
        if (!isAllowed)
          await admin`select pg_terminate_backend(pid) from pg_stat_activity where datname = ${base.database.name}`;
      });
    const before = await page("proxy");
    const more = (name: string, labels?: Record<string, string>) =>
      until(async () => ((await page("proxy")).sum(name, labels) ?? 0) - (before.sum(name, labels) ?? 0), {
        what: `${name} has grown`,
        timeoutMs: 30_000,
        intervalMs: 100,
      });
    await allow(false);
    const written = await fetch(`${stack.endpoint}/v0/${sourceId}/People`, {
      method: "POST",
      headers: { authorization: `Bearer ${stack.sandbox.key}`, "content-type": "application/json" },
      body: '{"records":[{"fields":{"Name":"Ada"}}]}',
    }).finally(() => allow(true));
    expect(written.status).toBe(200);
    // Twice if it was late before it failed: the table has it once.
    expect(await more("basetide_proxy_repairs_recorded_total")).toBeLessThanOrEqual(2);
    await more("basetide_proxy_repairs_done_total");
    expect(await more("basetide_proxy_request_seconds_count", { class: "write" })).toBe(1);
  });

  test("a console shows the fleet, and its call budgets, without any names", async () => {
    const { managed, ctx, sandbox } = stack;
    const account = await createAccount(ctx.db, { email: "b@example.org", password: "correct horse" });
    const { sourceId } = people();
    const { id } = await createWorkspace(managed, account.id, {
      name: "Small",
      plan: "custom",
      callsPerMonth: 10_000,
      reserve: 1000,
    });
    await createBase(managed, account.id, {
      platform: "airtable",
      apiKey: sandbox.key,
      sourceBaseId: sourceId,
      workspaceId: id,
      settings: { live: false },
    });
    await ctx.db`
      insert into quota_calls (key, month, sync, client)
      values (${`airtable:${sourceId}`}, date_trunc('month', now() at time zone 'UTC')::date, 500, 4500)
      on conflict (key, month) do update set sync = quota_calls.sync + 500, client = quota_calls.client + 4500`;
    await counted("console", "basetide_fleet_month_calls", { kind: "client" }, 4500);
    const now = await page("console");
    expect(now.sum("basetide_fleet_month_calls", { kind: "sync" })).toBeGreaterThanOrEqual(500);
    expect(now.sum("basetide_fleet_budget_used_ratio")).toBeGreaterThanOrEqual(0.5);
    expect(now.sum("basetide_fleet_budget_used_ratio")).toBeLessThan(0.6);
    // In the first days of a month, such use would exceed the cap.
    const states = ["inside", "forecast"].map((state) => now.sum("basetide_fleet_workspaces", { state })!);
    expect(states.toSorted()).toEqual([0, 1]);
    expect(now.sum("basetide_fleet_workers")).toBe(1);
    expect(now.sum("basetide_fleet_bases")).toBeGreaterThan(1);
  });

  test("docs/metrics.md has every metric, with its type, labels and process", async () => {
    const pages = await Promise.all(ROLES.map(async (role) => [role, await page(role)] as const));
    const documented = documentedMetrics();
    for (const [role, { types }] of pages) {
      const said = documented.filter(({ of }) => of.includes(role)).map(({ name, type }) => [name, type]);
      expect([...types].toSorted(), role).toEqual(said.toSorted());
    }
    const allowed = new Map(documented.map(({ name, labels }) => [name, ["role", ...labels]]));
    for (const [role, { samples, types }] of pages) {
      for (const { name, labels } of samples) {
        const metric = types.has(name) ? name : name.replace(/_(bucket|sum|count)$/, "");
        const known = [...allowed.get(metric)!, ...(types.get(metric) === "histogram" ? ["le"] : [])];
        expect(
          Object.keys(labels).filter((label) => !known.includes(label)),
          `${role}: ${name}`,
        ).toEqual([]);
      }
    }
  });
});

test("images of a sync that lose to a write that was shown meanwhile are counted", async () => {
  const { source, sync, input, rows, replica } = await testEngine();
  const table = sourceTable("tblP", "People", { Name: "text" });
  const person = (name: string) => sourceRecord("rec1", { fld0: name });
  const { records } = source.add(table, [person("Ada"), sourceRecord("rec2", { fld0: "Bob" })]);
  await sync();
  const live = (await loadCatalog(replica.replica)).get("tblP")!;
  records.set("rec1", person("Adele"));
  const lost: number[] = [];
  const written = person("Ida");
  // The page has its read version by now.
  source.before = async (call) => {
    if (!call.startsWith("list")) return;
    records.set("rec1", written);
    const image = mapRecords(compileMapper(live.spec), [written], []);
    const readVersion = await takeReadVersion(replica.replica);
    const images = { epoch: null, readVersion, rows: image, gone: [], issues: [], records: [written] };
    expect(await applyRowImages(replica.replica, live, images)).toMatchObject({ lost: [] });
  };
  const { reader, ...of } = input();
  await syncBase({ ...of, reader: { ...reader, onLost: (images) => lost.push(images) } });
  expect(lost).toEqual([1]);
  expect(await rows()).toMatchObject([{ name: "Ida" }, { name: "Bob" }]);
});

test("values that the control plane cannot provide are left out, rather than 0: workers still exist", async () => {
  await using database = await controlDatabase();
  await using line = await cuttableProxy(database.url);
  const db = connectControl(line.url);
  try {
    const metrics = new Registry();
    fleetMetrics({ db, metrics, log: pino({ level: "silent" }) });
    line.cut();
    const text = await metrics.metrics();
    expect(text).toContain("# TYPE basetide_fleet_workers gauge");
    expect(text.match(/^basetide_\S+ .*$/gm)).toBeNull();
  } finally {
    await db.end({ timeout: 0 });
  }
});

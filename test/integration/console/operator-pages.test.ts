import { afterAll, beforeAll, expect, test } from "vitest";
import { consoleApp } from "../../../apps/console/app";
import type { Account } from "../../../core/control/accounts";
import { createBase } from "../../../core/control/bases";
import { reportWorker } from "../../../core/control/fleet";
import { fleetHistory } from "../../../core/control/history";
import { createRequest, getDatabase } from "../../../core/control/placement";
import { openQueue } from "../../../core/queue";
import { asker, authByHeader } from "../../support/console";
import { GOOD_KEY, type TestControl, testControl } from "../../support/control-support";
import { type ReplicaServer, replicaServer } from "../../support/replica-server";

let control: TestControl;
let replicas: ReplicaServer;
let ask: ReturnType<typeof asker>;
let operator: Account;
let customer: Account;

beforeAll(async () => {
  replicas = await replicaServer();
  control = await testControl(replicas.clusterUrl);
  const { ctx } = control;
  // The queue creates its tables.
  await (await openQueue(ctx, ctx.config.databaseUrl!, { isWorker: false })).close();
  ask = asker(consoleApp(ctx, authByHeader()));
  operator = { ...(await control.addAccount("op@example.com")), isOperator: true };
  customer = await control.addAccount("customer@example.com");
});
afterAll(async () => {
  await control?.[Symbol.asyncDispose]();
  await replicas?.[Symbol.asyncDispose]();
});

test("other accounts have no admin page, and cannot act on one", async () => {
  const { id } = await createRequest(control.ctx.db, customer.id, { kind: "other", message: "Let me in" });
  for (const path of ["", "/requests", "/clusters", "/accounts", "/bases/bas_1"]) {
    const answer = await ask(`/operator${path}`, { account: customer });
    expect([path, answer.status]).toEqual([path, 404]);
    expect(answer.text).not.toContain('href="/operator"');
    expect((await ask(`/operator${path}`)).headers.get("location")).toMatch(/^\/sign-in/);
  }
  const forms: [string, Record<string, string>][] = [
    [`/requests/${id}`, { decision: "approve" }],
    ["/clusters", { name: "mine", region: "x", url: control.ctx.config.databaseUrl! }],
    ["/clusters/drain", { name: "default" }],
  ];
  for (const [path, form] of forms) {
    expect((await ask(`/operator${path}`, { account: customer, form })).status).toBe(404);
  }
  expect(await control.ctx.db`select state from requests where id = ${id}`).toEqual([{ state: "open" }]);
  expect(await control.ctx.db`select name, state from clusters`).toEqual([
    { name: "default", state: "active" },
  ]);
});

test("the fleet page lists quarantined work, with the command that retries it; and nothing if there is none", async () => {
  const { db } = control.ctx;
  expect((await ask("/operator", { account: operator })).text).not.toContain("Quarantined");
  await db`
    insert into task_attempts (task, subject, unended, due_at) values
      ('deletion', 'bas_<b>one', 3, now()), ('move', 'dbs_two', 3, now()), ('stray', 'dbs_not', 2, now())`;
  const { text } = await ask("/operator", { account: operator });
  expect(text).toContain("Quarantined");
  expect(text).toContain("bun run operator base delete bas_&lt;b>one --force");
  expect(text).toContain("bun run operator base retry dbs_two");
  expect(text).not.toContain("dbs_not");
  expect((await ask("/operator", { account: customer })).status).toBe(404);
  await db`delete from task_attempts`;
});

test("the fleet page lists unhealthy bases with owner, cause and since when; each leads to a page without rows", async () => {
  const { ctx } = control;
  const base = await createBase(ctx, customer.id, {
    platform: "airtable",
    apiKey: GOOD_KEY,
    sourceBaseId: "appOne",
  });
  const { db } = ctx;
  expect((await ask("/operator", { account: operator })).text).toContain("Every base works.");
  await db`
    update bases set state = 'needs_attention', name = 'A <b>base', error_code = 'source_key_refused',
      error_message = 'Wrong key', error_since = now() - interval '14 minutes' where id = ${base.id}`;
  await db`
    insert into alert_states (base_id, kind, state, since)
    values (${base.id}, 'needs_attention', 'on', now() - interval '12 minutes')`;
  const { text } = await ask("/operator", { account: operator });
  expect(text).toMatch(
    /A &lt;b>base[\s\S]*customer@example\.com[\s\S]*Needs attention[\s\S]*Wrong key[\s\S]*14 min/,
  );
  expect(text).toContain(`href="/operator/bases/${base.id}"`);
  const page = await ask(`/operator/bases/${base.id}`, { account: operator });
  expect(page.status).toBe(200);
  expect(page.text).toContain("Wrong key");
  expect((await ask(`/operator/bases/${base.id}`, { account: customer })).status).toBe(404);
  // A sync that left a table out is not shown as a complete one, and what a server said is not shown.
  await db`
    insert into sync_runs (base_id, kind, started_at, completed_at, seen, inserted, updated, deleted, requests, wait_ms,
      error_code, error_message)
    values (${base.id}, 'sweep', now(), now(), 1, 0, 0, 0, 1, 0, 'replica_unavailable', 'relation "secret" is locked')`;
  const partial = await ask(`/operator/bases/${base.id}`, { account: operator });
  expect(partial.text).toContain('<span class="badge yellow">Without some tables</span>');
  expect(partial.text).not.toContain("secret");
  expect((await ask("/operator/bases/bas_none", { account: operator })).status).toBe(404);
  // A base that waits for its budget lags on purpose.
  await db`update bases set state = 'active', error_code = null, error_message = null, error_since = null,
    sync_started_at = now() - interval '1 hour', rests_until = now() + interval '1 hour' where id = ${base.id}`;
  expect((await ask("/operator", { account: operator })).text).toContain("no base lags");
  await db`update bases set rests_until = null where id = ${base.id}`;
  expect((await ask("/operator", { account: operator })).text).not.toContain("no base lags");
  await db`delete from bases where id = ${base.id}`;
});

test("the fleet's charts show lag, calls and outages of the last 24 hours", async () => {
  const { ctx } = control;
  const { db } = ctx;
  const base = await createBase(ctx, customer.id, {
    platform: "airtable",
    apiKey: GOOD_KEY,
    sourceBaseId: "appTwo",
  });
  await db`
    insert into base_days (base_id, day, lag_p50_ms, lag_max_ms, changed, issues)
    select ${base.id}, day::date, array_fill(1000::real, array[24]), array_fill(61000::real, array[24]),
      array_fill(3, array[24]), array_fill(0, array[24])
    from generate_series(current_date - 1, current_date, interval '1 day') as day
    on conflict do nothing`;
  await db`
    insert into quota_days (key, day, sync, client)
    select 'airtable:appFleet', day::date, array_fill(5, array[24]), array_fill(2, array[24])
    from generate_series(current_date - 1, current_date, interval '1 day') as day`;
  await db`
    insert into base_periods (base_id, kind, label, began_at, ended_at)
    values (${base.id}, 'outage', 'Airtable is away', now() - interval '3 hours', now() - interval '2 hours')`;
  const hours = await fleetHistory(db, new Date());
  expect(hours).toHaveLength(24);
  const isExpected = ({ p50Ms, maxMs, changed }: (typeof hours)[number]) =>
    p50Ms === 1000 && maxMs === 61_000 && changed === 3;
  expect(hours.every(isExpected)).toBe(true);
  expect(hours.every(({ sync, client }) => sync === 5 && client === 2)).toBe(true);
  expect(Math.max(...hours.map(({ outages }) => outages))).toBe(1);
  expect(hours[0]!.outages).toBe(0);
  const { text } = await ask("/operator", { account: operator });
  expect(text).toContain("Median 1.0 s, at most 1 min 1 s");
  expect(text).toContain("Calls to Airtable per hour: 168 in all");
  await db`delete from bases where id = ${base.id}`;
  await db`delete from quota_days where key = 'airtable:appFleet'`;
  const { text: quiet } = await ask("/operator", { account: operator });
  // Nothing is claimed about hours that were not measured.
  expect(quiet.match(/Collecting: each hour is added when it is over\./g)).toHaveLength(3);
  expect(quiet).not.toMatch(/None in these hours|nothing changed/i);
});

test("the fleet page shows the running workers, their leases, and the silent ones", async () => {
  const { db } = control.ctx;
  const worker = { id: "w1", host: "alpha", pid: 12, startedAt: new Date(), bases: 41, capacity: 200 };
  await reportWorker(db, worker);
  await reportWorker(db, { ...worker, id: "w2", host: "beta" });
  await db`update processes set seen_at = now() - interval '1 minute' where id = 'w2'`;
  const { text } = await ask("/operator", { account: operator });
  expect(text).toMatch(/Running workers<\/dt><dd>1<\/dd>/);
  expect(text).toContain("41 of at most 200 bases");
  expect(text).toMatch(/Running[\s\S]*alpha[\s\S]*Silent[\s\S]*beta/);
  // On a phone a row is a block: each value has its label.
  expect(text).toContain('<td class="number" data-label="Bases">41</td>');
});

test("a request is approved and denied with a message to the customer, who can read it", async () => {
  const { ctx } = control;
  const base = await createBase(ctx, customer.id, {
    platform: "airtable",
    apiKey: GOOD_KEY,
    sourceBaseId: "appOne",
  });
  const sent = await ask("/requests", {
    account: customer,
    form: { kind: "writable", region: "", database: base.database.id, message: "<b>please</b>" },
  });
  expect(sent.headers.get("location")).toBe("/requests");
  const desk = (await ask("/operator/requests", { account: operator })).text;
  expect(desk).toContain("&lt;b>please");
  const [, id] = /action="\/operator\/requests\/(req_\w+)"(?:(?!<form)[\s\S])*?/.exec(
    desk.slice(desk.indexOf("A writable database")),
  )!;
  const decided = await ask(`/operator/requests/${id}`, {
    account: operator,
    form: { decision: "approve", answer: "Mind the gap" },
  });
  expect(decided.headers.get("location")).toBe("/operator/requests");
  expect(await getDatabase(ctx.db, base.database.id)).toMatchObject({ isWritable: true });
  expect((await ask("/requests", { account: customer })).text).toContain("Mind the gap");
  const again = await ask(`/operator/requests/${id}`, { account: operator, form: { decision: "deny" } });
  expect(again.status).toBe(409);
  expect(again.text).toContain("already approved");
  expect((await ask(`/bases/${base.id}/connect`, { account: customer })).text).toContain(
    "create your own tables and views",
  );
});

test("an invalid form shows the reason and keeps the input", async () => {
  const wrong = await ask("/requests", {
    account: customer,
    form: { kind: "region", region: "the moon!", database: "", message: "keep me" },
  });
  expect(wrong.status).toBe(422);
  expect(wrong.text).toContain("such as eu-central-1");
  expect(wrong.text).toContain('value="the moon!"');
  expect(wrong.text).toContain(">keep me</textarea>");
  const cluster = await ask("/operator/clusters", {
    account: operator,
    form: { name: "far", region: "eu-west-1", url: "postgres://a:s3cret@127.0.0.1:1/x", public_port: "" },
  });
  expect(cluster.status).toBe(409);
  expect(cluster.text).toContain('value="far"');
  expect(cluster.text).not.toContain("s3cret");
});

test("a cluster is added, gets databases, and is drained", async () => {
  const { ctx } = control;
  const added = await ask("/operator/clusters", {
    account: operator,
    form: {
      name: "second",
      region: "EU-West-1",
      url: ctx.config.replicaUrl!,
      public_host: "db.example.com",
      public_port: "6432",
    },
  });
  expect(added.headers.get("location")).toBe("/operator/clusters");
  const list = (await ask("/operator/clusters", { account: operator })).text;
  expect(list).toContain("db.example.com:6432");
  expect(list).toContain("eu-west-1");
  await ask("/operator/clusters/drain", { account: operator, form: { name: "second" } });
  expect(await ctx.db`select state from clusters where name = 'second'`).toEqual([{ state: "draining" }]);
  expect((await ask("/operator/accounts", { account: operator })).text).toContain("customer@example.com");
});

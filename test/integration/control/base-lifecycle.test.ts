/** Bases are deleted, paused and moved at any moment of a sync, and leave nothing behind. */
import pino from "pino";
import { Registry } from "prom-client";
import { afterAll, afterEach, beforeAll, expect, inject, test } from "vitest";
import { moveBase } from "../../../core/control/base-move";
import type { MoveContext } from "../../../core/control/base-move/move-base";
import {
  type Base,
  deleteBase,
  finishDeletions,
  getBase,
  listBases,
  pause,
  readSelectable,
  replicaTarget,
  resume,
  setSelection,
} from "../../../core/control/bases";
import { quotaKeyOf } from "../../../core/control/budgets";
import {
  addCluster,
  createHostedDatabase,
  createSqlUser,
  databaseCredentials,
  getDatabase,
  listSqlUsers,
} from "../../../core/control/placement";
import { sqlUserCredentials } from "../../../core/control/placement/sql-users";
import { createSyncHost } from "../../../core/control/sync-host";
import { CallCounter, createRateLimiter } from "../../../core/limiter";
import {
  applyRowImages,
  compileMapper,
  loadAliases,
  loadCatalog,
  mapRecords,
  openReplica,
  takeReadVersion,
} from "../../../core/replica";
import { holdLease, type SyncContext, syncMetrics } from "../../../core/sync/lease";
import { BudgetWatch } from "../../../core/sync/pacing";
import { asAdmin } from "../../support/admin";
import { canLogIn } from "../../support/can-log-in";
import type { SourceDump } from "../../support/compare-to-source";
import { expectEqualToSource } from "../../support/equal-to-source";
import { type Fleet, startFleet } from "../../support/fleet";
import { operate as operateHere, operatorEnv } from "../../support/operator";
import { until } from "../../support/poll";

let fleet: Fleet;
beforeAll(async () => {
  fleet = await startFleet({
    sandbox: { settings: { rateLimitOff: true } },
    env: { SCHEMA_POLL_SECONDS: "3600" },
  });
  const { ctx } = fleet;
  await addCluster(ctx, { name: "second", region: "eu-west-1", adminUrl: inject("clusterUrl") });
});
afterAll(() => fleet?.[Symbol.asyncDispose]());
// What a failed test has left would keep the worker busy during the next ones.
afterEach(async () => {
  for (const base of await listBases(fleet.ctx.db)) await deleteBase(fleet.ctx, base);
});

/** The names of the cluster that the base is on, and of the one that it can move to. */
async function clustersOf(base: Base): Promise<{ here: string; there: string }> {
  const [row] = await fleet.ctx.db<{ name: string }[]>`
    select c.name from clusters as c join databases as d on d.cluster_id = c.id where d.id = ${base.database.id}`;
  return { here: row!.name, there: row!.name === "second" ? "default" : "second" };
}

const mover = (): MoveContext => ({ ...fleet.ctx, limiter: createRateLimiter(fleet.ctx) });
const generate = (records: number, seed: number) =>
  fleet.sandbox.control.generate({ records, tables: 2, seed });

/** Everything in the control plane, the queue and the server that belongs to a base, by location. */
async function remains(base: Base): Promise<Record<string, number>> {
  const { db } = fleet.ctx;
  const { role } = await getDatabase(db, base.database.id).catch(() => ({ role: "none" }));
  const key = quotaKeyOf(base);
  const [row] = await db<Record<string, number>[]>`
    select (select count(*)::int from bases where id = ${base.id}) as bases,
      (select count(*)::int from databases where id = ${base.database.id}) as databases,
      (select count(*)::int from pg_database where datname = ${base.database.name}) as real_databases,
      (select count(*)::int from pg_roles where rolname = ${role}) as roles,
      (select count(*)::int from pgboss.job where singleton_key = ${base.id}) as jobs,
      (select count(*)::int from sync_runs where base_id = ${base.id}) as runs,
      (select count(*)::int from schema_changes where base_id = ${base.id}) as schema_changes,
      (select count(*)::int from quota_calls where key = ${key})
        + (select count(*)::int from quota_blocks where key = ${key})
        + (select count(*)::int from quota_minutes where key = ${key}) as quota`;
  return Object.fromEntries(Object.entries(row!).filter(([, count]) => count > 0));
}

/** Runs a command of the operator's command line. */
async function operate(...args: string[]) {
  const { config } = fleet.ctx;
  const { code, out, err } = await operateHere(args, {
    ...operatorEnv(config),
    REPLICA_URL: inject("clusterUrl"),
    UPSTREAMS: Object.entries(config.upstreams)
      .map(([host, address]) => `${host}=${address}`)
      .join(","),
    UPSTREAM_TIMEOUT_MS: "1000",
  });
  expect([code, err]).toEqual([0, ""]);
  return JSON.parse(out);
}

test("a base that is deleted at any moment of its first sync leaves nothing behind", {
  timeout: 60_000,
}, async () => {
  const bases = await Promise.all([1, 2, 3, 4].map((seed) => fleet.connect(generate(900, seed))));
  const roles = await Promise.all(
    bases.map(async (base) => (await getDatabase(fleet.ctx.db, base.database.id)).role),
  );
  const progress = (base: Base) =>
    until(
      async () => {
        const now = await getBase(fleet.ctx.db, base.id);
        return (now.progress?.tables.reduce((sum, table) => sum + table.records_done, 0) ?? 0) > 0;
      },
      { what: "the first records are read" },
    );
  await Promise.all(
    bases.map(async (base, index) => {
      // Immediately, with its first page, in the middle, and during a sweep.
      if (index === 1) await progress(base);
      if (index === 2) await progress(base).then(() => Bun.sleep(700));
      if (index === 3) await fleet.synced(base.id);
      await deleteBase(fleet.ctx, base);
      expect(await remains(base)).toEqual({});
    }),
  );
  expect(await fleet.ctx.db`select rolname from pg_roles where rolname = any (${roles})`).toEqual([]);
  await until(() => fleet.workers[0]!.worker.busy === 0, { what: "the worker releases them" });
  for (const base of bases) expect(await remains(base)).toEqual({});
});

test("a lease whose replica is removed ends without an error", { timeout: 30_000 }, async () => {
  await using quiet = await startFleet({ workers: 0, sandbox: { settings: { rateLimitOff: true } } });
  const { ctx, sandbox } = quiet;
  const said: string[] = [];
  const callCounter = new CallCounter(ctx);
  const host = createSyncHost(ctx);
  const held: SyncContext = {
    ...ctx,
    log: pino({ level: "info" }, { write: (line: string) => void said.push(line) }),
    limiter: createRateLimiter(ctx),
    syncMetrics: syncMetrics(new Registry()),
    host,
    budgetWatch: new BudgetWatch({ log: ctx.log, host, callCounter }),
    callCounter,
  };
  const base = await quiet.connect(sandbox.control.generate({ records: 400, tables: 2, seed: 11 }));
  const signal = new AbortController().signal;
  const lease = holdLease(held, base.id, new Map(), { stop: signal, kill: signal });
  await until(async () => (await getBase(ctx.db, base.id)).progress, { what: "the sync has begun" });
  // Without the fence of a deletion: the worst case.
  await ctx.db`update bases set state = 'deleting' where id = ${base.id}`;
  await asAdmin((admin) => admin.unsafe(`drop database ${base.database.name} with (force)`));
  await expect(lease).resolves.toBeNull();
  expect(said).toEqual([]);
  await deleteBase(ctx, base);
});

test("a base that is paused during a sync stops at once, stays readable, and continues when it is resumed", {
  timeout: 60_000,
}, async () => {
  const { ctx } = fleet;
  const { id } = await fleet.connect(generate(700, 21), { turbo: true });
  const base = await fleet.synced(id);
  await pause(ctx, base);
  await until(() => fleet.workers[0]!.worker.busy === 0, { what: "the lease ends" });
  const reader = await fleet.reader(base);
  expect(
    (await reader`select count(*)::int as n from pg_tables where schemaname = 'public'`)[0]!.n,
  ).toBeGreaterThan(2);
  await resume(ctx, base);
  await expectEqualToSource(fleet, await fleet.synced(id));
  await deleteBase(ctx, base);
});

test("a base moves to another cluster while it is read and written, and leaves nothing on the old one", {
  timeout: 60_000,
}, async () => {
  const { ctx, sandbox } = fleet;
  // No record depends on another: only the written ones change.
  const sourceId = sandbox.control.createBase({
    name: "Plain",
    tables: [
      {
        name: "Notes",
        fields: [{ name: "Text", type: "singleLineText" }],
        records: Array.from({ length: 350 }, (_, index) => ({ fields: { Text: `note ${index}` } })),
      },
    ],
  });
  const { id } = await fleet.connect(sourceId);
  await fleet.synced(id);
  // Only the move itself reads the source: nothing else repairs what it misses.
  const base = await pause(ctx, await getBase(ctx.db, id));
  await until(() => fleet.workers[0]!.worker.busy === 0, { what: "the lease ends" });
  const old = await databaseCredentials(ctx, await getDatabase(ctx.db, base.database.id));
  const as = { ...ctx, actor: { kind: "user", name: "ada@example.org" } as const };
  const oldUser = await createSqlUser(as, await getDatabase(ctx.db, base.database.id), "Metabase");
  const oldReplica = openReplica(await replicaTarget(ctx, base));
  const oldReader = await fleet.reader(base);
  const [table] = sandbox.control.dump(sourceId).tables;

  /** As a client writes through a proxy that has cached the location of the base before the move. */
  async function writeToOld(recordId: string, text: string): Promise<void> {
    const readVersion = await takeReadVersion(oldReplica);
    sandbox.control.updateRecords(sourceId, table!.id, [{ id: recordId, fields: { Text: text } }]);
    const live = (await loadCatalog(oldReplica)).get(table!.id)!;
    const record = sandbox.control.dump(sourceId).tables[0]!.records.find((one) => one.id === recordId)!;
    const rows = mapRecords(compileMapper(live.spec), [record], []);
    await applyRowImages(oldReplica, live, {
      epoch: null,
      readVersion,
      rows,
      gone: [],
      issues: [],
      records: [record],
    });
  }

  let steps = 0;
  const { there } = await clustersOf(base);
  const moving = moveBase(mover(), id, there, {
    signal: new AbortController().signal,
    graceMs: 1500,
    onProgress: () => void steps++,
  });
  await until(() => steps > 2, { what: "the new replica's first sync has begun" });
  await expect(moveBase(mover(), id, there, { signal: new AbortController().signal })).rejects.toMatchObject({
    code: "conflict",
    message: expect.stringContaining("being moved"),
  });
  await writeToOld(table!.records[0]!.id, "written meanwhile");
  await until(async () => (await getBase(ctx.db, id)).database.id !== base.database.id, {
    what: "the base is on the other cluster",
    timeoutMs: 30_000,
  });
  expect(await oldReader`select count(*) as n from _sync_meta`).toHaveLength(1);
  await writeToOld(table!.records[1]!.id, "written late");
  const moved = await moving;
  await oldReplica.close();

  expect(moved.database.id).not.toBe(base.database.id);
  const database = await getDatabase(ctx.db, moved.database.id);
  expect(await databaseCredentials(ctx, database)).not.toEqual(old);
  const [user, ...others] = await listSqlUsers(ctx.db, database.id);
  expect([user?.name, user?.createdBy, others]).toEqual(["Metabase", "ada@example.org", []]);
  expect(await canLogIn((await sqlUserCredentials(ctx, database, user!)).url)).toBe(true);
  await expectEqualToSource(fleet, moved);
  expect(await ctx.db`select from pg_roles where rolname = ${oldUser.role}`).toEqual([]);
  expect(await ctx.db`select from pg_database where datname = ${base.database.name}`).toEqual([]);
  expect(await ctx.db`select from pg_roles where rolname = ${old.user}`).toEqual([]);
  expect(await ctx.db`select from databases where id = ${base.database.id}`).toEqual([]);
  expect(await ctx.db`select from bases where move_database_id is not null`).toEqual([]);
  await resume(ctx, moved);
  await expectEqualToSource(fleet, await fleet.synced(id));
  await deleteBase(ctx, moved);
  expect(await remains(moved)).toEqual({});
});

test.each([false, true])(
  "a moved base keeps its names and old names, its selection and its views (pinned names: %s)",
  {
    timeout: 60_000,
  },
  async (pinnedNames) => {
    const { ctx, sandbox } = fleet;
    const field = (name: string, type = "singleLineText") => ({ name, type });
    const sourceId = sandbox.control.createBase({
      name: "Named",
      tables: [
        {
          name: "Papers",
          fields: [field("Title"), field("State"), field("Secret"), field("Files", "multipleAttachments")],
          records: [{ fields: { Title: "one", State: "open", Secret: "planted" } }],
        },
      ],
    });
    const [papers] = (sandbox.control.dump(sourceId) as unknown as SourceDump).tables;
    sandbox.control.updateRecords(sourceId, "Papers", [
      {
        id: papers!.records[0]!.id,
        fields: { Files: [{ url: "https://files.example/a", filename: "a.txt" }] },
      },
    ]);
    const secret = papers!.fields.find(({ name }) => name === "Secret")!.id;
    const { id } = await fleet.connect(sourceId, { paused: true, pinnedNames, attachmentViews: true });
    const asked = {
      newTables: "copy",
      tables: { [papers!.id]: { copied: true, fields: { [secret]: "omitted" } } },
    } as const;
    const unsynced = await getBase(ctx.db, id);
    await setSelection(ctx, unsynced, asked, await readSelectable(ctx, unsynced));
    await resume(ctx, await getBase(ctx.db, id));
    const base = await fleet.synced(id);
    sandbox.control.renameField(sourceId, "Papers", "State", "Status");
    sandbox.control.renameTable(sourceId, "Papers", "Articles");
    await ctx.db`update bases set schema_check_requested_at = now() where id = ${id}`;
    const isChecked = async () =>
      (await ctx.db`select from bases where id = ${id} and schema_check_requested_at is null`).length === 1;
    await until(isChecked, { what: "the schema is checked", timeoutMs: 30_000 });
    const [table, column] = pinnedNames ? ["papers", "state"] : ["articles", "status"];
    // What programs rely on: names, and old names for the rest of their time.
    const seen = async () => {
      const now = await getBase(ctx.db, id);
      const reader = await fleet.reader(now);
      const [row] = await reader`select * from papers`;
      const [file] = await reader`select filename from ${reader(`${table}__files`)}`;
      const [current] = await reader`select * from ${reader(table!)}`;
      const replica = openReplica(await replicaTarget(ctx, now));
      const aliases = await loadAliases(replica).finally(() => replica.close());
      return { row, file, current: Object.keys(current!).sort(), aliases };
    };
    const isRenamed = async () => (await seen()).current.includes(column!);
    await until(isRenamed, { what: "names are settled", timeoutMs: 30_000, retryErrors: true });
    const before = await seen();
    expect(before.aliases.map(({ name }) => name)).toEqual(pinnedNames ? [] : ["papers", "state"]);
    expect(before.row).toMatchObject({ title: "one", state: "open" });
    const { there } = await clustersOf(base);
    const moved = await moveBase(mover(), id, there, { signal: new AbortController().signal, graceMs: 1 });
    expect(moved.database.id).not.toBe(base.database.id);
    const withoutUrls = ({ row, ...rest }: typeof before) => ({ ...rest, row: { ...row, files: null } });
    expect(withoutUrls(await seen())).toEqual(withoutUrls(before));
    expect(before.current).not.toContain("secret");
    await deleteBase(ctx, moved);
  },
);

test("moving a base of a running worker does not disturb its syncs", {
  timeout: 60_000,
}, async () => {
  const { ctx } = fleet;
  const { id } = await fleet.connect(generate(200, 41));
  const { there } = await clustersOf(await fleet.synced(id));
  const moved = await operate("base", "move", id, "--cluster", there, "--json");
  expect(moved).toMatchObject({ id, credentials_changed: true });
  const base = await fleet.synced(id);
  expect(base.database.name).toBe(moved.database.name);
  expect(base).toMatchObject({ state: "active", error: null });
  await expectEqualToSource(fleet, base);
  const failed =
    await ctx.db`select error_code from sync_runs where base_id = ${id} and completed_at is null`;
  expect(failed).toEqual([]);
  await deleteBase(ctx, base);
});

test("a move that is canceled or whose process dies leaves the base where it was, and nothing else", {
  timeout: 120_000,
}, async () => {
  const { ctx } = fleet;
  const { id } = await fleet.connect(generate(300, 51));
  const base = await fleet.synced(id);
  const databases = () => ctx.db`select name from databases order by name`.then((rows) => [...rows]);
  const before = await databases();
  const { here, there } = await clustersOf(base);
  const stop = new AbortController();
  const moving = moveBase(mover(), id, there, {
    signal: stop.signal,
    onProgress: () => stop.abort(new Error("stopped")),
  });
  await expect(moving).rejects.toThrow();
  expect(await databases()).toEqual(before);

  // As left by a process that dies after it has recorded the new database.
  const left = await createHostedDatabase(ctx, base.accountId, "public");
  await ctx.db`update bases set move_database_id = ${left.id} where id = ${id}`;
  // And one that dies before that.
  const stray = await createHostedDatabase(ctx, base.accountId, "public");
  await ctx.db`update databases set created_at = now() - interval '2 hours' where id = ${stray.id}`;
  await finishDeletions(ctx, async () => []);
  expect(await databases()).toEqual(before);
  const names = [left.name, stray.name];
  expect(await ctx.db`select datname from pg_database where datname = any (${names})`).toEqual([]);
  expect((await getBase(ctx.db, id)).database.id).toBe(base.database.id);

  const elsewhere = moveBase(mover(), id, here, { signal: new AbortController().signal });
  await expect(elsewhere).rejects.toMatchObject({
    code: "conflict",
    message: expect.stringContaining("already"),
  });
  await expect(
    moveBase(mover(), id, "nowhere", { signal: new AbortController().signal }),
  ).rejects.toMatchObject({ code: "not_found" });
  await fleet.synced(id);
  await deleteBase(ctx, base);
});

test("a base whose database is made writable while it moves stays there", {
  timeout: 60_000,
}, async () => {
  const { ctx } = fleet;
  const { id } = await fleet.connect(generate(100, 53));
  const base = await fleet.synced(id);
  const { there } = await clustersOf(base);
  let made: Promise<unknown> | undefined;
  const moving = moveBase(mover(), id, there, {
    signal: new AbortController().signal,
    graceMs: 1,
    onProgress: () => {
      // Not with its function: it refuses a database on the control plane's server.
      made ??= ctx.db`update databases set is_writable = true where id = ${base.database.id}`.execute();
    },
  });
  await expect(moving).rejects.toMatchObject({
    code: "conflict",
    message: expect.stringContaining("writable"),
  });
  await made;
  const stayed = await fleet.synced(id);
  expect(stayed.database.id).toBe(base.database.id);
  expect(
    await ctx.db`select from databases where id <> ${base.database.id} and cluster_id is not null`,
  ).toEqual([]);
  await deleteBase(ctx, stayed);
});

test("a schema check that the proxy requests runs during a sweep", {
  timeout: 60_000,
}, async () => {
  const { ctx, sandbox } = fleet;
  const sourceId = generate(2000, 61);
  const { id } = await fleet.connect(sourceId, { turbo: true });
  const base = await fleet.synced(id);
  const [table] = sandbox.control.dump(sourceId).tables;
  sandbox.control.renameTable(sourceId, table!.id, "Renamed Meanwhile");
  const reader = await fleet.reader(base);
  const from = performance.now();
  await ctx.db`update bases set schema_check_requested_at = now() where id = ${id}`;
  await until(() => reader`select 1 from renamed_meanwhile limit 1`.then(() => true), {
    what: "the new name is in SQL",
    retryErrors: true,
  });
  // A sweep of 20 pages takes 4 s, and the next schema check is due in an hour.
  expect(performance.now() - from).toBeLessThan(3500);
  await until(
    async () =>
      (await ctx.db`select from bases where id = ${id} and schema_check_requested_at is null`).length === 1,
    { what: "the request is settled" },
  );
  // SQL shows the rename shortly before the log does.
  await until(
    async () =>
      (await ctx.db`select kind from schema_changes where base_id = ${id} and kind = 'table_renamed'`)
        .length === 1,
    {
      what: "the change is recorded",
    },
  );
  await deleteBase(ctx, base);
});

import pino from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import { authenticate, createAccount } from "../../../core/control/accounts";
import {
  activeBaseIds,
  afterSweep,
  createBase,
  deleteBase,
  finishDeletions,
  getBase,
  listBases,
  listRuns,
  openApiKey,
  pause,
  recordRun,
  replicaTarget,
  requestResync,
  resume,
  updateSettings,
} from "../../../core/control/bases";
import { createWorkspace } from "../../../core/control/budgets";
import { drainCluster, ensureDefaultCluster, listClusters } from "../../../core/control/placement";
import { migrateControl, pendingMigrations } from "../../../core/control/setup";
import { createSecretBox } from "../../../core/secrets";
import type { RunReport } from "../../../core/sync/host";
import { about } from "../../support/about";
import { GOOD_KEY, OTHER_KEY, type TestControl, testControl } from "../../support/control-support";
import { freshDatabase } from "../../support/database";

const silent = pino({ level: "silent" });

let control: TestControl;
beforeAll(async () => {
  control = await testControl();
});
afterAll(() => control?.[Symbol.asyncDispose]());

let accounts = 0;
async function newBase(sourceBaseId = "appOne") {
  const account = await control.addAccount(`owner${accounts++}@example.com`);
  return createBase(control.ctx, account.id, { platform: "airtable", apiKey: GOOD_KEY, sourceBaseId });
}

function report(changes: Partial<RunReport> = {}): RunReport {
  const startedAt = new Date(Date.now() - 1000);
  const counts = { seen: 10, inserted: 1, updated: 2, deleted: 3, requests: 4, waitMs: 5.5 };
  return { kind: "sweep", startedAt, completedAt: new Date(), ...counts, ...changes };
}

const failure = (code: "source_forbidden" | "source_unavailable") =>
  report({ completedAt: null, error: { code, message: "It did not work" } });

test("processes that start concurrently migrate once, and a later start finds nothing to do", async () => {
  await using database = await freshDatabase();
  expect(await pendingMigrations(database.sql)).toEqual(["0001_start", "functions"]);
  const ran = await Promise.all(Array.from({ length: 5 }, () => migrateControl(database.url, silent)));
  expect(ran.flat()).toEqual(["0001_start"]);
  expect(await migrateControl(database.url, silent)).toEqual([]);
  expect(await pendingMigrations(database.sql)).toEqual([]);
});

test("an unavailable control plane is control_unavailable", async () => {
  await expect(migrateControl("postgres://nobody@127.0.0.1:1/none", silent)).rejects.toMatchObject({
    code: "control_unavailable",
  });
});

test("no table of the control plane holds a secret in clear text", async () => {
  const { ctx } = control;
  const account = await control.addAccount("secretive@example.com");
  await createBase(ctx, account.id, { platform: "airtable", apiKey: OTHER_KEY, sourceBaseId: "appTwo" });
  const base = (await listBases(ctx.db, account.id))[0]!;
  const target = await replicaTarget(ctx, base);
  expect(target).toMatchObject({ schema: "public", role: expect.stringMatching(/^bt_/) });
  expect(await openApiKey(ctx, base)).toBe(OTHER_KEY);

  const tables = await ctx.db<{ name: string }[]>`
    select tablename as name from pg_tables where schemaname = 'public'`;
  let dump = "";
  for (const { name } of tables) {
    dump += JSON.stringify(await ctx.db`select t::text as row from ${ctx.db(name)} as t`);
  }
  expect(dump).toContain("secretive@example.com");
  for (const secret of [
    OTHER_KEY,
    account.token,
    account.token.slice(3),
    "correct horse",
    ctx.config.databaseUrl!,
  ]) {
    expect(dump).not.toContain(secret);
  }
});

test("an encrypted key cannot be decrypted in another row, nor with another secret", async () => {
  const [one, two] = [await newBase(), await newBase()];
  const { db } = control.ctx;
  await db`update bases set encrypted_api_key = (select encrypted_api_key from bases where id = ${one.id}) where id = ${two.id}`;
  await expect(openApiKey(control.ctx, two)).rejects.toMatchObject({ code: "secret_unreadable" });
  const secrets = createSecretBox([Buffer.alloc(32, 7).toString("base64")]);
  await expect(openApiKey({ db, secrets }, one)).rejects.toMatchObject({ code: "secret_unreadable" });
});

test("an address has one account, in any capitalization; a token finds it", async () => {
  const { db } = control.ctx;
  const account = await control.addAccount("Mixed@Example.com");
  const again = createAccount(db, { email: "mixed@example.COM", password: "long enough" });
  await expect(again).rejects.toMatchObject({ code: "already_exists" });
  await expect(createAccount(db, { email: "a@b.c", password: "short" })).rejects.toMatchObject({
    code: "invalid_request",
  });
  expect(await authenticate(db, `Bearer ${account.token}`)).toMatchObject({
    id: account.id,
    isOperator: false,
  });
  const [used] = await db`select last_used_at from api_tokens where account_id = ${account.id}`;
  await authenticate(db, `bearer ${account.token}`);
  expect(await db`select last_used_at from api_tokens where account_id = ${account.id}`).toEqual([used]);
  await db`update api_tokens set last_used_at = now() - interval '2 hours' where account_id = ${account.id}`;
  await authenticate(db, `Bearer ${account.token}`);
  const [later] = await db`select last_used_at from api_tokens where account_id = ${account.id}`;
  expect(later!.last_used_at.getTime()).toBeGreaterThanOrEqual(used!.last_used_at.getTime());
});

test("a completed run makes a base active, one that needs a person makes it needs_attention, others keep its state", async () => {
  const { db } = control.ctx;
  const { id } = await newBase();
  await recordRun(db, id, failure("source_unavailable"));
  const failing = await getBase(db, id);
  expect(failing).toMatchObject({ state: "starting", sync: null, error: { code: "source_unavailable" } });
  await recordRun(db, id, failure("source_forbidden"));
  const stuck = await getBase(db, id);
  expect(stuck).toMatchObject({ state: "needs_attention", error: { code: "source_forbidden" } });
  expect(stuck.error!.since).toEqual(failing.error!.since);
  const done = report({ kind: "first" });
  await recordRun(db, id, done);
  expect(await getBase(db, id)).toMatchObject({
    state: "active",
    error: null,
    sync: { kind: "first", startedAt: about(done.startedAt), completedAt: about(done.completedAt) },
    sweep: { startedAt: about(done.startedAt), completedAt: about(done.completedAt) },
    recentSweepMs: [],
  });
  const sweeps = [1000, 2000, 3000].map((ms) => {
    const completedAt = new Date();
    return report({ startedAt: new Date(completedAt.getTime() - ms), completedAt });
  });
  for (const sweep of sweeps) await recordRun(db, id, sweep);
  expect((await getBase(db, id)).recentSweepMs).toEqual([3000, 2000, 1000]);
  expect(await listRuns(db, id, 1)).toMatchObject([
    { syncs: 3, seen: 10, deleted: 9, wait_ms: 16.5, duration_ms: 2000, longest_ms: 3000 },
  ]);
});

test("what a worker assumes of a base after a sweep is what it would read", async () => {
  const { db } = control.ctx;
  const { id } = await newBase();
  const tables = [{ name: "people", source_name: "People", source_id: "tblP", records: 10 }];
  await recordRun(db, id, report({ kind: "first", tables }));
  for (const changes of [{}, { tables: [{ ...tables[0]!, records: 11 }] }]) {
    const before = await getBase(db, id);
    const sweep = report(changes);
    await recordRun(db, id, sweep);
    const { clockAheadMs: _, sync, sweep: last, attemptedAt, ...rest } = await getBase(db, id);
    const times = { startedAt: about(sync!.startedAt), completedAt: about(sync!.completedAt) };
    expect(afterSweep(before, sweep)).toEqual({
      ...rest,
      clockAheadMs: before.clockAheadMs,
      sync: { ...sync, ...times },
      sweep: { ...last, ...times },
      attemptedAt: about(attemptedAt!),
    });
  }
});

test("a run that ends after its base was paused or marked for deletion does not resume it", async () => {
  const { ctx } = control;
  const base = await newBase();
  await pause(ctx, base);
  await recordRun(ctx.db, base.id, report());
  expect(await getBase(ctx.db, base.id)).toMatchObject({ state: "paused", error: null });
  await recordRun(ctx.db, base.id, failure("source_forbidden"));
  expect((await getBase(ctx.db, base.id)).state).toBe("paused");
  expect((await resume(ctx, base)).state).toBe("active");
  await ctx.db`update bases set state = 'deleting' where id = ${base.id}`;
  await recordRun(ctx.db, base.id, report());
  expect((await getBase(ctx.db, base.id)).state).toBe("deleting");
});

test("a run of a deleted base is not stored, and is no error", async () => {
  await recordRun(control.ctx.db, "bas_00000000000000000000", report());
  expect(await listRuns(control.ctx.db, "bas_00000000000000000000", 10)).toEqual([]);
});

test("workers get the bases that are due; a base that needs a person only every few minutes or on request", async () => {
  const { ctx } = control;
  const base = await newBase();
  const isActive = async () => (await activeBaseIds(ctx.db)).includes(base.id);
  expect(await isActive()).toBe(true);
  await recordRun(ctx.db, base.id, failure("source_forbidden"));
  expect(await isActive()).toBe(false);
  await requestResync(ctx, base);
  expect(await isActive()).toBe(true);
  await recordRun(ctx.db, base.id, failure("source_forbidden"));
  expect(await isActive()).toBe(false);
  await ctx.db`update bases set attempted_at = now() - interval '4 minutes' where id = ${base.id}`;
  expect(await isActive()).toBe(true);
  await pause(ctx, base);
  expect(await isActive()).toBe(false);
  await expect(requestResync(ctx, base)).rejects.toMatchObject({ code: "conflict" });
});

test("a deletion that a crash interrupted is completed by the next start", async () => {
  const { ctx } = control;
  const base = await newBase();
  await ctx.db`update bases set state = 'deleting' where id = ${base.id}`;
  const deletions = await Promise.all(
    [1, 2].map(() => finishDeletions(ctx, async () => [await getBase(ctx.db, base.id)])),
  );
  expect(deletions).toContain(1);
  await expect(getBase(ctx.db, base.id)).rejects.toMatchObject({ code: "not_found" });
  expect(await ctx.db`select from pg_database where datname = ${base.database.name}`).toEqual([]);
  await expect(deleteBase(ctx, base)).rejects.toMatchObject({ code: "not_found" });
});

test("the default cluster follows the configuration, and is registered once, however many processes start", async () => {
  const { ctx } = control;
  const moved = {
    ...ctx,
    config: {
      ...ctx.config,
      replicaPublicHost: "db.example.com",
      defaultRegion: "eu-west-1",
      location: "eu-west-1",
    },
  };
  await Promise.all([1, 2, 3].map(() => ensureDefaultCluster(moved)));
  expect(await listClusters(ctx.db)).toMatchObject([
    {
      name: "default",
      region: "eu-west-1",
      location: "eu-west-1",
      publicHost: "db.example.com",
      state: "active",
    },
  ]);
  await ensureDefaultCluster(ctx);
  expect(await listClusters(ctx.db)).toMatchObject([{ region: "us-west-2", location: null }]);
  const wrongKey = { ...ctx, secrets: createSecretBox([Buffer.alloc(32, 7).toString("base64")]) };
  await expect(ensureDefaultCluster(wrongKey)).rejects.toMatchObject({ code: "secret_unreadable" });
});

test("a draining cluster gets no new databases, and nothing is left of a base that found no cluster", async () => {
  const { ctx } = control;
  await drainCluster(ctx.db, "default");
  try {
    const before = await ctx.db`select count(*) from databases`;
    await expect(newBase()).rejects.toMatchObject({ code: "conflict" });
    expect(await ctx.db`select count(*) from databases`).toEqual(before);
  } finally {
    await ctx.db`update clusters set state = 'active'`;
  }
});

test("a cluster that does not answer keeps no other from getting new databases", async () => {
  const { ctx } = control;
  await newBase();
  const id = "clu_away";
  const url = ctx.secrets.encrypt("postgres://nobody@127.0.0.1:1/none", `clusters.admin_url:${id}`);
  // Without databases, so that it would be the first choice.
  await ctx.db`
    insert into clusters (id, name, region, encrypted_admin_url, public_host, public_port)
    values (${id}, 'away', 'eu-west-1', ${url}, '127.0.0.1', 1)`;
  try {
    expect((await newBase()).state).toBe("starting");
    await drainCluster(ctx.db, "default");
    await expect(newBase()).rejects.toMatchObject({ code: "replica_unavailable" });
  } finally {
    await ctx.db`delete from clusters where id = ${id}`;
    await ctx.db`update clusters set state = 'active'`;
  }
});

test("a change of settings leaves the workspace that another change has set meanwhile", async () => {
  const { ctx } = control;
  const base = await newBase();
  const { id } = await createWorkspace(ctx, base.accountId, { name: "Team", plan: "team" });
  await updateSettings(ctx, base, { workspaceId: id });
  await updateSettings(ctx, base, { turbo: true });
  expect(await getBase(ctx.db, base.id)).toMatchObject({ workspaceId: id, settings: { turbo: true } });
});

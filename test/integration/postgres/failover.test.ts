/** Servers that fail over while the service runs: nothing is restarted, and everything continues. */
import postgres from "postgres";
import { expect, test, vi } from "vitest";
import { getBase, listBases } from "../../../core/control/bases";
import { databaseCredentials, getDatabase, rotateCredentials } from "../../../core/control/placement";
import { canLogIn } from "../../support/can-log-in";
import { runDoctor } from "../../support/doctor";
import { type FailoverScene, failoverScene } from "../../support/failover-scene";
import { until } from "../../support/poll";

// The tests mostly wait, each with its own service.
vi.setConfig({ testTimeout: 600_000 });

const DEADLINE = { timeoutMs: 120_000, retryErrors: true };
const UP = [200, 200, 200];
const DOWN = [503, 503, 503];

async function goesOn(scene: FailoverScene, name: string): Promise<void> {
  scene.add(`edit ${name}`);
  await until(() => scene.has(`edit ${name}`), { what: "an edit is in SQL", ...DEADLINE });
  await until(async () => (await scene.write(`write ${name}`)).sql === null, {
    what: "SQL shows a proxied write when it is answered",
    ...DEADLINE,
  });
  await until(async () => (await scene.api("PATCH", { turbo: false })).status === 200, {
    what: "a setting is changed",
    ...DEADLINE,
  });
  await until(async () => (await scene.differences()).length === 0, {
    what: "SQL equals the source",
    ...DEADLINE,
  });
}

test.concurrent("a control plane that becomes read-only and then fails over: red, no longer ready, and back by itself", async () => {
  await using scene = await failoverScene({ which: "control", isSynchronous: false });
  const { pair } = scene;
  expect(await scene.readiness()).toEqual(UP);
  expect(await scene.write("before")).toEqual({ status: 200, sql: null });

  const admin = postgres(pair.primaryUrl, { max: 1 });
  const setReadOnly = async (isReadOnly: boolean) => {
    await admin.unsafe(`alter system set default_transaction_read_only = ${isReadOnly ? "on" : "off"}`);
    await admin`select pg_reload_conf()`;
    const wanted = isReadOnly ? DOWN : UP;
    await until(async () => Bun.deepEquals(await scene.readiness(), wanted), {
      what: `readiness is ${wanted}`,
      ...DEADLINE,
    });
  };
  await setReadOnly(true);
  const { status, json } = await scene.api("GET");
  expect({ status, color: json.indicator?.color }).toEqual({ status: 200, color: "red" });
  expect(await scene.api("PATCH", { turbo: false })).toMatchObject({ status: 503 });
  expect((await scene.write("while read-only")).status).toBe(200);
  await setReadOnly(false);
  await admin.end();
  await goesOn(scene, "after read-only");

  const move = await pair.switchOver();
  await until(async () => Bun.deepEquals(await scene.readiness(), DOWN), {
    what: "no process is ready while the name leads to the standby",
    ...DEADLINE,
  });
  expect((await scene.api("GET")).status).toBe(503);
  expect((await scene.write("while away")).status).toBe(200);
  move();
  await until(async () => Bun.deepEquals(await scene.readiness(), UP), {
    what: "all processes are ready",
    ...DEADLINE,
  });
  await goesOn(scene, "after the failover");
});

test.concurrent("replicas whose server fails over are written again, and what an asynchronous standby lost is repaired", async () => {
  await using scene = await failoverScene({ which: "replica", isSynchronous: false });
  const { pair } = scene;
  const move = await pair.switchOver();
  expect((await scene.write("while away")).status).toBe(200);
  scene.add("edit while away");
  move();
  await goesOn(scene, "after the switchover");
});

test.concurrent("commits that an asynchronous standby of the replicas' server lost are detected and repaired", async () => {
  await using scene = await failoverScene({ which: "replica", isSynchronous: false });
  const { pair } = scene;
  await pair.standby!.caughtUp();
  pair.standby!.replication.cut();
  expect(await scene.write("acknowledged")).toEqual({ status: 200, sql: null });
  scene.add("synced");
  await until(() => scene.has("synced"), { what: "an edit is in SQL", ...DEADLINE });
  const { url } = pair.standby!.server;
  const standby = postgres(url, { max: 1, database: scene.base.database.name });
  expect(await standby`select name from public.tasks where name in ('acknowledged', 'synced')`).toEqual([]);
  await standby.end();
  await pair.failOver();
  await until(async () => (await scene.has("acknowledged")) && (await scene.has("synced")), {
    what: "what was lost is in SQL again",
    ...DEADLINE,
  });
  await goesOn(scene, "after the failover");
});

test.concurrent("after an asynchronous standby lost rows of the control plane, syncing continues and `doctor --fix` repairs the rest", async () => {
  await using scene = await failoverScene({ which: "control", isSynchronous: false });
  const { pair, fleet, base } = scene;
  const { ctx } = fleet;
  const database = await getDatabase(ctx.db, base.database.id);
  await pair.standby!.caughtUp();
  pair.standby!.replication.cut();
  // The promoted standby lacks a password, a setting, the runs of an edit, and a base.
  const rotated = await rotateCredentials(ctx, database);
  scene.readAs(rotated.url);
  expect((await scene.api("PATCH", { turbo: false })).status).toBe(200);
  scene.add("synced");
  await until(() => scene.has("synced"), { what: "an edit is in SQL", ...DEADLINE });
  const table = { name: "Other", fields: [{ name: "Name", type: "singleLineText" as const }], records: [] };
  const { id: lostId } = await fleet.connect(fleet.sandbox.control.createBase({ tables: [table] }));
  await pair.failOver();
  await until(async () => Bun.deepEquals(await scene.readiness(), UP), {
    what: "all processes are ready",
    ...DEADLINE,
  });
  expect((await listBases(ctx.db)).map(({ id }) => id)).toEqual([base.id]);
  expect((await getBase(ctx.db, base.id)).settings.turbo).toBe(true);
  await goesOn(scene, "after the failover");
  expect(lostId).not.toBe(base.id);

  const shown = await databaseCredentials(ctx, database);
  expect(await canLogIn(rotated.url)).toBe(true);
  expect(await canLogIn(shown.url)).toBe(false);
  const { findings } = await runDoctor(ctx.config, "--fix");
  expect(findings.filter(({ status }) => status === "fixed").map(({ message }) => message)).toEqual([
    expect.stringContaining("the server does not accept the password that its owner sees"),
  ]);
  expect(findings.filter(({ status }) => status === "problem")).toEqual([]);
  expect(await canLogIn(shown.url)).toBe(true);
  expect(await canLogIn(rotated.url)).toBe(false);
});

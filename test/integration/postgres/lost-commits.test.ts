/** A replica's server that has lost commits: a standby that lagged behind was promoted. */
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type postgres from "postgres";
import { expect, test } from "vitest";
import { startEmbeddedPostgres } from "../../../apps/up/postgres/embedded-postgres";
import { createLogger } from "../../../core/log";
import { freePort } from "../../support/free-port";
import { until } from "../../support/poll";
import { proxyStack } from "../../support/proxy-stack";
import { scratchFolder } from "../../support/scratch";

/** With its owner: root lends Postgres another user. */
function copy(from: string, to: string): void {
  expect(Bun.spawnSync(["cp", "-a", from, to]).exitCode).toBe(0);
}

test("rows that a worker has in its cache as written are written again when the server has lost them", {
  timeout: 120_000,
}, async () => {
  await using releases = new AsyncDisposableStack();
  const folder = scratchFolder("failover");
  releases.defer(() => rmSync(folder, { recursive: true, force: true }));
  const dataDir = join(folder, "postgres");
  const port = await freePort();
  // A lagging standby's WAL ends early, and no more of it exists.
  const settings = { fsync: "off", shared_buffers: "32MB", max_connections: "50", restore_command: "false" };
  const start = () => startEmbeddedPostgres({ dataDir, port, log: createLogger("fatal", "test"), settings });
  let server = await start();
  releases.defer(() => server.stop());
  await using stack = await proxyStack({ REPLICA_URL: server.url });
  const { control } = stack.sandbox;
  const fields = [{ name: "Name", type: "singleLineText" }];
  const records = Array.from({ length: 3 }, (_, index) => ({ fields: { Name: `Task ${index}` } }));
  const baseId = control.createBase({ tables: [{ name: "Tasks", fields, records }] });
  const tasks = await stack.connect(baseId);
  await tasks.sync();

  const standby = join(folder, "standby");
  await server.stop();
  copy(dataDir, standby);
  server = await start();
  const [first, second] = control.dump(baseId).tables[0]!.records;
  control.updateRecords(baseId, "Tasks", [{ id: first!.id, fields: { Name: "Changed" } }]);
  control.deleteRecords(baseId, "Tasks", [second!.id]);
  control.createRecords(baseId, "Tasks", [{ fields: { Name: "New" } }]);
  await tasks.sync();
  const names = async () => (await tasks.rows("tasks")).map(({ name }) => name).toSorted();
  expect(await names()).toEqual(["Changed", "New", "Task 2"]);
  const issued = async (sql: postgres.Sql) => {
    const [row] = await sql<{ epoch: string; readVersion: string }[]>`
      select epoch, public_swap.read_version() as "readVersion" from public_swap._state`;
    return { epoch: Number(row!.epoch), readVersion: Number(row!.readVersion) };
  };
  let lost = { epoch: 0, readVersion: 0 };
  await stack.withOwner(tasks, async (sql) => {
    // More than a server reserves at once, which survive.
    for (let count = 0; count < 100; count++) lost = await issued(sql);
  });

  await server.stop();
  rmSync(dataDir, { recursive: true });
  copy(standby, dataDir);
  writeFileSync(join(dataDir, "recovery.signal"), "");
  server = await start();
  let isRecovering = true;
  const look = async (sql: postgres.Sql) => {
    const [row] = await sql`select pg_is_in_recovery() as is`;
    isRecovering = row!.is;
  };
  // It answers queries before it accepts writes.
  await until(async () => stack.withOwner(tasks, look).then(() => !isRecovering), {
    what: "the server has recovered",
    timeoutMs: 60_000,
  });
  expect(await names()).toEqual(["Task 0", "Task 1", "Task 2"]);
  // I5, I1: nothing that was issued before counts as current.
  await stack.withOwner(tasks, async (sql) => {
    await sql`select public_swap.claim()`;
    await expect(sql`select public_swap.fence(${lost.epoch})`).rejects.toMatchObject({ code: "BT001" });
    const { epoch, readVersion } = await issued(sql);
    expect(epoch).toBeGreaterThan(lost.epoch);
    expect(readVersion).toBeGreaterThan(lost.readVersion);
  });
  await tasks.sync();
  expect(await names()).toEqual(["Changed", "New", "Task 2"]);
});

/**
 * A deletion that crashes processes, because of the customer's own server: it crashes few, and no start depends on it.
 */
import net from "node:net";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { type RunningConsole, startConsole } from "../../../apps/console/start";
import { examine } from "../../../apps/operator/doctor";
import { deleteBase, finishDeletions, getBase, listBases } from "../../../core/control/bases";
import { quarantine } from "../../../core/control/jobs";
import { type TestControl, testControl } from "../../support/control-support";
import { addPlainBases } from "../../support/plain-bases";
import { until } from "../../support/poll";

let control: TestControl;
/** The customer's server: accepts connections, sends nothing, counts them. */
let server: net.Server;
let connections = 0;

const sockets = new Set<net.Socket>();

beforeAll(async () => {
  control = await testControl();
  server = net.createServer((socket) => {
    connections++;
    sockets.add(socket.on("error", () => {}));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});
afterEach(async () => {
  const { db } = control.ctx;
  await db`delete from task_attempts`;
  await db`delete from bases`;
  await db`delete from databases`;
});
afterAll(async () => {
  for (const socket of sockets) socket.destroy();
  server?.close();
  await control?.[Symbol.asyncDispose]();
});

/** A base in the customer's own database. */
async function externalBase(): Promise<string> {
  const { db, secrets } = control.ctx;
  const [id = ""] = await addPlainBases(control, 1);
  const { database } = await getBase(db, id);
  const { port } = server.address() as net.AddressInfo;
  const url = secrets.encrypt(`postgres://u:p@127.0.0.1:${port}/db`, `databases.url:${database.id}`);
  await db`
    update databases set cluster_id = null, encrypted_password = null, encrypted_url = ${url},
      external_host = '127.0.0.1', external_port = ${port} where id = ${database.id}`;
  return id;
}

/** As left by a deletion that has crashed this many times. */
async function died(id: string, times: number): Promise<void> {
  const { db } = control.ctx;
  await db`update bases set state = 'deleting' where id = ${id}`;
  await db`
    insert into task_attempts (task, subject, unended, due_at)
    values ('deletion', ${id}, ${times}, now() - interval '1 second')
    on conflict (task, subject) do update set unended = excluded.unended, due_at = excluded.due_at`;
}

const finish = () => finishDeletions(control.ctx, () => listBases(control.ctx.db));
const isThere = async (id: string) => (await listBases(control.ctx.db)).some((base) => base.id === id);

test("a database that does not answer gets two seconds, and its base is deleted", {
  timeout: 30_000,
}, async () => {
  const id = await externalBase();
  connections = 0;
  const from = performance.now();
  await deleteBase(control.ctx, await getBase(control.ctx.db, id));
  expect(performance.now() - from).toBeLessThan(8000);
  expect(connections).toBeGreaterThan(0);
  expect(await isThere(id)).toBe(false);
  expect([...(await control.ctx.db`select from task_attempts`)]).toEqual([]);
});

test("an attempt is counted before it begins, and one after a crash sends nothing to the customer's server", async () => {
  const id = await externalBase();
  await died(id, 1);
  connections = 0;
  expect(await finish()).toBe(1);
  expect(connections).toBe(0);
  expect(await isThere(id)).toBe(false);
});

test("a deletion that crashed three times is not tried again, is reported, and can be forced", async () => {
  const { ctx } = control;
  const id = await externalBase();
  await died(id, 3);
  expect(await finish()).toBe(0);
  expect((await quarantine(ctx.db)).tasks).toMatchObject([{ task: "deletion", subject: id }]);
  expect(await examine(ctx)).toContainEqual(
    expect.objectContaining({
      check: "quarantine",
      severity: "problem",
      message: expect.stringContaining(id),
    }),
  );
  await expect(deleteBase(ctx, await getBase(ctx.db, id))).rejects.toMatchObject({ code: "conflict" });
  connections = 0;
  await deleteBase(ctx, await getBase(ctx.db, id), { isForced: true });
  expect(connections).toBe(0);
  expect(await isThere(id)).toBe(false);
  expect((await quarantine(ctx.db)).tasks).toEqual([]);
});

test("a deletion that another process may be executing is not begun a second time", async () => {
  const id = await externalBase();
  await died(id, 1);
  await control.ctx.db`update task_attempts set due_at = now() + interval '1 minute'`;
  expect(await finish()).toBe(0);
  expect(await isThere(id)).toBe(true);
});

test("a console listens before it looks for unfinished work, and finishes that in the background", async () => {
  const { ctx } = control;
  const id = await externalBase();
  await ctx.db`update bases set state = 'deleting' where id = ${id}`;
  let running: RunningConsole | undefined;
  try {
    running = await startConsole(ctx, { port: 0 });
    const health = await fetch(`http://127.0.0.1:${running.port}/healthz`);
    expect(health.status).toBe(200);
    expect(await isThere(id)).toBe(true);
    await until(async () => !(await isThere(id)), { what: "the base is deleted", timeoutMs: 20_000 });
  } finally {
    await running?.stop();
  }
});

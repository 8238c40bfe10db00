/**
 * Database servers that disappear silently, like a machine that lost its power: existing connections are dead without
 * any notice, and new ones are served. Everything works again by itself, within GIVEN_UP_MS.
 */
import type net from "node:net";
import tls from "node:tls";
import { expect, test } from "vitest";
import { createAuthority } from "../../../core/http";
import { createLogger } from "../../../core/log";
import { liveSocket } from "../../../core/net";
import { countWatched } from "../../../core/net/live-socket";
import { connectControl } from "../../../core/postgres";
import { openQueue } from "../../../core/queue";
import { connectReplica } from "../../../core/replica";
import { controlDatabase, freshDatabase, type TestDatabase } from "../../support/database";
import { blackholeSocket, CAN_DEAFEN } from "../../support/deaf-socket";
import { type FaultProxy, faultProxy } from "../../support/fault-proxy";
import { until } from "../../support/poll";

/** 15 s plus the delay of a busy machine. */
const GIVEN_UP_MS = 20_000;
const TEST_MS = 45_000;
const UNFIT = "sockets cannot be deafened here";

async function lineTo(database: TestDatabase): Promise<FaultProxy> {
  const { hostname, port } = new URL(database.url);
  return faultProxy({ host: hostname, port: Number(port) }, { isPostgres: false });
}

/** @returns the result, and after how long */
async function timed<T>(work: Promise<T>): Promise<{ ended: T | string; ms: number }> {
  const from = performance.now();
  const ended = await work.catch((error: { code?: string }) => String(error.code));
  return { ended, ms: performance.now() - from };
}

test.concurrent("a statement sent to a blackholed connection fails, and the next one succeeds", {
  timeout: TEST_MS,
}, async ({ skip, onTestFinished }) => {
  skip(!CAN_DEAFEN, UNFIT);
  await using database = await freshDatabase();
  await using line = await lineTo(database);
  for (const connect of [connectControl, connectReplica]) {
    const sql = connect(line.over(database.url));
    onTestFinished(() => sql.end({ timeout: 1 }));
    await sql`select 1`;
    await line.blackhole();
    const { ended, ms } = await timed(sql`select 1`);
    expect(ended).toBe("ETIMEDOUT");
    expect(ms).toBeLessThan(GIVEN_UP_MS);
    expect((await timed(sql`select 1`)).ms).toBeLessThan(2000);
  }
});

test.concurrent("a statement whose answer is lost fails, and its locks are released", {
  timeout: TEST_MS,
}, async ({ skip, onTestFinished }) => {
  skip(!CAN_DEAFEN, UNFIT);
  await using database = await freshDatabase();
  await using line = await lineTo(database);
  const sql = connectReplica(line.over(database.url));
  onTestFinished(() => sql.end({ timeout: 1 }));
  const begun = Promise.withResolvers<void>();
  const transaction = timed(
    sql.begin(async (tx) => {
      await tx`select pg_advisory_xact_lock(1)`;
      const waiting = tx`select pg_sleep(1)`.execute();
      begun.resolve();
      await waiting;
    }),
  );
  await begun.promise;
  await until(
    async () =>
      (
        await database.sql`select from pg_stat_activity where query like ${"%pg_sleep(1)%"}
    and state = 'active' and pid <> pg_backend_pid()`
      ).length,
    { what: "the statement is running" },
  );
  await line.blackhole();
  const locking = timed(database.sql`select pg_advisory_lock(1), pg_advisory_unlock(1)`);
  const { ended, ms } = await transaction;
  expect(ended).toBe("CONNECTION_CLOSED");
  expect(ms).toBeLessThan(GIVEN_UP_MS);
  expect((await locking).ms).toBeLessThan(GIVEN_UP_MS);
});

test.concurrent("LISTEN is resumed", { timeout: TEST_MS }, async ({ skip, onTestFinished }) => {
  skip(!CAN_DEAFEN, UNFIT);
  await using database = await freshDatabase();
  await using line = await lineTo(database);
  const sql = connectControl(line.over(database.url));
  onTestFinished(() => sql.end({ timeout: 1 }));
  const heard: string[] = [];
  await sql.listen("news", (what) => heard.push(what));
  await line.blackhole();
  const heardAgain = async () => {
    await database.sql.notify("news", "again");
    return heard.length;
  };
  await until(heardAgain, { what: "a notification arrives", timeoutMs: GIVEN_UP_MS, intervalMs: 200 });
});

test.concurrent("the queue gets jobs again", { timeout: TEST_MS }, async ({ skip, onTestFinished }) => {
  skip(!CAN_DEAFEN, UNFIT);
  await using database = await controlDatabase();
  await using line = await lineTo(database);
  const [log, options] = [createLogger("fatal", "test"), { isWorker: false }];
  const queue = await openQueue({ db: database.sql, log }, line.over(database.url), options);
  onTestFinished(() => queue.close());
  await queue.requestSync("base1");
  await line.blackhole();
  // pg-boss may have several connections, each of which is found dead by itself.
  const { ms } = await timed(
    until(() => queue.requestSync("base2").then(() => true), {
      what: "a sync can be requested",
      timeoutMs: GIVEN_UP_MS,
      retryErrors: true,
    }),
  );
  expect(ms).toBeLessThan(GIVEN_UP_MS);
  const jobs = await until(() => queue.fetch(10), { what: "jobs are there", retryErrors: true });
  expect(jobs.map(({ baseId }) => baseId)).toEqual(expect.arrayContaining(["base1", "base2"]));
});

test.concurrent("a server that is busy for long is waited for, with more data to come than it has room for", {
  timeout: TEST_MS,
}, async ({ onTestFinished }) => {
  await using database = await freshDatabase();
  const sql = connectReplica(database.url);
  onTestFinished(() => sql.end({ timeout: 1 }));
  await sql`select 1`;
  const page = "x".repeat(4_000_000);
  const long = sql.reserve().then(async (one) => {
    const answers = [
      one`select pg_sleep(22)`,
      ...Array.from({ length: 5 }, () => one`select length(${page})`),
    ];
    await Promise.all(answers);
    one.release();
  });
  expect(await timed(long.then(() => "answered"))).toMatchObject({ ended: "answered" });
});

test.concurrent("connections under TLS are monitored as well, and none for longer than it lives", {
  timeout: TEST_MS,
}, async ({ skip, onTestFinished }) => {
  skip(!CAN_DEAFEN, UNFIT);
  const authority = createAuthority("Authority of a test");
  const { certificate, key } = authority.issue(["localhost"]);
  let peer: net.Socket | undefined;
  const server = tls.createServer({ cert: certificate, key }, (socket) => {
    peer = socket;
    socket.on("data", (data) => socket.write(data));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const raw = liveSocket().connect((server.address() as net.AddressInfo).port, "127.0.0.1");
  await new Promise<void>((resolve) => raw.once("connect", resolve));
  raw.removeAllListeners();
  const socket = tls.connect({ socket: raw, ca: authority.certificate, servername: "localhost" });
  await new Promise<void>((resolve) => socket.once("data", () => resolve()).write("hello"));
  blackholeSocket(peer!);
  socket.write("lost");
  const failed = new Promise<never>((_, reject) => socket.once("error", reject));
  expect(await timed(failed)).toMatchObject({ ended: "ETIMEDOUT" });
  peer!.destroy();
  const before = countWatched();
  await until(() => countWatched() < before || before === 0, { what: "it is released" });
});

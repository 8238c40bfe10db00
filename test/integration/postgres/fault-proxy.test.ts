/** The scope of an injected fault: one connection, and no other that sends the same at that moment. */
import net from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { connectControl } from "../../../core/postgres";
import { freshDatabase } from "../../support/database";
import { type FaultProxy, faultProxy } from "../../support/fault-proxy";
import { until } from "../../support/poll";

const SLOW = /pg_sleep/;
const HOLD_MS = 10_000;

async function startLine() {
  const database = await freshDatabase();
  const { hostname, port } = new URL(database.url);
  const line = await faultProxy({ host: hostname, port: Number(port) }, { isPostgres: true });
  onTestFinished(async () => {
    await line[Symbol.asyncDispose]();
    await database[Symbol.asyncDispose]();
  });
  const connect = async () => {
    const sql = connectControl(line.over(database.url));
    onTestFinished(() => sql.end({ timeout: 1 }));
    await sql`select 1`;
    return sql;
  };
  /** Statements of others' connections that the server is executing. */
  const underWay = async () => {
    const found = await database.sql`
      select from pg_stat_activity
      where datname = current_database() and query like ${"%pg_sleep%"} and state = 'active' and pid <> pg_backend_pid()`;
    return found.length;
  };
  return { line, connect, underWay };
}

const holdAfter = (line: FaultProxy, signal = AbortSignal.timeout(HOLD_MS)) =>
  line.hold((statement) => SLOW.test(statement), "after", signal);

test("while one connection waits for the answer at which it is held, another one that sends the same gets its own", async () => {
  const { line, connect, underWay } = await startLine();
  const [held, other] = [await connect(), await connect()];
  const holding = holdAfter(line);
  const first = held`select pg_sleep(0.5)`.then(() => "answered");
  await until(async () => (await underWay()) === 1, { what: "the first one has started", intervalMs: 5 });
  const answers = Promise.all(Array.from({ length: 3 }, () => other`select pg_sleep(0.1)`));
  const point = await holding;
  await answers;
  expect(await Promise.race([first, "held"])).toBe("held");
  point.pass();
  expect(await first).toBe("answered");
});

test("a connection that ends before the answer at which it was to be held leaves that to the next", async () => {
  const { line, connect, underWay } = await startLine();
  const lost = await connect();
  const holding = holdAfter(line);
  const first = lost`select pg_sleep(30)`.catch(() => "lost");
  await until(async () => (await underWay()) === 1, { what: "the first one has started", intervalMs: 5 });
  line.reset();
  expect(await first).toBe("lost");
  const next = await connect();
  const second = next`select pg_sleep(0)`.then(() => "answered");
  (await holding).pass();
  expect(await second).toBe("answered");
});

test("a canceled wait for an answer holds no connection", async () => {
  const { line, connect, underWay } = await startLine();
  const sql = await connect();
  const over = new AbortController();
  const holding = holdAfter(line, over.signal).catch(() => "given up");
  const answer = sql`select pg_sleep(0.3)`.then(() => "answered");
  await until(async () => (await underWay()) === 1, { what: "it has started", intervalMs: 5 });
  over.abort();
  expect(await holding).toBe("given up");
  expect(await answer).toBe("answered");
});

test("a slow connection delays each piece by the same time, since all of them are under way at once", async () => {
  const echo = net.createServer((socket) => socket.pipe(socket));
  await new Promise<void>((resolve) => echo.listen(0, "127.0.0.1", resolve));
  const target = { host: "127.0.0.1", port: (echo.address() as net.AddressInfo).port };
  const line = await faultProxy(target, { isPostgres: false });
  onTestFinished(async () => {
    await line[Symbol.asyncDispose]();
    echo.close();
  });
  line.delayMs = 300;
  const keptMs: number[] = [];
  line.onPass = (_, ms) => keptMs.push(ms);
  const client = net.connect(line.port, "127.0.0.1");
  client.setNoDelay(true);
  for (let piece = 0; piece < 5; piece++) {
    client.write("piece");
    await Bun.sleep(20);
  }
  await until(() => keptMs.length === 5, { what: "all have passed" });
  client.destroy();
  expect(Math.min(...keptMs)).toBeGreaterThanOrEqual(299);
  // One after the other, the last would take more than four times as long.
  expect(Math.max(...keptMs)).toBeLessThan(1000);
});

/** Standing reservations of clients' next requests, with a real control plane. */
import { Registry } from "prom-client";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { wait } from "../../../core/async";
import { createRateLimiter, type RateLimiter } from "../../../core/limiter";
import { createLogger } from "../../../core/log";
import { connectControl } from "../../../core/postgres";
import { controlDatabase, type TestDatabase } from "../../support/database";
import { faultProxy } from "../../support/fault-proxy";
import { until } from "../../support/poll";
import { mostWithin } from "../../support/quota-simulation";

// Waits for a state that a busy machine reaches late.
vi.setConfig({ testTimeout: 120_000 });

const never = new AbortController().signal;
const ONE_WAY_MS = 50;
let keys = 0;

let database: TestDatabase;
beforeAll(async () => {
  database = await controlDatabase();
});
afterAll(() => database?.[Symbol.asyncDispose]());

function limiterOver(db = database.sql): RateLimiter {
  return createRateLimiter({ db, log: createLogger("fatal", "test"), metrics: new Registry() });
}

/** A limiter with this delay to the control plane, in each direction. */
async function distantLimiter(delayMs: number): Promise<RateLimiter> {
  const { hostname, port } = new URL(database.url);
  const line = await faultProxy({ host: hostname, port: Number(port) }, { isPostgres: false });
  const db = connectControl(line.over(database.url));
  onTestFinished(async () => {
    await db.end({ timeout: 1 });
    await line[Symbol.asyncDispose]();
  });
  await db`select 1`;
  line.delayMs = delayMs;
  return limiterOver(db);
}

const newKey = () => `airtable:appStanding${++keys}`;

async function standingOf(key: string): Promise<number[]> {
  const [row] = await database.sql<{ standing: number[] }[]>`
    select to_json(standing) as standing from quota_windows where key = ${key}`;
  return row?.standing ?? [];
}

test("over a round trip of 100 ms to the control plane, the request of a steady client waits for no answer of it", async () => {
  const limiter = await distantLimiter(ONE_WAY_MS);
  const key = newKey();
  const sent: number[] = [];
  const waits: number[] = [];
  const send = async () => {
    const since = performance.now();
    await limiter.acquireClient(key, { deadlineMs: 20_000, signal: never });
    sent.push(performance.now());
    waits.push(sent.at(-1)! - since);
    // As long as an answer of the source takes, in which the next reservation is made.
    await wait(250, never);
  };
  const isPrompt = async () => {
    await send();
    return waits.slice(-3).every((ms) => waits.length > 3 && ms < ONE_WAY_MS);
  };
  await until(isPrompt, { what: "three requests in a row that wait for no answer", timeoutMs: 60_000 });
  expect(waits[0]).toBeGreaterThan(2 * ONE_WAY_MS);
  await limiter.close();
  expect(mostWithin(sent, 1000)).toBeLessThanOrEqual(5);
  expect((await limiter.usage(key)).client).toBe(sent.length);
  expect(await standingOf(key)).toEqual([]);
});

test("I4: clients of three processes and a sync stay within the limit together, and the month has what was sent", async () => {
  const limiters = [limiterOver(), await distantLimiter(10), limiterOver()];
  const [key, stop] = [newKey(), new AbortController()];
  const sent: number[] = [];
  let used = 0;
  const client = async (limiter: RateLimiter, everyMs: number) => {
    while (!stop.signal.aborted) {
      await limiter.acquireClient(key, { deadlineMs: 20_000, signal: never });
      sent.push(performance.now());
      await wait(everyMs, stop.signal).catch(() => {});
    }
  };
  // Sweeps, with pauses: while one runs, there is seldom a place for a standing reservation.
  const sync = async () => {
    for (let request = 1; !stop.signal.aborted; request++) {
      await limiters[2]!.acquireSync(key, 3, stop.signal).then(
        () => sent.push(performance.now()),
        () => {},
      );
      await wait(request % 8 === 0 ? 3000 : 100, stop.signal).catch(() => {});
    }
  };
  const all = [client(limiters[0]!, 400), client(limiters[1]!, 550), client(limiters[2]!, 1500), sync()];
  await until(
    async () => {
      used += (await standingOf(key)).length;
      return sent.length >= 60 && used > 0;
    },
    { what: "requests, and standing reservations among them", timeoutMs: 90_000 },
  );
  stop.abort();
  await Promise.all(all);
  await Promise.all(limiters.map((limiter) => limiter.close()));
  expect(mostWithin(sent, 1000)).toBeLessThanOrEqual(5);
  const usage = await limiters[0]!.usage(key);
  expect(usage.sync + usage.client).toBe(sent.length);
  expect(await standingOf(key)).toEqual([]);
});

test("a standing reservation that no request uses is returned, and one that a pause voids is not used", async () => {
  const limiter = limiterOver();
  const [unused, paused] = [newKey(), newKey()];
  const steady = async (key: string) => {
    const isStanding = async () => {
      await limiter.acquireClient(key, { deadlineMs: 20_000, signal: never });
      return (await standingOf(key)).length > 0;
    };
    await until(isStanding, { what: "a standing reservation", timeoutMs: 20_000, intervalMs: 200 });
  };
  await steady(unused);
  await until(async () => (await standingOf(unused)).length === 0, { what: "it is returned" });
  await steady(paused);
  await limiter.block(paused, 1500, "rate_limited");
  const since = performance.now();
  await limiter.acquireClient(paused, { deadlineMs: 20_000, signal: never });
  expect(performance.now() - since).toBeGreaterThan(1400);
  await limiter.close();
});

/** Reservations in advance, with a real control plane and a process that syncs many bases at once. */
import { Registry } from "prom-client";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { wait } from "../../../core/async";
import { createRateLimiter } from "../../../core/limiter";
import { createLogger } from "../../../core/log";
import { connectControl } from "../../../core/postgres";
import { controlDatabase, type TestDatabase } from "../../support/database";
import { faultProxy } from "../../support/fault-proxy";
import { until } from "../../support/poll";
import { mostWithin } from "../../support/quota-simulation";

// Waits for a state that a busy machine reaches late.
vi.setConfig({ testTimeout: 120_000 });

const log = createLogger("fatal", "test");
const KEYS = 60;
const SHARE = 3;
/** How long a request takes, ms. */
const ANSWER_MS = 100;

let database: TestDatabase;
beforeAll(async () => {
  database = await controlDatabase();
});
afterAll(() => database?.[Symbol.asyncDispose]());

/** Syncs all keys at their full rate. */
function startSyncs(name: string, db = database.sql) {
  const limiter = createRateLimiter({ db, log, metrics: new Registry() });
  const stop = new AbortController();
  const sent = new Map<string, number[]>();
  const keyOf = (index: number) => `airtable:${name}${index}`;
  const sync = async (key: string) => {
    const times: number[] = [];
    sent.set(key, times);
    while (!stop.signal.aborted) {
      await limiter.acquireSync(key, SHARE, stop.signal);
      times.push(performance.now());
      await wait(ANSWER_MS, stop.signal);
    }
  };
  const syncs = Array.from({ length: KEYS }, (_, index) => sync(keyOf(index)).catch(() => {}));
  return {
    limiter,
    sent,
    keyOf,
    /** Resolves when most keys have reservations in advance. */
    async steady(): Promise<void> {
      const isSteady = async () => {
        const [row] = await database.sql<{ keys: number }[]>`
          select count(*)::integer as keys from quota_windows
          where key like ${`airtable:${name}%`} and advance_from < 'infinity'`;
        return row!.keys > KEYS / 2;
      };
      await until(isSteady, { what: "reservations in advance", timeoutMs: 60_000 });
    },
    async [Symbol.asyncDispose]() {
      stop.abort();
      await Promise.all(syncs);
      await limiter.close();
    },
  };
}

test("I4: syncs of many keys reserve in advance, stay within their share, and return what they do not use", async () => {
  const { sent, keyOf, ...syncs } = startSyncs("many");
  await syncs.steady();
  const before = sent.get(keyOf(0))!.length;
  await until(() => sent.get(keyOf(0))!.length >= before + 12, { what: "more requests", timeoutMs: 60_000 });
  await syncs[Symbol.asyncDispose]();
  for (const [key, times] of sent) {
    expect(mostWithin(times, 1000)).toBeLessThanOrEqual(5);
    expect((await syncs.limiter.usage(key)).sync).toBe(times.length);
  }
});

test("I4: over a round trip of 100 ms to the control plane, syncs of many keys send at their rate, and no more", async () => {
  const { hostname, port } = new URL(database.url);
  await using line = await faultProxy({ host: hostname, port: Number(port) }, { isPostgres: false });
  const distant = connectControl(line.over(database.url));
  onTestFinished(() => distant.end({ timeout: 1 }));
  await distant`select 1`;
  line.delayMs = 50;
  const { sent, ...syncs } = startSyncs("distant", distant);
  const all = () => [...sent.values()];
  await until(() => all().every((times) => times.length >= 20), { what: "requests", timeoutMs: 90_000 });
  await syncs[Symbol.asyncDispose]();
  for (const times of all()) expect(mostWithin(times, 1000)).toBeLessThanOrEqual(5);
});

test("I4: clients of another process go before reservations that syncs have made in advance", async () => {
  await using syncs = startSyncs("other");
  await syncs.steady();
  const proxy = createRateLimiter({ db: database.sql, log, metrics: new Registry() });
  const never = new AbortController().signal;
  const client = (key: string) => proxy.acquireClient(key, { deadlineMs: 20_000, signal: never });
  const revocations = async () => {
    const [row] = await database.sql<{ count: number }[]>`
      select last_value::integer as count from quota_revocations`;
    return row!.count;
  };
  const before = await revocations();
  // The first answers take time to measure the clock.
  await client("airtable:appUnused");
  const send = async (key: string) => {
    const times: number[] = [];
    for (let count = 0; count < 4; count++) {
      await client(key);
      times.push(performance.now());
    }
    const synced = syncs.sent.get(key)!;
    await until(() => synced.at(-1)! > times.at(-1)! + 1000, { what: "the sync goes on", timeoutMs: 20_000 });
    expect(mostWithin([...synced, ...times], 1000)).toBeLessThanOrEqual(5);
  };
  // On a busy machine, there may be none in advance for some seconds; and none of a key that a client has just asked for.
  let round = 0;
  const others = () => Array.from({ length: 12 }, (_, index) => syncs.keyOf((12 * round + index) % KEYS));
  const isRevoked = async () => {
    await syncs.steady();
    await Promise.all(others().map(send));
    round++;
    return (await revocations()) > before;
  };
  await until(isRevoked, { what: "a client's call revokes some", timeoutMs: 60_000 });
  await proxy.close();
});

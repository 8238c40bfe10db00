/** Throttled keys and the limit of a user, as SQL on a virtual clock. */
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { controlDatabase, type TestDatabase } from "../../support/database";
import { LIMITS } from "../../support/quota-limits";
import { EPOCH_MS, lateParts, mostWithin } from "../../support/quota-simulation";

let database: TestDatabase;
beforeAll(async () => {
  database = await controlDatabase();
});
afterAll(() => database[Symbol.asyncDispose]());

/** Times are exact to a quarter of a µs. */
const WINDOW_MS = 999.999;
const MINUTE_MS = 60_000;
/** A pause after a refusal, and how long everything is served between two pauses. */
const PAUSE_MS = 30_000;
const SERVED_MS = 15_000;
/** The margin of every call for delay and transit, ms. */
const LEAST_MARGIN_MS = 20;

let keys = 0;
const newKey = () => `slow:${++keys}`;

interface Take {
  key: string;
  kind?: "sync" | "client";
  share?: number;
  reachMs?: number;
  lateMs?: number;
  user?: string | null;
  back?: number[];
  /** For a client: is its key the user's own? */
  isOwn?: boolean;
}

/** The key's sync belongs to the user. */
const syncAs = (now: number, key: string, user: string) =>
  database.sql`select quota_acquire(${key}, ${LIMITS}::source_limits, 'sync', 5, '{}', '{}', ${EPOCH_MS + now}, ${user})`;

/** Reserves one call at `now`: until when it may be sent; null if no reservation is within reach. Times are from 0. */
async function take(now: number, of: Take): Promise<number | null> {
  const {
    key,
    kind = "client",
    share = 5,
    reachMs = 0,
    lateMs = 0,
    user = null,
    back = [],
    isOwn = true,
  } = of;
  const returned = `{${back.map((slot) => slot + EPOCH_MS)}}`;
  if (user !== null && kind === "client") await syncAs(now, key, user);
  const [row] = await database.sql<{ reservations: (number | null)[] }[]>`
    select to_json(reservations) as reservations from quota_acquire(${key}, ${LIMITS}::source_limits, ${kind}, ${share}, ${`{${reachMs}}`}, ${returned},
      ${EPOCH_MS + now}, ${user}, ${lateMs}, ${isOwn})`;
  const [slot] = row!.reservations;
  return slot === null || slot === undefined ? null : slot - EPOCH_MS;
}

const block = (now: number, key: string) =>
  database.sql`select quota_block(${key}, ${LIMITS}::source_limits, 30000, 'rate_limited', ${EPOCH_MS + now})`;

/** Asks every 20 ms for a while. @returns when calls were sent */
async function askFor(fromMs: number, ms: number, of: Take): Promise<number[]> {
  const sent: number[] = [];
  for (let now = fromMs; now < fromMs + ms; now += 20) {
    const slot = await take(now, of);
    if (slot !== null) sent.push(slot);
  }
  return sent;
}

/** A second of calls at the full rate, refused at its end; then the pause. @returns calls in that second */
async function refusedAt(now: number, key: string): Promise<number> {
  const sent = await askFor(now, 1000, { key });
  await block(now + 1000, key);
  return sent.length;
}

test("a source that refuses allowed requests three times in ten minutes gets two requests per second for an hour", async () => {
  const key = newKey();
  expect(await refusedAt(0, key)).toBe(5);
  expect(await refusedAt(MINUTE_MS, key)).toBe(5);
  expect(await refusedAt(2 * MINUTE_MS, key)).toBe(5);
  const slowed = await askFor(3 * MINUTE_MS, 5000, { key });
  expect(mostWithin(slowed, WINDOW_MS)).toBe(2);
  const [row] = await database.sql`select is_certain, until from quota_throttled where key = ${key}`;
  expect(row!.is_certain).toBe(false);
  expect(row!.until.getTime() - EPOCH_MS).toBe(2 * MINUTE_MS + 1000 + 60 * MINUTE_MS);

  // After the hour it is tried again, and the first refusal is enough.
  expect(await refusedAt(63 * MINUTE_MS, key)).toBe(5);
  expect(mostWithin(await askFor(64 * MINUTE_MS, 5000, { key }), WINDOW_MS)).toBe(2);
  // After another hour without a refusal, everything is forgotten.
  expect(mostWithin(await askFor(150 * MINUTE_MS, 5000, { key }), WINDOW_MS)).toBe(5);
  expect(await refusedAt(151 * MINUTE_MS, key)).toBe(5);
  expect(mostWithin(await askFor(152 * MINUTE_MS, 5000, { key }), WINDOW_MS)).toBe(5);
});

test("a source that serves more than two per second between its refusals has not throttled the base: its rate is back after each pause", async () => {
  const key = newKey();
  const rates: number[] = [];
  for (let refusal = 0, now = 0; refusal < 5; refusal++, now += PAUSE_MS + SERVED_MS) {
    rates.push((await askFor(now, SERVED_MS, { key })).length / (SERVED_MS / 1000));
    await block(now + SERVED_MS, key);
  }
  // Less than five, since each refusal adds to the distance between calls.
  for (const rate of rates) expect(rate).toBeGreaterThan(3.9);
  expect(await database.sql`select key from quota_throttled where key = ${key}`).toEqual([]);
});

test("requests that were served long before do not count: a source that refuses right after its pause has throttled the base", async () => {
  const key = newKey();
  expect((await askFor(0, SERVED_MS, { key })).length).toBeGreaterThan(60);
  await block(SERVED_MS, key);
  for (let refusal = 1; refusal <= 2; refusal++) await refusedAt(SERVED_MS + refusal * MINUTE_MS, key);
  const slowed = await askFor(SERVED_MS + 3 * MINUTE_MS, 5000, { key });
  expect(mostWithin(slowed, WINDOW_MS)).toBe(2);
});

test("a base that kept its full rate after an hour of throttling is not throttled again by one refusal", async () => {
  const key = newKey();
  for (let minute = 0; minute < 3; minute++) await refusedAt(minute * MINUTE_MS, key);
  const [row] = await database.sql<{ until: Date }[]>`select until from quota_throttled where key = ${key}`;
  const endsAt = row!.until.getTime() - EPOCH_MS;
  // Twice a second in that hour, as the quota ledger would have counted it.
  await database.sql`update quota_windows set client_calls = client_calls + 7200 where key = ${key}`;
  await askFor(endsAt + 1000, SERVED_MS, { key });
  await block(endsAt + 1000 + SERVED_MS, key);
  const after = await askFor(endsAt + 1000 + SERVED_MS + PAUSE_MS, 5000, { key });
  expect(mostWithin(after, WINDOW_MS)).toBe(5);
});

test("refusals of a few requests, of concurrent requests, or days apart throttle no base", async () => {
  const [few, together, apart] = [newKey(), newKey(), newKey()];
  for (let minute = 0; minute < 5; minute++) {
    const now = minute * MINUTE_MS;
    for (const at of [now, now + 600]) expect(await take(at, { key: few, reachMs: 2000 })).not.toBeNull();
    await block(now + 900, few);
  }
  await askFor(0, 1000, { key: together });
  for (let call = 0; call < 5; call++) await block(1000 + call, together);
  for (let hour = 0; hour < 5; hour++) await refusedAt(hour * 60 * MINUTE_MS, apart);
  expect(
    await database.sql`select key from quota_throttled where key = any (${[few, together, apart]})`,
  ).toEqual([]);
});

test("in any run, a throttled key never sends a third request in the window, and sync leaves one to clients", async () => {
  const asks = fc.array(
    fc.record({
      kind: fc.constantFrom("sync" as const, "client" as const),
      share: fc.constantFrom(3, 5),
      afterMs: fc.integer({ min: 0, max: 700 }),
      reachMs: fc.constantFrom(0, 10, 1000),
    }),
    { minLength: 5, maxLength: 40 },
  );
  await fc.assert(
    fc.asyncProperty(asks, async (all) => {
      const key = newKey();
      await database.sql`select quota_throttle(${key}, ${EPOCH_MS + 1e9}, true, ${EPOCH_MS})`;
      await database.sql`select quota_open(${key}, ${EPOCH_MS})`;
      const [sent, bySync]: number[][] = [[], []];
      let now = 3000;
      for (const { afterMs, ...ask } of all) {
        now += afterMs;
        const slot = await take(now, { key, ...ask });
        if (slot === null) continue;
        sent!.push(slot);
        if (ask.kind === "sync" && ask.share === 3) bySync!.push(slot);
      }
      expect(mostWithin(sent!, WINDOW_MS)).toBeLessThanOrEqual(2);
      expect(mostWithin(bySync!, WINDOW_MS)).toBeLessThanOrEqual(1);
    }),
    { numRuns: 60 },
  );
});

test("throttling survives a crash of the server, and ends on time", async () => {
  const key = newKey();
  await take(0, { key });
  await database.sql`select quota_throttle(${key}, ${EPOCH_MS + MINUTE_MS}, true, ${EPOCH_MS})`;
  // The effect of recovery on an unlogged table.
  await database.sql`delete from quota_windows where key = ${key}`;
  expect(mostWithin(await askFor(5000, 5000, { key }), WINDOW_MS)).toBe(2);
  expect(mostWithin(await askFor(MINUTE_MS + 2000, 3000, { key }), WINDOW_MS)).toBe(5);
  await database.sql`select quota_throttle(${key}, ${EPOCH_MS + 9 * MINUTE_MS}, true, ${EPOCH_MS})`;
  await database.sql`select quota_unthrottle(${key})`;
  expect(mostWithin(await askFor(2 * MINUTE_MS, 3000, { key }), WINDOW_MS)).toBe(5);
});

test("a user's requests that another process has reserved count from the earliest time at which they may be sent", async () => {
  const user = crypto.randomUUID();
  const shut = "shut until then";
  await take(0, { key: shut });
  await block(0, shut);
  // Fifty that begin when the pause ends and are valid for 100 ms, like those of ten keys.
  const keys = Array.from({ length: 10 }, () => newKey());
  for (const key of keys) {
    await take(0, { key });
    await database.sql`update quota_windows set reservations = '{}', blocked_until = ${EPOCH_MS + 1000} where key = ${key}`;
    for (let call = 0; call < 5; call++)
      expect(await take(0, { key, user, reachMs: 1000, lateMs: 100 })).toBe(1100);
  }
  // At -24 it would be sent within the second before them.
  expect(await take(20, { key: newKey(), user, lateMs: 0 })).toBeNull();
});

test("all keys share a user's 50 requests: no 51st is sent, and each base keeps its limit of five", async () => {
  const asks = fc.array(
    fc.record({
      key: fc.integer({ min: 0, max: 14 }),
      kind: fc.constantFrom("sync" as const, "client" as const),
      reachMs: fc.constantFrom(10, 1000),
      lateMs: fc.constantFrom(0, 20, 100),
      afterMs: fc.constantFrom(0, 0, 0, 1, 7, 40),
      isGivenBack: fc.boolean(),
    }),
    { minLength: 150, maxLength: 250 },
  );
  // All keys ask for their five at once: without the limit of the user they would get 75.
  const call = { kind: "client", reachMs: 10, lateMs: 0, afterMs: 0, isGivenBack: false } as const;
  const rush = Array.from({ length: 150 }, (_, index) => ({ ...call, key: index % 15 }));
  let most = 0;
  await fc.assert(
    fc.asyncProperty(asks, lateParts, fc.uuid(), async (all, parts, user) => {
      let now = 0;
      let sent: { key: string; slot: number; at: number }[] = [];
      for (const { key: number, afterMs, isGivenBack, ...ask } of all) {
        now += afterMs;
        const key = `${user}:${number}`;
        const unused = isGivenBack ? sent.find((one) => one.key === key && one.slot > now) : undefined;
        const slot = await take(now, { key, user, ...ask, back: unused ? [unused.slot] : [] });
        sent = sent.filter((one) => one !== unused);
        const part = parts[sent.length % parts.length]!;
        const margin = Math.max(LEAST_MARGIN_MS, ask.lateMs);
        if (slot !== null) sent.push({ key, slot, at: slot - margin * (1 - part) });
      }
      const times = sent.map((one) => one.at);
      most = Math.max(most, mostWithin(times, WINDOW_MS));
      expect(mostWithin(times, WINDOW_MS)).toBeLessThanOrEqual(50);
      for (const { key } of sent) {
        const own = sent.filter((one) => one.key === key).map((one) => one.at);
        expect(mostWithin(own, WINDOW_MS)).toBeLessThanOrEqual(5);
      }
    }),
    { numRuns: 12, endOnFailure: true, examples: [[rush, [1], crypto.randomUUID()]] },
  );
  // It was put to the test.
  expect(most).toBe(50);
});

test("sync leaves ten of a user's 50 requests to clients, whatever it asks for", async () => {
  const user = crypto.randomUUID();
  const keys = Array.from({ length: 15 }, newKey);
  const synced: number[] = [];
  for (let now = 0; now < 5000; now += 20) {
    for (const key of keys) {
      const slot = await take(now, { key, user, kind: "sync" });
      if (slot !== null) synced.push(slot);
    }
  }
  expect(mostWithin(synced, WINDOW_MS)).toBe(40);
  const clients: number[] = [];
  for (const key of keys) {
    const slot = await take(5000, { key, user });
    if (slot !== null) clients.push(slot);
  }
  expect(clients).toHaveLength(10);
});

test("clients with other keys count toward the user's limit, and are not delayed by it", async () => {
  const user = crypto.randomUUID();
  const keys = Array.from({ length: 14 }, newKey);
  const rush = (isOwn: boolean, now: number) =>
    Promise.all(keys.flatMap((key) => Array.from({ length: 5 }, () => take(now, { key, user, isOwn }))));
  expect((await rush(false, 0)).every((slot) => slot !== null)).toBe(true);
  // A sync without reservations for long queues behind the second that they have used up.
  expect(await take(100, { key: newKey(), user, kind: "sync" })).toBeGreaterThan(1000);
  expect((await rush(true, 10_000)).filter((slot) => slot !== null)).toHaveLength(50);
});

/** Some keys of one user, each with a sync that has just sent a request. */
async function synced(user: string, count: number): Promise<string[]> {
  const own = Array.from({ length: count }, newKey);
  for (const key of own) expect(await take(0, { key, user, kind: "sync" })).not.toBeNull();
  return own;
}

test("a base that is refused alone pauses alone, however few requests it had sent: others ask for it, too", async () => {
  const user = crypto.randomUUID();
  const [refused, ...others] = await synced(user, 12);
  const sent: number[] = [];
  for (let now = 1000; now < 100_000; now += 33_000) {
    // Twelve syncs of three a second, which together stay below what shows the user's limit.
    for (let at = now; at < now + 1000; at += 50)
      for (const key of others) {
        const slot = await take(at, { key, user, kind: "sync", share: 3 });
        if (slot !== null) sent.push(slot);
      }
    await block(now + 1000, refused!);
    expect(await take(now + 15_000, { key: refused!, user, kind: "sync" })).toBeNull();
    for (const key of others) expect(await take(now + 15_000, { key, user, kind: "sync" })).not.toBeNull();
  }
  expect(mostWithin(sent, WINDOW_MS)).toBeGreaterThanOrEqual(30);
});

test("two bases that are refused within a second were refused for their user: all the user's bases pause, and none is throttled", async () => {
  const user = crypto.randomUUID();
  const [first, second, other, own, foreign] = (await synced(user, 5)) as [
    string,
    string,
    string,
    string,
    string,
  ];
  await block(100, first);
  expect(await take(1090, { key: other, user, kind: "sync" })).not.toBeNull();
  await block(1090, second);
  expect(await take(10_000, { key: other, user, kind: "sync" })).toBeNull();
  expect(await take(10_000, { key: own, user, isOwn: true })).toBeNull();
  expect(await take(10_000, { key: foreign, user, isOwn: false })).not.toBeNull();
  expect(await take(32_000, { key: other, user, kind: "sync" })).not.toBeNull();
  const rows = await database.sql`
    select refused_at, widened_ms from quota_windows where key = any (${[first, second]})`;
  expect([...rows]).toEqual(Array.from({ length: 2 }, () => ({ refused_at: [], widened_ms: 0 })));
});

test("two bases that are refused more than a second apart, or that belong to two users, pause alone", async () => {
  const [user, another] = [crypto.randomUUID(), crypto.randomUUID()];
  const [first, second, other] = (await synced(user, 3)) as [string, string, string];
  const [foreign] = (await synced(another, 1)) as [string];
  await block(100, first);
  await block(200, foreign);
  await block(1101, second);
  expect(await take(10_000, { key: other, user, kind: "sync" })).not.toBeNull();
});

test("two bases that others ask for, too, and that are refused together again and again stop the user's other bases once", async () => {
  const user = crypto.randomUUID();
  const [first, second, other] = (await synced(user, 3)) as [string, string, string];
  const isStopped: boolean[] = [];
  for (let now = 1000; now < 200_000; now += 31_000) {
    await block(now, first);
    await block(now + 500, second);
    isStopped.push((await take(now + 10_000, { key: other, user, kind: "sync" })) === null);
  }
  expect(isStopped).toEqual([true, false, false, false, false, false, false]);
});

test("a refusal of a base whose user was near fifty requests in a second is the user's", async () => {
  const user = crypto.randomUUID();
  const keys = await synced(user, 11);
  const sent: number[] = [];
  for (const key of keys)
    for (let call = 0; call < 5; call++) {
      const slot = await take(2000, { key, user });
      if (slot !== null) sent.push(slot);
    }
  expect(mostWithin(sent, WINDOW_MS)).toBe(50);
  await block(2300, keys[0]!);
  for (const key of keys) expect(await take(20_000, { key, user, kind: "sync" })).toBeNull();
});

test("a base that is refused at its limit of five pauses alone, and its requests are further apart from then on", async () => {
  const user = crypto.randomUUID();
  const [refused, other] = [newKey(), newKey()];
  await take(0, { key: other, user, kind: "sync" });
  expect((await askFor(0, 2000, { key: refused, user })).length).toBe(10);
  await block(2000, refused);
  expect(await take(10_000, { key: other, user, kind: "sync" })).not.toBeNull();
  const [first, , , , , sixth] = await askFor(40_000, 3000, { key: refused, user });
  expect(sixth! - first!).toBeGreaterThanOrEqual(1050);
  expect(sixth! - first!).toBeLessThan(1090);
});

test("each refusal adds to the spacing, up to a fifth of a second, and an hour removes half of it", async () => {
  const key = newKey();
  const widened = async (now: number) => {
    const [row] = await database.sql<{ ms: number }[]>`
      select quota_widened(widened_ms, widened_at, ${EPOCH_MS + now}) as ms from quota_windows where key = ${key}`;
    return Math.round(row!.ms);
  };
  const seen: number[] = [];
  for (let hour = 0; hour < 4; hour++) {
    const now = hour * 20 * MINUTE_MS;
    await askFor(now, 1500, { key });
    await block(now + 1500, key);
    seen.push(await widened(now + 1500));
  }
  expect(seen[0]).toBe(30);
  expect(seen).toEqual(seen.toSorted((a, b) => a - b));
  expect(seen.at(-1)).toBe(200);
  const last = 60 * MINUTE_MS + 1500;
  expect(await widened(last + 60 * MINUTE_MS)).toBe(100);
  expect(await widened(last + 11 * 60 * MINUTE_MS)).toBe(0);
});

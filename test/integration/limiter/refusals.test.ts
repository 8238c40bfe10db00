/** What the control plane concludes from refusals of the source: pauses, throttled bases, and the limit of a user. */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { controlDatabase, type TestDatabase } from "../../support/database";
import { LIMITS } from "../../support/quota-limits";

let database: TestDatabase;
beforeAll(async () => {
  database = await controlDatabase();
});
afterAll(() => database[Symbol.asyncDispose]());

const PAUSE_MS = 30_000;
const MINUTE_MS = 60_000;
const DAY_START_MS = 1_780_000_000_000;
let keys = 0;
let key = "";
let now = DAY_START_MS;
beforeEach(() => {
  key = `airtable:appRefused${++keys}`;
  now += 24 * 60 * MINUTE_MS;
});

/** @param sent what the process has sent in the last window and a half */
async function refuse({ of = key, sent = 5, isOwn = true } = {}): Promise<boolean> {
  const [row] = await database.sql<{ is_blocked: boolean }[]>`
    select quota_block(${of}, ${LIMITS}::source_limits, ${PAUSE_MS}, 'worker', ${sent}, ${isOwn}, ${now}) as is_blocked`;
  return row!.is_blocked;
}

/** How many permits of the key may be used; and whether it is paused. */
async function stateOf(of = key): Promise<{ usable: number; isPaused: boolean }> {
  const [row] = await database.sql<{ usable: number; is_paused: boolean }[]>`
    select quota_usable(key, ${now}) as usable, blocked_until > ${now} as is_paused from quota_keys where key = ${of}`;
  return { usable: row!.usable, isPaused: row!.is_paused };
}

/** Syncs the key for a user: it holds this many permits of the user. */
async function useFor(user: string, of: string, held: number): Promise<void> {
  const { sql } = database;
  await sql`select quota_heartbeat('worker', 'worker', false, null, 0, false, 5, ${now})`;
  await sql`select quota_trade(${of}, 'worker', 1, 'sync', 0, 5, '{}', '{}', 5, 2, ${user}, ${now})`;
  await sql`select quota_trade(${user}, 'worker', 1, 'sync', ${held}, 50, '{}', '{}', 50, null, null, ${now})`;
}

async function served(calls: number): Promise<void> {
  const rows = [{ key, sync: calls, client: 0, kinds: {}, callers: {} }];
  await database.sql`select quota_count(${JSON.stringify(rows)}::text::jsonb, 10)`;
}

test("a source that refuses allowed requests three times in ten minutes gets two a second for an hour", async () => {
  for (let refusals = 1; refusals <= 3; refusals++) {
    await refuse();
    expect((await stateOf()).isPaused).toBe(true);
    now += 2 * MINUTE_MS;
    expect(await stateOf()).toEqual({ usable: refusals < 3 ? 5 : 2, isPaused: false });
  }
  now += 57 * MINUTE_MS;
  expect((await stateOf()).usable).toBe(2);
  now += 2 * MINUTE_MS;
  expect((await stateOf()).usable).toBe(5);
  await refuse();
  now += MINUTE_MS;
  expect((await stateOf()).usable).toBe(2);
});

test("a source that serves more than two a second between its refusals has not throttled the base", async () => {
  for (let refusals = 1; refusals <= 4; refusals++) {
    await refuse();
    now += MINUTE_MS;
    await served(5 * 60);
  }
  expect((await stateOf()).usable).toBe(5);
});

test("refusals of few requests, of concurrent ones, or hours apart throttle no base", async () => {
  for (let refusals = 1; refusals <= 3; refusals++) {
    await refuse({ sent: 2 });
    now += MINUTE_MS;
  }
  for (let refusals = 1; refusals <= 3; refusals++) await refuse();
  for (let refusals = 1; refusals <= 3; refusals++) {
    now += 60 * MINUTE_MS;
    await refuse();
  }
  now += MINUTE_MS;
  expect((await stateOf()).usable).toBe(5);
});

test("throttling survives a crash of the server", async () => {
  await database.sql`select quota_throttle(${key}, ${now + 60 * MINUTE_MS}, false, ${now})`;
  await refuse();
  await database.sql`truncate quota_keys, quota_permits`;
  await database.sql`select quota_open(${key}, 5, 2, ${now})`;
  expect(await stateOf()).toEqual({ usable: 2, isPaused: true });
});

test("a base that is refused alone pauses alone, whatever its user has", async () => {
  const [user, other] = [`airtable:usr${keys}`, `${key}Other`];
  await useFor(user, key, 20);
  await useFor(user, other, 20);
  await refuse();
  expect((await stateOf()).isPaused).toBe(true);
  for (const one of [user, other]) expect((await stateOf(one)).isPaused).toBe(false);
});

test("two bases that are refused within a second were refused for their user: all the user's bases pause, once", async () => {
  const [user, other] = [`airtable:usr${keys}`, `${key}Other`];
  await useFor(user, key, 20);
  await useFor(user, other, 20);
  await refuse();
  now += 500;
  await refuse({ of: other });
  expect((await stateOf(user)).isPaused).toBe(true);
  now += PAUSE_MS + 1000;
  await refuse();
  now += 500;
  await refuse({ of: other });
  expect((await stateOf(user)).isPaused).toBe(false);
});

test("a refusal of a base whose user was near fifty requests in a second is the user's", async () => {
  const user = `airtable:usr${keys}`;
  await useFor(user, key, 46);
  await refuse();
  expect((await stateOf(user)).isPaused).toBe(true);
  expect((await stateOf()).usable).toBe(5);
});

test("a client's 429 pauses the base only where its limit may have been reached, and never throttles it", async () => {
  expect(await refuse({ isOwn: false, sent: 2 })).toBe(false);
  for (let refusals = 1; refusals <= 3; refusals++) {
    expect(await refuse({ isOwn: false, sent: 3 })).toBe(true);
    now += MINUTE_MS;
  }
  expect(await stateOf()).toEqual({ usable: 5, isPaused: false });
});

/** Calls with unknown keys, claims about plans, and 429s of clients: their effect on a key's quota. */
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createAccount } from "../../../core/control/accounts";
import { controlDatabase, type TestDatabase } from "../../support/database";
import { LIMITS } from "../../support/quota-limits";
import { mostWithin } from "../../support/quota-simulation";

const EPOCH_MS = 1_800_000_000_000;
const WINDOW_MS = 999.999;

let database: TestDatabase;
beforeAll(async () => {
  database = await controlDatabase();
});
afterAll(() => database?.[Symbol.asyncDispose]());

type Kind = "sync" | "client" | "unproven";
const newKey = () => `airtable:app${crypto.randomUUID().replaceAll("-", "")}`;

/** When one call may be sent, ms after the epoch of the test; null: not within reach. */
async function take(
  now: number,
  key: string,
  kind: Kind = "client",
  reachMs = kind === "client" ? 1000 : 10,
) {
  const [row] = await database.sql<{ slot: number | null }[]>`
    select (reservations)[1] as slot
    from quota_acquire(${key}, ${LIMITS}::source_limits, ${kind}, 5, ${`{${reachMs}}`}, '{}', ${EPOCH_MS + now})`;
  return row!.slot === null ? null : row!.slot - EPOCH_MS;
}

async function askFor(kind: Kind, key: string, fromMs: number, ms: number, everyMs = 20): Promise<number[]> {
  const sent: number[] = [];
  for (let now = fromMs; now < fromMs + ms; now += everyMs) {
    const slot = await take(now, key, kind);
    if (slot !== null) sent.push(slot);
  }
  return sent;
}

const windowOf = async (key: string) =>
  (await database.sql`select * from quota_windows where key = ${key}`)[0]!;
const block = async (now: number, key: string, isOwn: boolean) =>
  (
    await database.sql`
    select quota_block(${key}, ${LIMITS}::source_limits, 30000, 'rate_limited', ${EPOCH_MS + now}, ${isOwn}) as is_blocked`
  )[0]!.is_blocked;

test("unproven requests alone: a few in 25 s, each counted only once the source has served it", async () => {
  const key = newKey();
  const sent = await askFor("unproven", key, 0, 30_000, 100);
  // Five, and one more for each 10 s without one.
  expect(mostWithin(sent, 25_000)).toBe(7);
  expect(mostWithin(sent, WINDOW_MS)).toBe(3);
  expect(await windowOf(key)).toMatchObject({ client_calls: 0, sync_calls: 0 });
  await database.sql`select quota_served(${key})`;
  expect(await windowOf(key)).toMatchObject({ client_calls: 1 });
});

test("I4: in any run, no window has a sixth request; while clients wait, about one unproven request is sent in 10 s", async () => {
  const asks = fc.array(
    fc.record({
      kind: fc.constantFrom<Kind>("sync", "client", "unproven", "unproven"),
      afterMs: fc.integer({ min: 0, max: 900 }),
    }),
    { minLength: 10, maxLength: 60 },
  );
  await fc.assert(
    fc.asyncProperty(asks, async (all) => {
      const key = newKey();
      const [sent, unproven]: [number[], number[]] = [[], []];
      let now = 0;
      let clientAt = -Infinity;
      for (const { kind, afterMs } of all) {
        now += afterMs;
        const slot = await take(now, key, kind);
        if (kind === "client") clientAt = now;
        if (slot === null) continue;
        sent.push(slot);
        if (kind !== "unproven") continue;
        if (now - clientAt < 5000 && unproven.length > 0)
          expect(slot - unproven.at(-1)!).toBeGreaterThanOrEqual(10_000);
        unproven.push(slot);
      }
      expect(mostWithin(sent, WINDOW_MS)).toBeLessThanOrEqual(5);
      expect(mostWithin(unproven, 25_000)).toBeLessThanOrEqual(7);
    }),
    { numRuns: 40 },
  );
});

test("a base that clients and sync use to the full still lets a new key try within two windows", async () => {
  const key = newKey();
  await askFor("client", key, 0, 1000, 50);
  const slot = await take(1000, key, "unproven");
  expect(slot).not.toBeNull();
  expect(slot! - 1000).toBeLessThanOrEqual(2 * WINDOW_MS + 10);
});

test("a client's 429 pauses the base only where its limit may have been reached, and never throttles it", async () => {
  const key = newKey();
  await take(0, key);
  expect(await block(100, key, false)).toBe(false);
  expect(await windowOf(key)).toMatchObject({ blocked_until: 0 });
  for (let minute = 1; minute <= 4; minute++) {
    await askFor("client", key, minute * 60_000, 1000);
    expect(await block(minute * 60_000 + 1000, key, false)).toBe(true);
  }
  expect(await windowOf(key)).toMatchObject({ throttled_until: 0, refused_at: [] });
});

/** An account that has connected the source base of `key`, in a workspace with `plan`. */
async function account(key: string, plan: string | null): Promise<string> {
  const { sql } = database;
  const { id } = await createAccount(sql, {
    email: `${crypto.randomUUID()}@example.com`,
    password: "correct horse",
  });
  await sql`
    insert into databases (id, account_id, name, role_name, encrypted_url, external_host, external_port)
    values (${id}, ${id}, ${id}, 'x', 'x', ${id}, 1)`;
  if (plan)
    await sql`insert into workspaces (id, account_id, name, plan, calls_per_month, reserve)
      values (${id}, ${id}, 'W', ${plan}, ${plan === "business" ? null : 100_000}, 0)`;
  await sql`
    insert into bases (id, account_id, platform, source_base_id, name, encrypted_api_key, database_id, schema_name, workspace_id)
    values (${id}, ${id}, 'airtable', ${key.slice("airtable:".length)}, 'B', 'x', ${id}, 'public', ${plan ? id : null})`;
  return id;
}

const perWindow = async (key: string, fromMs: number) =>
  mostWithin(await askFor("client", key, fromMs, 3000), WINDOW_MS);
const slow = (key: string, of: string) =>
  database.sql`select quota_throttle(${key}, ${EPOCH_MS + 3_600_000}, true, ${EPOCH_MS}, ${of})`;

test("an account that claims to be over its plan throttles itself, and no other account with the base", async () => {
  const key = newKey();
  const claimant = await account(key, "team");
  await take(0, key);
  await slow(key, claimant);
  expect(await perWindow(key, 10_000)).toBe(2);
  const other = await account(key, null);
  expect(await perWindow(key, 20_000)).toBe(5);
  // A crash of the server changes none of this.
  await database.sql`delete from quota_windows where key = ${key}`;
  expect(await perWindow(key, 30_000)).toBe(5);
  await database.sql`delete from bases where id = ${other}`;
  expect(await perWindow(key, 40_000)).toBe(2);
  await database.sql`select quota_unthrottle(${key}, ${claimant})`;
  expect(await perWindow(key, 50_000)).toBe(5);
});

test("one of several accounts cannot lift the source's throttling with a plan or a change of it", async () => {
  const key = newKey();
  const [owner, claimant] = [await account(key, null), await account(key, "business")];
  for (let minute = 0; minute < 3; minute++) {
    await askFor("client", key, minute * 60_000, 1000);
    await block(minute * 60_000 + 1000, key, true);
  }
  expect(await perWindow(key, 180_000)).toBe(2);
  await database.sql`select quota_unthrottle(${key}, ${claimant})`;
  expect(await perWindow(key, 190_000)).toBe(2);
  await database.sql`delete from bases where id = ${claimant}`;
  await database.sql`select quota_unthrottle(${key}, ${owner})`;
  expect(await perWindow(key, 200_000)).toBe(5);
});

test.each<Kind>(["client", "sync", "unproven"])(
  "a %s's request that a process was too late for is not counted, whenever it is released",
  async (kind) => {
    const key = newKey();
    const giveBack = async (slot: number, now: number) => {
      await database.sql`
      select quota_acquire(${key}, ${LIMITS}::source_limits, ${kind}, 5, '{}', ${[EPOCH_MS + slot]}::float8[], ${EPOCH_MS + now})`;
      const { client_calls, sync_calls } = await windowOf(key);
      return [client_calls, sync_calls];
    };
    expect(await giveBack((await take(0, key, kind))!, 20)).toEqual([0, 0]);
    expect(await giveBack((await take(2000, key, kind))!, 5000)).toEqual([0, 0]);
  },
);

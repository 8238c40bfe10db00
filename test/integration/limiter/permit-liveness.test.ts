/** What must not be lost on a virtual clock, with the real holders and the real SQL: permits, and the turns of those who wait. */
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { controlDatabase, type TestDatabase } from "../../support/database";
import { fuzz } from "../../support/fuzz";
import { DEADLINE_MS, histories, playHistory } from "../../support/permit-histories";
import { EPOCH_MS, LOOPBACK, World } from "../../support/permit-simulation";

const KEY = "airtable:appHistory";

let database: TestDatabase;
beforeAll(async () => {
  database = await controlDatabase();
});
afterAll(() => database[Symbol.asyncDispose]());

test("a permit that was granted in a lost answer is returned, although its request has left", async () => {
  const world = new World(database.sql, LOOPBACK, 1);
  await world.reset();
  const proxy = world.process("proxy");
  await world.run(3200);
  // Between two heartbeats.
  proxy.way = "deaf";
  const deadlineAt = proxy.holder.clock.now() + 500;
  void proxy.send(KEY, "client", { deadlineAt });
  world.at(3250, () => {
    proxy.way = "open";
  });
  await world.run(3300);
  const held = () =>
    database.sql`select from quota_permits p join quota_holders h using (session) where h.heard_at > ${EPOCH_MS}::float8`;
  expect(await held()).toHaveLength(1);
  await world.run(60_000);
  expect(await held()).toHaveLength(0);
});

test("a proxy without requests sends fewer heartbeats, keeps its lease, and its first request waits for none", async () => {
  const world = new World(database.sql, LOOPBACK, 1);
  await world.reset();
  const proxy = world.process("proxy");
  await world.run(30_000);
  expect(world.heartbeats).toBeLessThan(32);
  const askedAt = world.now;
  await world.run(30_900);
  expect(proxy.holder.isConnected).toBe(true);
  void proxy.send(KEY, "client");
  const resting = world.heartbeats;
  await world.run(40_000);
  expect(world.sent).toHaveLength(1);
  expect(world.sent[0]!.sentAt - askedAt).toBeLessThan(1000);
  expect(world.heartbeats - resting).toBeGreaterThan(10);
});

test("I4: what a silent proxy is owed is left to it after a crash of the server, until it is heard", async () => {
  const world = new World(database.sql, LOOPBACK, 1);
  await world.reset();
  const proxy = world.process("proxy");
  const other = world.process("other");
  await world.run(3000);
  proxy.way = "cut";
  await world.run(6000);
  await world.crash();
  await world.run(15_000);
  expect(other.holder.silent).toBe(2);
  proxy.way = "open";
  await world.run(30_000);
  expect(other.holder.silent).toBe(0);
});

test("requests whose keys are unproven take nothing from the sync of a throttled base", async () => {
  const world = new World(database.sql, LOOPBACK, 1);
  await world.reset();
  const worker = world.process();
  const proxy = world.process("proxy");
  const until = Date.UTC(2200, 0);
  await database.sql`
    insert into quota_throttled (key, since, until, is_certain)
    values (${KEY}, now(), to_timestamp(${until / 1000}), true)`;
  for (let table = 0; table < 3; table++)
    void (async () => {
      while (world.now < 120_000) {
        await worker.send(KEY, "sync", { share: 5 });
        await world.sleep(100);
      }
    })();
  void (async () => {
    while (world.now < 120_000) {
      await world.sleep(1000);
      void proxy.send(KEY, "unproven");
    }
  })();
  await world.run(120_000);
  const synced = world.sent.filter(({ priority }) => priority === "sync").length;
  // One unproven request in ten seconds goes first.
  expect(synced).toBeGreaterThan(120 * 1.8);
});

test.each([
  ["five permits", { killed: 0, isThrottled: false }],
  ["a throttled base", { killed: 0, isThrottled: true }],
  ["one permit, because proxies were killed", { killed: 4, isThrottled: false }],
])("beside more clients than can be served, sync has its turn: %s", async (_, { killed, isThrottled }) => {
  const world = new World(database.sql, LOOPBACK, 7);
  await world.reset();
  if (isThrottled)
    await database.sql`
      insert into quota_throttled (key, since, until, is_certain) values (${KEY}, now(), '2200-01-01', true)`;
  for (let nth = 0; nth < killed; nth++) {
    const proxy = world.process(`killed${nth}`);
    world.at(2000, () => proxy.kill());
  }
  const worker = world.process();
  void (async () => {
    while (world.now < 60_000) {
      await worker.send(KEY, "sync", { share: 3 });
      await world.sleep(100);
    }
  })();
  const proxy = world.process("proxy");
  void (async () => {
    await world.sleep(6000);
    while (world.now < 60_000) {
      await world.sleep(125);
      void proxy.send(KEY, "client", { deadlineAt: proxy.holder.clock.now() + DEADLINE_MS });
    }
  })();
  await world.run(60_000);
  const times = world.sent.filter(({ priority }) => priority === "sync").map(({ sentAt }) => sentAt);
  const waits = [...times, world.now].map((at, nth) => at - (times[nth - 1] ?? 0));
  // Seven seconds, and a turn among clients.
  expect(Math.max(...waits)).toBeLessThan(12_000);
});

test("a sync whose permits may no longer be used, because the base is throttled, gets others", async () => {
  const world = new World(database.sql, LOOPBACK, 1);
  await world.reset();
  await database.sql`select quota_open(${KEY}, 5, 2, ${EPOCH_MS}::float8)`;
  await database.sql`update quota_permits set rests_until = ${EPOCH_MS + 3000}::float8 where number <= 2`;
  const worker = world.process();
  void (async () => {
    while (world.now < 120_000) {
      await worker.send(KEY, "sync", { share: 3 });
      await world.sleep(50);
    }
  })();
  for (const at of [10_000, 15_000, 20_000]) world.at(at, () => void world.refuse(worker, KEY, 1000));
  await world.run(60_000);
  const before = world.sent.length;
  await world.run(120_000);
  // A throttled base has two requests a second, of which this sync may use one.
  expect(world.sent.length - before).toBeGreaterThan(50);
  expect(world.sent.length - before).toBeLessThan(70);
});

test("a control plane that takes 700 ms for each statement is slow, and not away", async () => {
  const world = new World(database.sql, { ...LOOPBACK, statementMs: [650, 700] }, 1);
  await world.reset();
  const worker = world.process();
  void (async () => {
    while (world.now < 60_000) {
      await worker.send(KEY, "sync", { share: 3 });
      await world.sleep(50);
    }
  })();
  await world.run(60_000);
  expect(world.sent.length).toBeGreaterThan(160);
});

test("while the source asks for a pause, processes do not pass permits back and forth", async () => {
  const network = {
    travelMs: 1,
    jitterMs: 0,
    statementMs: [0.5, 3] as [number, number],
    stallEveryMs: 0,
    stallMs: 50,
  };
  const faults = [
    { atMs: 3734, forMs: 8982, what: "refuse" as const, which: 2 },
    { atMs: 2359, forMs: 5664, what: "refuse" as const, which: 5 },
    { atMs: 3244, forMs: 2695, what: "down" as const, which: 1 },
  ];
  const user = "airtable:usrHistory";
  for (let turn = 0; turn < 6; turn++) {
    const world = await playHistory(database.sql, {
      seed: -4,
      network,
      proxies: 2,
      rate: 1,
      workers: 1,
      share: 3,
      user,
      faults,
    });
    world.isCalm = true;
    await world.run(world.now + DEADLINE_MS + 20_000);
    expect(world.waiting).toBe(0);
    expect(world.trades).toBeLessThan(2 * world.sent.length);
  }
});

test("a proxy that has not heard yet that a silent one is back does not return what it is granted again and again", async () => {
  const fault = (what: string, atMs: number, which = 0) => ({ what, atMs, which, forMs: 100 });
  const faults = [fault("crash", 1002), fault("crash", 1014), fault("crash", 11_960)];
  const network = { ...LOOPBACK, jitterMs: 20 };
  const traffic = { proxies: 2, rate: 1, workers: 0, share: 5, user: null };
  const world = await playHistory(database.sql, { seed: -4, network, ...traffic, faults });
  expect(world.sent.length).toBeGreaterThan(50);
  expect(world.trades).toBeLessThan(4 * world.sent.length);
});

test("a request that comes late in a long pause is sent after it, and those that waited before it", async () => {
  const world = new World(database.sql, LOOPBACK, 1);
  await world.reset();
  const worker = world.process();
  worker.holder.queue(KEY).pause(15_000);
  void worker.send(KEY, "sync", { share: 3 });
  world.at(12_000, () => void worker.send(KEY, "sync", { share: 3 }));
  await world.run(20_000);
  expect(world.sent).toHaveLength(2);
});

fuzz(
  "whatever happens, permits that no process needs are returned, and no request waits for ever",
  25,
  fc.asyncProperty(histories, async (history) => {
    const world = await playHistory(database.sql, history);
    world.isCalm = true;
    // Twice as long as unused permits are kept.
    await world.run(world.now + DEADLINE_MS + 20_000);
    const now = EPOCH_MS + world.now;
    const leaked = await database.sql`
      select p.* from quota_permits p join quota_holders h using (session) where h.heard_at > ${now - 1500}::float8`;
    expect([...leaked]).toEqual([]);
    expect(world.waiting).toBe(0);
    return true;
  }),
);

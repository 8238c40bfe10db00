/**
 * What permits cost and what they give, on a virtual clock: rates of sync, waits of clients, and calls of the control plane.
 * The figures vary with the seed; `bun run bench permits` prints the averages of several.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { controlDatabase, type TestDatabase } from "../../support/database";
import { LOOPBACK, mostWithin, World } from "../../support/permit-simulation";
import { playTraffic } from "../../support/permit-traffic";

let database: TestDatabase;
beforeAll(async () => {
  database = await controlDatabase();
});
afterAll(() => database[Symbol.asyncDispose]());

const SEED = 13;

test.each([
  [0, 1, 0.975],
  [20, 80, 0.93],
  [60, 200, 0.86],
])(
  "a sync alone uses its rate with %i ms of jitter, and asks for no more than its first permits",
  async (jitterMs, travelMs, part) => {
    const network = { jitterMs, travelMs, forMs: 60_000 };
    const turbo = await playTraffic(database.sql, { ...network, share: 5 }, SEED);
    expect(turbo.mostInASecond).toBe(5);
    expect(turbo.sync / 5).toBeGreaterThan(part);
    expect(turbo.trades).toBeLessThan(0.02);
    const usual = await playTraffic(database.sql, { ...network, share: 3 }, SEED);
    expect(usual.sync).toBeGreaterThan(2.9);
  },
);

test("a sync of one table makes up for pages that took long", async () => {
  const pages = { share: 5, tables: 1, pages: 100, latencyMs: [20, 300] as [number, number], forMs: 40_000 };
  const { endedAt } = await playTraffic(database.sql, pages, SEED);
  expect(endedAt / 20_000).toBeLessThan(1.1);
});

test.each([
  ["a sync of three a second", { share: 3, proxies: 1, rate: 1 }, { sync: 2.5, p95: 400, trades: 0.2 }],
  ["a Turbo sync", { share: 5, proxies: 1, rate: 1 }, { sync: 3.6, p95: 450, trades: 0.5 }],
  ["a Turbo sync, three a second", { share: 5, proxies: 1, rate: 3 }, { sync: 1.9, p95: 1000, trades: 1.2 }],
  ["a Turbo sync, three proxies", { share: 5, proxies: 3, rate: 0.7 }, { sync: 2.5, p95: 700, trades: 2 }],
  ["no sync", { share: 0, proxies: 1, rate: 3 }, { sync: 0, p95: 1000, trades: 0.1 }],
])("clients go first beside %s, and wait for the rest of a permit", async (_, traffic, most) => {
  const figures = await playTraffic(database.sql, traffic, SEED);
  expect(figures.mostInASecond).toBeLessThanOrEqual(5);
  expect(figures.sync).toBeGreaterThanOrEqual(most.sync);
  expect(figures.p95).toBeLessThan(most.p95);
  expect(figures.trades).toBeLessThan(most.trades);
});

test("rare clients of four proxies wait as long as in a single queue", async () => {
  const figures = await playTraffic(database.sql, { share: 0, proxies: 4, rate: 1 }, SEED);
  expect(figures.mostInASecond).toBe(5);
  expect(figures.p95).toBeLessThan(1.05 * figures.idealP95);
  expect(figures.trades).toBeLessThan(3);
});

test("requests are prepared while their permits rest, as long before their turn as it took the last time", async () => {
  const preparationMs = 100;
  const world = new World(database.sql, LOOPBACK, SEED);
  await world.reset();
  const proxy = world.process("proxy");
  const begunAt: number[] = [];
  const prepare = () => {
    begunAt.push(world.now);
    return world.sleep(preparationMs);
  };
  for (let nth = 0; nth < 20; nth++) void proxy.send("airtable:app1", "client", { prepare });
  await world.run(10_000);
  const sentAt = world.sent.map((one) => one.sentAt);
  expect(mostWithin(sentAt)).toBe(5);
  // Three rests of the permits, without the time of the preparations.
  expect(sentAt[19]! - sentAt[0]!).toBeLessThan(3 * 1025);
  const early = sentAt.map((at, nth) => at - begunAt[nth]!);
  expect(Math.max(...early)).toBeLessThan(preparationMs + 10);
});

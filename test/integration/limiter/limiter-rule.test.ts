/** The rule of the rate limit, as SQL, on a virtual clock: any history, and simulated minutes of real wait queues. */
import fc from "fast-check";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { FIRM_MS, SYNC_REACH_MS } from "../../../core/limiter/backend";
import { controlDatabase, type TestDatabase } from "../../support/database";
import { fuzzRuns } from "../../support/fuzz";
import { quantile } from "../../support/quantile";
import { LIMITS } from "../../support/quota-limits";
import {
  EPOCH_MS,
  lateParts,
  mostWithin,
  type SimulatedProxy,
  simulate,
} from "../../support/quota-simulation";

// Minutes of a virtual clock with a statement for each call: a machine without free CPU takes its time.
vi.setConfig({ testTimeout: 120_000 });

let database: TestDatabase;
beforeAll(async () => {
  database = await controlDatabase();
});
afterAll(() => database[Symbol.asyncDispose]());

/** Times are exact to a quarter of a µs. */
const WINDOW_MS = 999.999;
/** The margin of every call for delay and transit, ms. */
const LEAST_MARGIN_MS = 20;
/** How long a proxy that stops may still serve requests, virtual ms. */
const DRAIN_MS = 10_000;

type SyncKind = "sync" | "live" | "named";
type Action =
  | { do: "client"; calls: number; reachMs: number; lateMs?: number }
  | {
      do: "sync";
      kind?: SyncKind;
      calls: number;
      reachMs?: number;
      share: number;
      lateMs?: number;
      ahead?: number;
    }
  | { do: "give back"; which: number[] }
  | { do: "give back revoked" }
  | { do: "block"; ms: number }
  | { do: "pass"; ms: number };

const lateMs = fc.constantFrom(0, 20, 100);
const actions: fc.Arbitrary<Action[]> = fc.array(
  fc.oneof(
    fc.record({
      do: fc.constant("client" as const),
      calls: fc.integer({ min: 1, max: 6 }),
      reachMs: fc.constantFrom(0, 300, 1000, 1100),
      lateMs,
    }),
    fc.record({
      do: fc.constant("sync" as const),
      kind: fc.constantFrom<SyncKind[]>("sync", "live", "named"),
      calls: fc.integer({ min: 1, max: 5 }),
      // With the delay of a process that has little CPU.
      reachMs: fc.constantFrom(10, 30, 60, 130),
      share: fc.constantFrom(3, 5),
      lateMs,
      ahead: fc.constantFrom(0, 2, 4),
    }),
    fc.record({
      do: fc.constant("give back" as const),
      which: fc.array(fc.nat(), { minLength: 1, maxLength: 4 }),
    }),
    fc.constant({ do: "give back revoked" as const }),
    {
      weight: 3,
      arbitrary: fc.record({
        do: fc.constant("pass" as const),
        ms: fc.oneof(fc.integer({ min: 0, max: 80 }), fc.integer({ min: 0, max: 700 })),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({ do: fc.constant("block" as const), ms: fc.integer({ min: 0, max: 3000 }) }),
    },
  ),
  { minLength: 1, maxLength: 50 },
);

interface Call {
  kind: "client" | SyncKind;
  /** For sync: the requested share. */
  share: number;
  askedAt: number;
  /** The period in which it may be sent. */
  from: number;
  slot: number;
  /** For one that was made in advance: the count of revocations then. */
  revocations?: number;
}

interface Played {
  calls: Call[];
  blocks: { from: number; until: number }[];
  /** What the month's counts are in the end. */
  counted: { sync: number; client: number } | undefined;
}

/** Plays a history against the SQL, and returns the calls that would have been sent and the blocks, in ms from 0. */
async function play(history: Action[]): Promise<Played> {
  const key = `played:${crypto.randomUUID()}`;
  const sql = database.sql;
  let now = 0;
  let calls: Call[] = [];
  /** Revoked, and not given back yet. */
  const revoked: Call[] = [];
  const blocks: { from: number; until: number }[] = [];

  async function take(
    options: { kind: "client" | SyncKind; share: number; lateMs?: number | undefined; ahead?: number },
    within: number[],
    back: number[],
  ) {
    const { kind, share, lateMs = 0, ahead = 0 } = options;
    const [row] = await sql<{ reservations: (number | null)[]; revocations: number }[]>`
      select to_json(reservations) as reservations,
        (select last_value::float8 from quota_revocations) as revocations
      from quota_acquire(${key}, ${LIMITS}::source_limits, ${kind}, ${share}, ${`{${within}}`},
        ${`{${back.map((slot) => slot + EPOCH_MS)}}`}, ${EPOCH_MS + now}, null, ${lateMs}, false, ${ahead})`;
    for (const [index, booked] of row!.reservations.entries()) {
      if (booked === null) continue;
      const slot = booked - EPOCH_MS;
      const from = slot - Math.max(LEAST_MARGIN_MS, lateMs);
      const inAdvance = index >= within.length && { revocations: row!.revocations };
      calls.push({ kind, share, askedAt: now, from, slot, ...inAdvance });
    }
  }

  /** Drops those in advance that their process does not use, because it hears of a revocation at the last moment. */
  async function heardUntil(until: number): Promise<void> {
    const [row] = await sql<{ count: number }[]>`select last_value::float8 as count from quota_revocations`;
    const isUsed = ({ revocations = row!.count, from }: Call) =>
      revocations === row!.count || from <= now + FIRM_MS || from > until + FIRM_MS;
    revoked.push(...calls.filter((call) => !isUsed(call)));
    calls = calls.filter(isUsed);
  }

  for (const action of history) {
    if (action.do === "pass") {
      await heardUntil(now + action.ms);
      now += action.ms;
    }
    if (action.do === "client") {
      await take(
        { kind: "client", share: 5, lateMs: action.lateMs },
        Array(action.calls).fill(action.reachMs),
        [],
      );
    }
    if (action.do === "sync") {
      const { kind = "sync", share, calls, reachMs = 30, lateMs, ahead = 0 } = action;
      await take({ kind, share, lateMs, ahead }, Array(calls).fill(reachMs), []);
    }
    if (action.do === "give back") {
      for (const which of action.which) {
        // Ahead, or slightly past: its process was late.
        const recent = calls.filter((call) => call.slot > now - 500);
        const unused = recent[which % Math.max(1, recent.length)];
        if (!unused) continue;
        await take(unused, [], [unused.slot]);
        calls = calls.filter((call) => call !== unused);
      }
    }
    if (action.do === "give back revoked")
      for (const call of revoked.splice(0)) await take(call, [], [call.slot]);
    if (action.do === "block") {
      await sql`select quota_block(${key}, ${LIMITS}::source_limits, ${action.ms}, 'rate_limited', ${EPOCH_MS + now})`;
      // Calls that may have been sent stay.
      calls = calls.filter((call) => call.from <= now);
      blocks.push({ from: now, until: now + action.ms });
    }
  }
  await heardUntil(Infinity);
  const [counted] = await sql<{ sync: number; client: number }[]>`
    select sync_calls as sync, client_calls as client from quota_windows where key = ${key}`;
  return { calls, blocks, counted };
}

const slotsOf = (calls: Call[]) => calls.map(({ slot }) => slot);

test("I4: in any run, no window has a sixth request, wherever in its reservation each one is sent", async () => {
  await fc.assert(
    fc.asyncProperty(actions, lateParts, async (history, parts) => {
      const { calls } = await play(history);
      const sent = calls.map(({ from, slot }, index) => from + (slot - from) * parts[index % parts.length]!);
      expect(mostWithin(sent, WINDOW_MS)).toBeLessThanOrEqual(5);
    }),
    { numRuns: 400 },
  );
});

test("I4: clients take the places of reservations that were made in advance, unless these begin in a moment", async () => {
  const lateMs = fc.constantFrom(0, 40, 100);
  await fc.assert(
    fc.asyncProperty(
      // Longer than the request's own reservation.
      fc.integer({ min: 100, max: 1100 }),
      fc.constantFrom(2, 4),
      fc.constantFrom<("client" | "live")[]>("client", "live"),
      lateMs,
      lateParts,
      async (passMs, ahead, kind, lateMs, parts) => {
        const sync = { do: "sync" as const, calls: 1, share: 3, lateMs };
        const first =
          kind === "client"
            ? { do: "client" as const, calls: 5, reachMs: 300 }
            : { ...sync, kind, reachMs: 130 };
        const { calls } = await play([{ ...sync, ahead }, { do: "pass", ms: passMs }, first]);
        const sent = calls.map(
          ({ from, slot }, index) => from + (slot - from) * parts[index % parts.length]!,
        );
        expect(mostWithin(sent, WINDOW_MS)).toBeLessThanOrEqual(5);
        const waits = calls.flatMap((call) => (call.kind === "client" ? call.from - call.askedAt : []));
        // It waits for one that begins within this time, until its end.
        expect(waits[0] ?? 0).toBeLessThanOrEqual(FIRM_MS + Math.max(LEAST_MARGIN_MS, lateMs));
      },
    ),
    { numRuns: 150 * fuzzRuns },
  );
});

test("I4: answers that come late, or not for a while, let no process use what a client has revoked", async () => {
  const answers = fc.array(fc.constantFrom(0, 10, 40, 150, 1000), { minLength: 1, maxLength: 12 });
  const pauses = fc.array(fc.integer({ min: 0, max: 9000 }), { minLength: 1, maxLength: 6 });
  let inAdvance = 0;
  await fc.assert(
    fc.asyncProperty(answers, pauses, async (answersMs, pausesMs) => {
      const run = simulate(database.sql);
      const untilMs = 25_000;
      let answer = 0;
      const slow = run.queue("sync", 3, () => answersMs[answer++ % answersMs.length]!);
      (async () => {
        while (run.clock.now() < untilMs) {
          await run.take(slow, "sync");
          await run.clock.sleep(100);
        }
      })();
      const clients = run.queue("client", 5);
      (async () => {
        for (let burst = 0; run.clock.now() < untilMs; burst++) {
          await run.clock.sleep(2000 + pausesMs[burst % pausesMs.length]!);
          await Promise.all(Array.from({ length: 5 }, () => run.take(clients, "client")));
        }
      })();
      await run.clock.run(untilMs);
      inAdvance += run.inAdvance();
      expect(
        mostWithin(
          run.grants.map(({ at }) => at),
          WINDOW_MS,
        ),
      ).toBeLessThanOrEqual(5);
    }),
    { numRuns: 15 * fuzzRuns },
  );
  expect(inAdvance).toBeGreaterThan(0);
});

test("I4: a revoked reservation that is returned frees nothing, also if a client has its place", async () => {
  const ms = (min: number, max: number) => fc.integer({ min, max });
  await fc.assert(
    fc.asyncProperty(
      ms(300, 360),
      ms(300, 700),
      ms(0, 500),
      ms(0, 100),
      async (secondMs, clientMs, backMs, laterMs) => {
        const inAdvance = { do: "sync" as const, calls: 1, share: 5, ahead: 2 };
        const client = { do: "client" as const, reachMs: 300 };
        const pass = (ms: number) => ({ do: "pass" as const, ms });
        const history: Action[] = [
          { ...inAdvance, calls: 5, ahead: 0 },
          pass(991),
          inAdvance,
          pass(secondMs),
          // The last of these begins a window after the first of those before, as a client's request would.
          inAdvance,
          pass(clientMs),
          { ...client, calls: 1 },
          pass(backMs),
          { do: "give back revoked" },
          pass(laterMs),
          { ...client, calls: 5 },
        ];
        const { calls, counted } = await play(history);
        expect(mostWithin(slotsOf(calls), WINDOW_MS)).toBeLessThanOrEqual(5);
        expect(counted!.sync + counted!.client).toBe(calls.length);
      },
    ),
    { numRuns: 60 * fuzzRuns },
  );
});

test("a sync gets reservations in advance only for a key that nobody else asks for", async () => {
  const sync = { do: "sync" as const, calls: 1, share: 3, ahead: 2 };
  const second = { do: "pass" as const, ms: 1000 };
  const client = { do: "client" as const, calls: 1, reachMs: 300 };
  const inAdvance = (calls: Call[]) => calls.filter(({ revocations }) => revocations !== undefined).length;
  const alone = (await play([sync, second, sync])).calls;
  expect(inAdvance(alone)).toBe(4);
  // Evenly spaced, so that a request of a sync finds the next one when it needs it.
  expect(slotsOf(alone).map(Math.round)).toEqual([20, 353, 687, 1020, 1353, 1687]);
  expect(inAdvance((await play([client, sync])).calls)).toBe(0);
  expect(inAdvance((await play([{ ...sync, kind: "live", ahead: 0 }, second, sync])).calls)).toBe(0);
  expect(inAdvance((await play([client, { do: "pass", ms: 5100 }, sync])).calls)).toBe(2);
  // One that is revoked does not count in the month.
  const { calls, counted } = await play([sync, { do: "pass", ms: 100 }, client, second]);
  expect(inAdvance(calls)).toBe(0);
  expect(counted).toEqual({ sync: 1, client: 1 });
});

test("I4: a live call that must ask again before its turn gets no reservation, however slow its process is", async () => {
  const live = { do: "sync" as const, kind: "live" as const, calls: 1, reachMs: 130, share: 3 };
  const { calls } = await play([
    { do: "client", calls: 1, reachMs: 300 },
    { do: "pass", ms: 60 },
    live,
    { do: "client", calls: 3, reachMs: 300 },
    { do: "pass", ms: 40 },
    live,
  ]);
  expect(calls).toHaveLength(5);
});

test("I4: a late request counts from when it was sent, for everything that is reserved after that is known", async () => {
  const steps = fc.array(
    fc.record({
      calls: fc.integer({ min: 0, max: 4 }),
      passMs: fc.integer({ min: 0, max: 600 }),
      late: fc.nat(9),
    }),
    { minLength: 2, maxLength: 25 },
  );
  await fc.assert(
    fc.asyncProperty(steps, async (history) => {
      const key = `late:${crypto.randomUUID()}`;
      const sent: { slot: number; at: number }[] = [];
      let now = 0;
      for (const { calls, passMs, late } of history) {
        const [row] = await database.sql<{ reservations: (number | null)[] }[]>`
          select to_json(reservations) as reservations
          from quota_acquire(${key}, ${LIMITS}::source_limits, 'client', 5, ${`{${Array(calls).fill(300)}}`}, '{}', ${EPOCH_MS + now})`;
        for (const slot of row!.reservations.flatMap((booked) => booked ?? [])) {
          const at = slot - EPOCH_MS;
          expect(sent.filter((other) => at - other.at < WINDOW_MS).length).toBeLessThanOrEqual(4);
          sent.push({ slot, at });
        }
        now += passMs;
        const held = sent.at(-1 - late);
        if (!held || held.at > now) continue;
        await database.sql`select quota_report_late(${key}, ${held.slot}, ${EPOCH_MS + now})`;
        held.at = now;
      }
    }),
    { numRuns: 100 },
  );
});

test("I4: a sweep alone, which waits for each answer, is never over the limit, however long its requests take to arrive", async () => {
  const travel = fc.record({
    /** From its reservation to its arrival, and from there to its answer, ms. */
    toMs: fc.oneof(
      { weight: 3, arbitrary: fc.integer({ min: 0, max: 40 }) },
      fc.integer({ min: 0, max: 4000 }),
    ),
    backMs: fc.integer({ min: 0, max: 300 }),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(travel, { minLength: 12, maxLength: 40 }), async (trips) => {
      const key = `swept:${crypto.randomUUID()}`;
      let now = 0;
      const arrivals: number[] = [];
      for (const { toMs, backMs } of trips) {
        for (;;) {
          const [row] = await database.sql<{ reserved: number | null; next_at: number; margin: number }[]>`
            select reservations[1] as reserved, next_at, margin from quota_acquire(
              ${key}, ${LIMITS}::source_limits, 'sync', 3, '{0}', '{}', ${EPOCH_MS + now})`;
          if (row!.reserved === null) {
            now = Math.max(now + 1, row!.next_at - EPOCH_MS);
            continue;
          }
          now = row!.reserved - EPOCH_MS - row!.margin + toMs;
          arrivals.push(now);
          now += backMs;
          break;
        }
      }
      expect(mostWithin(arrivals, WINDOW_MS)).toBeLessThanOrEqual(5);
    }),
    { numRuns: 40 * fuzzRuns },
  );
});

test("requests are sent in the order of their reservations, never in the past, and never while the key is blocked", async () => {
  await fc.assert(
    fc.asyncProperty(actions, async (history) => {
      const { calls, blocks } = await play(history);
      expect(slotsOf(calls)).toEqual(slotsOf(calls).toSorted((a, b) => a - b));
      for (const call of calls) expect(call.from).toBeGreaterThanOrEqual(call.askedAt - 0.001);
      const blocked = calls.filter((call) =>
        blocks.some(({ from, until }) => from < call.from && call.from < until - 0.001),
      );
      expect(blocked).toEqual([]);
    }),
    { numRuns: 100 },
  );
});

test("sync never takes more than its share of a window, however often it asks", async () => {
  const pausesMs = fc.array(fc.oneof(fc.integer({ min: 0, max: 130 }), fc.integer({ min: 0, max: 700 })), {
    minLength: 10,
    maxLength: 60,
  });
  await fc.assert(
    fc.asyncProperty(pausesMs, fc.constantFrom(3, 5), async (pauses, share) => {
      const asks = { do: "sync" as const, calls: 5, share };
      const { calls } = await play(pauses.flatMap((ms) => [asks, { do: "pass" as const, ms }]));
      expect(mostWithin(slotsOf(calls), WINDOW_MS)).toBeLessThanOrEqual(share);
    }),
    { numRuns: 100 },
  );
});

/** One minute of a sync and of clients of two processes, each asking at random. */
async function minute(load: { clientsPerSecond: number; share: number; tables: number }) {
  const run = simulate(database.sql);
  const untilMs = 60_000;
  run.sync({ ...load, untilMs, latencyMs: () => 50 + Math.random() * 200 });
  const lanes = [run.queue("client", 5), run.queue("client", 5)];
  for (const lane of lanes) {
    (async () => {
      while (run.clock.now() < untilMs) {
        await run.clock.sleep((Math.random() * 2 * 1000 * lanes.length) / load.clientsPerSecond);
        run.take(lane, "client", { deadlineMs: 5000 });
      }
    })();
  }
  await run.clock.run(untilMs);
  const of = (kind: string) => run.grants.filter((grant) => grant.kind === kind);
  return { all: run.grants.map(({ at }) => at), sync: of("sync"), client: of("client") };
}

test("I4: proxies that are cut off from the control plane or stopped at any time, and others, keep one limit together", async () => {
  const cuts = fc.array(
    fc.record({
      proxy: fc.nat({ max: 3 }),
      way: fc.constantFrom("cut" as const, "deaf" as const),
      fromMs: fc.integer({ min: 1000, max: 20_000 }),
      lastsMs: fc.integer({ min: 10, max: 12_000 }),
    }),
    { maxLength: 6 },
  );
  // The first proxy stops at this time. Without the control plane it serves the requests that it has; another one starts.
  const stops = fc.option(fc.integer({ min: 3000, max: 12_000 }));
  let byThemselves = 0;
  await fc.assert(
    fc.asyncProperty(cuts, fc.integer({ min: 1, max: 4 }), stops, async (spells, count, stopsAt) => {
      await database.sql`truncate quota_proxies`;
      const run = simulate(database.sql);
      const untilMs = 30_000;
      const proxies = Array.from({ length: count }, () => run.proxy());
      run.sync({ share: 5, tables: 2, untilMs, latencyMs: () => 100 });
      const serve = async (proxy: SimulatedProxy, untilMs: number) => {
        while (run.clock.now() < untilMs) {
          const grant = await run.take(proxy.queue, "client", { deadlineMs: 20_000 });
          if (grant && proxy.way !== "open") byThemselves++;
          await run.clock.sleep(grant ? 20 : 500);
        }
      };
      for (const [index, proxy] of proxies.entries())
        serve(proxy, index === 0 && stopsAt !== null ? stopsAt + DRAIN_MS : untilMs);
      if (stopsAt !== null)
        run.clock.at(stopsAt, () => {
          const left = proxies[0]!;
          left.leave().then(() => (left.way = "cut"));
          serve(run.proxy(), untilMs);
        });
      for (const { proxy: index, way, fromMs, lastsMs } of spells) {
        const proxy = proxies[index % count]!;
        run.clock.at(fromMs, () => (proxy.way = way));
        run.clock.at(fromMs + lastsMs, () => (proxy.way = "open"));
      }
      await run.clock.run(untilMs);
      const sent = run.grants.map(({ at }) => at);
      expect(mostWithin(sent, WINDOW_MS)).toBeLessThanOrEqual(5);
    }),
    { numRuns: 12 },
  );
  await database.sql`truncate quota_proxies`;
  expect(byThemselves).toBeGreaterThan(0);
});

test("clients go first: while one waits, sync gets only its minimum", async () => {
  for (const clientsPerSecond of [1, 3, 6]) {
    const { all, sync, client } = await minute({ clientsPerSecond, share: 5, tables: 5 });
    expect(mostWithin(all, WINDOW_MS)).toBeLessThanOrEqual(5);
    const ahead = sync.filter(
      ({ at }, index) =>
        at - (sync[index - 1]?.at ?? -Infinity) < 6900 &&
        client.some((waiting) => waiting.askedAt < at - SYNC_REACH_MS && waiting.at > at),
    );
    expect(ahead).toEqual([]);
  }
});

test("while clients ask for three times the quota, sync gets one reservation in 10 s, and the quota is fully used", async () => {
  const { all, sync } = await minute({ clientsPerSecond: 15, share: 5, tables: 3 });
  expect(mostWithin(all, WINDOW_MS)).toBeLessThanOrEqual(5);
  expect(all.length).toBeGreaterThanOrEqual(0.97 * 300);
  const gaps = sync.map(({ at }, index) => at - (sync[index - 1]?.at ?? 0));
  expect(sync.length).toBeGreaterThanOrEqual(6);
  expect(Math.max(...gaps)).toBeLessThanOrEqual(10_000);
});

test("a client that asks once per second waits for one reservation of a sync that uses everything, not for five", async () => {
  for (const tables of [1, 5]) {
    const run = simulate(database.sql);
    const untilMs = 300_000;
    run.sync({ share: 5, tables, untilMs, latencyMs: () => 50 + Math.random() * 200 });
    const queue = run.queue("client", 5);
    (async () => {
      while (run.clock.now() < untilMs) {
        const rest = run.clock.sleep(1000);
        await run.take(queue, "client");
        await rest;
      }
    })();
    await run.clock.run(untilMs);
    const waits = run.grants.filter(({ kind }) => kind === "client").map(({ askedAt, at }) => at - askedAt);
    expect(waits.length).toBeGreaterThan(290);
    expect(quantile(waits, 0.95)).toBeLessThanOrEqual(250);
  }
});

test("sync alone gets its share, with one table or many", async () => {
  for (const share of [3, 5]) {
    for (const tables of [1, 5]) {
      const run = simulate(database.sql);
      run.sync({ share, tables, pages: 100, untilMs: 60_000, latencyMs: () => 150 });
      await run.clock.run(60_000);
      expect(run.grants).toHaveLength(100);
      expect(run.grants.at(-1)!.at + 150).toBeLessThanOrEqual((1.03 * 100_000) / share);
    }
  }
});

test("I4: a process that is starved of CPU keeps its rate with little more than one query per request", async () => {
  for (const kind of ["sync", "client"] as const) {
    const run = simulate(database.sql);
    const slow = run.queue(kind, 3, () => 20 + Math.random() * 40);
    const untilMs = 120_000;
    for (let table = 0; table < 6; table++) {
      (async () => {
        while (run.clock.now() < untilMs) {
          await run.take(slow, kind);
          await run.clock.sleep(150);
        }
      })();
    }
    await run.clock.run(untilMs);
    const sent = run.grants.map(({ at }) => at);
    // What the source counts: a call may be late by part of what the window is longer than a second.
    expect(mostWithin(sent, 1000)).toBeLessThanOrEqual(5);
    const perSecond = sent.length / 120;
    expect(perSecond).toBeGreaterThanOrEqual(kind === "sync" ? 0.95 * 3 : 4.3);
    expect(run.expired() / sent.length).toBeLessThanOrEqual(0.1);
  }
});

test("the delay of a process costs neither a burst of its calls nor any of sync's share", async () => {
  const { calls } = await play([{ do: "client", calls: 6, reachMs: 0, lateMs: 100 }]);
  expect(calls.map(({ from }) => from)).toEqual([0, 0, 0, 0, 0]);
  const asks = Array.from({ length: 600 }, (): Action[] => [
    { do: "sync", calls: 1, share: 3, lateMs: 100 },
    { do: "pass", ms: 10 },
  ]);
  const synced = await play(asks.flat());
  expect(synced.calls.length).toBeGreaterThanOrEqual((3 * 6000) / 1020);
});

test("I4: a reservation that had started when the key was blocked counts after the block", async () => {
  const call = { do: "client" as const, calls: 5, reachMs: 0, lateMs: 100 };
  const { calls } = await play([
    call,
    { do: "pass", ms: 50 },
    { do: "block", ms: 200 },
    { do: "pass", ms: 200 },
    call,
  ]);
  // The first five may be sent until 100.
  expect(calls.map(({ from }) => from)).toEqual([0, 0, 0, 0, 0]);
});

test("when reservations are released late, no later request overtakes earlier reservations", async () => {
  const call = { do: "client" as const, calls: 1, reachMs: 1100 };
  const { calls } = await play([
    { ...call, calls: 6 },
    { do: "give back", which: [0, 0, 0] },
    { do: "pass", ms: 100 },
    call,
  ]);
  expect(slotsOf(calls)).toEqual([20, 20, 1040, 1040]);
});

test("a clock that is set back blocks the key for one window, not for as long as it was set back", async () => {
  const take = (now: number) => database.sql<{ reservations: number[] }[]>`
    select to_json(reservations) as reservations from quota_acquire('clock', ${LIMITS}::source_limits, 'client', 5, '{1100}', '{}', ${now})`;
  await take(EPOCH_MS);
  const [row] = await take(EPOCH_MS - 3_600_000);
  expect(row!.reservations).toEqual([EPOCH_MS - 3_600_000 + 1040]);
});

test("I4: a process with a new path has a longer window, and others' calls forget nothing that is in it", async () => {
  const longer = LIMITS.replace("(1000,", "(1250,");
  const take = async (limits: string, now: number, calls: number) => {
    const [row] = await database.sql<{ reservations: (number | null)[] }[]>`
      select to_json(reservations) as reservations from quota_acquire('new path', ${limits}::source_limits, 'client', 5,
        ${`{${Array(calls).fill(300)}}`}, '{}', ${EPOCH_MS + now})`;
    return row!.reservations.map((arrivesBy) => arrivesBy && arrivesBy - EPOCH_MS);
  };
  expect(await take(longer, 0, 5)).toEqual([20, 20, 20, 20, 20]);
  expect(await take(LIMITS, 1100, 1)).toEqual([1120]);
  expect(await take(longer, 1101, 1)).toEqual([1290]);
});

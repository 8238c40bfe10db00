/** The rule of the rate limit, as SQL, on a virtual clock: any history, and simulated minutes of real wait queues. */
import fc from "fast-check";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { FIRM_MS, STANDING_MS, SYNC_REACH_MS } from "../../../core/limiter/backend";
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
  | { do: "stand"; lateMs: number }
  | { do: "use standing"; which: number; isRecorded: boolean }
  | { do: "give back standing"; which: number }
  | { do: "block"; ms: number }
  | { do: "pass"; ms: number };

const lateMs = fc.constantFrom(0, 20, 100);
const standing: fc.Arbitrary<Action>[] = [
  fc.record({ do: fc.constant("stand" as const), lateMs }),
  fc.record({ do: fc.constant("use standing" as const), which: fc.nat(), isRecorded: fc.boolean() }),
  fc.record({ do: fc.constant("give back standing" as const), which: fc.nat() }),
];
const actionsAnd = (others: fc.Arbitrary<Action>[]): fc.Arbitrary<Action[]> =>
  fc.array(
    fc.oneof(
      ...others,
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
const actions = actionsAnd([]);

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
  /** It was sent with a standing reservation. */
  isStanding?: boolean;
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
  let unused: { end: number; from: number; marginMs: number }[] = [];
  /** The ends of standing reservations whose use is not recorded yet. */
  let used: number[] = [];

  async function stand(isWanted: boolean, lateMs: number): Promise<void> {
    const ends = `{"{${used.map((end) => end + EPOCH_MS)}}"}`;
    used = [];
    const [row] = await sql<{ standing: number | null; margin: number }[]>`
      select standing, margin from quota_acquire_standing(1000, 5, ${`{${key}}`}, ${ends}, ${`{${lateMs}}`}, ${`{${isWanted}}`},
        ${EPOCH_MS + now})`;
    if (row!.standing === null) return;
    const [end, marginMs] = [row!.standing - EPOCH_MS, row!.margin];
    unused.push({ end, from: end - marginMs - STANDING_MS, marginMs });
  }

  async function giveBackStanding(some: typeof unused): Promise<void> {
    unused = unused.filter((one) => !some.includes(one));
    await take(
      { kind: "client", share: 5 },
      [],
      some.map(({ end }) => end),
    );
  }

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
        const recent = calls.filter((call) => call.slot > now - 500 && !call.isStanding);
        const late = recent[which % Math.max(1, recent.length)];
        if (!late) continue;
        await take(late, [], [late.slot]);
        calls = calls.filter((call) => call !== late);
      }
    }
    if (action.do === "give back revoked")
      for (const call of revoked.splice(0)) await take(call, [], [call.slot]);
    if (action.do === "stand") await stand(true, action.lateMs);
    if (action.do === "give back standing" && unused.length > 0)
      await giveBackStanding([unused[action.which % unused.length]!]);
    if (action.do === "use standing") {
      const usable = unused.filter(({ from }) => from <= now && now <= from + STANDING_MS);
      const one = usable[action.which % Math.max(1, usable.length)];
      if (!one) continue;
      unused = unused.filter((other) => other !== one);
      const times = { askedAt: now, from: now, slot: now + one.marginMs };
      calls.push({ kind: "client", share: 5, ...times, isStanding: true });
      used.push(one.end);
      if (action.isRecorded) await stand(false, one.marginMs);
    }
    if (action.do === "block") {
      // Its process knows.
      await giveBackStanding(unused);
      await sql`select quota_block(${key}, ${LIMITS}::source_limits, ${action.ms}, 'rate_limited', ${EPOCH_MS + now})`;
      // Calls that may have been sent stay.
      calls = calls.filter((call) => call.from <= now);
      blocks.push({ from: now, until: now + action.ms });
    }
  }
  await heardUntil(Infinity);
  await giveBackStanding(unused);
  if (used.length > 0) await stand(false, 0);
  const [counted] = await sql<{ sync: number; client: number }[]>`
    select sync_calls as sync, client_calls as client from quota_windows where key = ${key}`;
  return { calls, blocks, counted };
}

const slotsOf = (calls: Call[]) => calls.map(({ slot }) => slot);

test("I4: in any run, no window has a sixth request, wherever in its reservation each one is sent", async () => {
  await fc.assert(
    fc.asyncProperty(actionsAnd(standing), lateParts, async (history, parts) => {
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

const client = { do: "client" as const, calls: 1, reachMs: 300 };
const stand: Action = { do: "stand", lateMs: 0 };
const use: Action = { do: "use standing", which: 0, isRecorded: true };
const pass = (ms: number): Action => ({ do: "pass", ms });
/** Whether the last request of a history found a standing reservation that could be used. */
const stood = async (history: Action[]) => (await play(history)).calls.at(-1)?.isStanding === true;

test("I4: a standing reservation takes one place until its window is past, wherever it is used", async () => {
  const five: Action = { do: "client", calls: 5, reachMs: 0 };
  const { calls } = await play([
    client,
    stand,
    pass(100),
    five,
    pass(400),
    use,
    pass(619),
    five,
    pass(1),
    five,
  ]);
  // Four with it, then one place for each window that is past.
  const begun = calls.map(({ from, isStanding }) => (isStanding ? "standing" : Math.round(from)));
  expect(begun).toEqual([0, 100, 100, 100, "standing", 1119, 1120, 1120, 1120]);
  // With four others in the window, there is one place, and not one for each process.
  const both = await play([{ ...client, calls: 4 }, stand, pass(1), stand, pass(1), use, use]);
  expect(both.calls).toHaveLength(5);
});

test("a standing reservation counts in the month only if it is used", async () => {
  await fc.assert(
    fc.asyncProperty(actionsAnd(standing), async (history) => {
      // Without what a block voids, and without reservations in advance.
      const some = history.filter(({ do: what }) => what !== "block" && what !== "sync");
      const { calls, counted } = await play(some);
      expect(counted?.client ?? 0).toBe(calls.length);
    }),
    { numRuns: 60 * fuzzRuns },
  );
});

test("a standing reservation is made for a key with free places whose limit is the usual one, and for no others", async () => {
  expect(await stood([client, stand, pass(500), use])).toBe(true);
  // It begins when there is a place, if that is soon.
  const burst: Action = { do: "client", calls: 5, reachMs: 0 };
  expect(await stood([burst, pass(800), stand, pass(250), use])).toBe(false);
  expect(await stood([burst, pass(900), stand, pass(200), use])).toBe(true);
  // A key without a row, a process that varies too much, a pause, and the time when it is over.
  expect(await stood([stand, pass(10), use])).toBe(false);
  expect(await stood([client, { do: "stand", lateMs: 300 }, pass(10), use])).toBe(false);
  expect(await stood([client, { do: "block", ms: 5000 }, stand, pass(10), use])).toBe(false);
  expect(await stood([client, stand, pass(STANDING_MS + 1), use])).toBe(false);
  // Two are the most.
  const { calls } = await play([
    client,
    ...[stand, stand, stand].flatMap((one) => [one, pass(1)]),
    use,
    use,
    use,
  ]);
  expect(calls.filter(({ isStanding }) => isStanding)).toHaveLength(2);
});

test("no standing reservation is made for a key that is throttled or limited by its user, or beside a silent proxy", async () => {
  const sql = database.sql;
  const key = `refused:${crypto.randomUUID()}`;
  const now = EPOCH_MS;
  await sql`select from quota_acquire(${key}, ${LIMITS}::source_limits, 'client', 5, '{0}', '{}', ${now})`;
  const made = async (at = now + 100) => {
    const [row] = await sql<{ standing: number | null }[]>`
      select standing from quota_acquire_standing(1000, 5, ${`{${key}}`}, '{"{}"}', '{20}', '{true}', ${at})`;
    return row!.standing;
  };
  const set = (columns: Record<string, unknown>) =>
    sql`update quota_windows set ${sql(columns)} where key = ${key}`;
  for (const [columns, usual] of [
    [{ throttled_until: now + 60_000 }, { throttled_until: 0 }],
    [{ claimed_until: now + 60_000 }, { claimed_until: 0 }],
    [{ user_id: "airtable:usrBusy" }, { user_id: null }],
    // The first request of a minute has to store the counts.
    [{ counted_from: now - 60_000 }, { counted_from: now }],
  ] as const) {
    await set(columns);
    expect(await made(), Object.keys(columns)[0]).toBeNull();
    await set(usual);
  }
  await sql`insert into quota_proxies (id, share, seen_at) values (${key}, 2, ${now - 5000})`;
  expect(await made(), "a silent proxy").toBeNull();
  await sql`delete from quota_proxies where id = ${key}`;
  // Two that begin when a pause ends would be the same.
  await set({ blocked_until: now + 200 });
  expect(await made()).not.toBeNull();
  expect(await made(now + 150)).toBeNull();
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

test("steady clients, whose requests wait for no answer, take nothing of a sync's usual share", async () => {
  for (const everyMs of [500, 1000]) {
    const run = simulate(database.sql);
    const untilMs = 60_000;
    run.sync({ share: 3, tables: 2, untilMs, latencyMs: () => 100 });
    const queue = run.queue("client", 5, () => 20);
    (async () => {
      while (run.clock.now() < untilMs) {
        await run.take(queue, "client");
        await run.clock.sleep(everyMs);
      }
    })();
    await run.clock.run(untilMs);
    const sent = run.grants.map(({ at }) => at);
    expect(mostWithin(sent, WINDOW_MS)).toBeLessThanOrEqual(5);
    const of = (kind: string) => run.grants.filter((grant) => grant.kind === kind);
    expect(of("sync").length).toBeGreaterThanOrEqual(0.93 * 3 * 60);
    const waits = of("client").map(({ askedAt, at }) => at - askedAt);
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

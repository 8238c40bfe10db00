/**
 * Simulates a month of calls: bases at their normal cadence, bursts limited only by the budget, and clients limited by
 * nothing.
 */

import { nextMonth } from "../../core/control/budgets";
import { leftForSync, rateOf } from "../../core/control/budgets/budget-rule";
import { type Cadence, type CadenceFacts, cadenceOf } from "../../core/sync/pacing";

export interface MonthPlan {
  /** `2026-11` */
  month: string;
  callsPerMonth: number;
  reservePart: number;
  bases: {
    mode: CadenceFacts["mode"];
    notifications: CadenceFacts["notifications"];
    tables: number;
    sweepCalls: number;
    activePart: number;
    batchCalls: number;
    bursts: number;
    burstCalls: number;
  }[];
  clientPart: number;
  seed: number;
}

export interface MonthEnd {
  sync: number;
  client: number;
  refusedClients: number;
  /** The least that was left of the reserve before clients had used it. */
  leastLeftForClients: number;
  /** When sync last asked for calls. */
  latestMs: number;
  /** How long sync had no calls left. */
  spentMs: number;
}

/** How often workers read the budget. */
const LOOK_MS = 15_000;
const DAY_MS = 86_400_000;
/** The longest time without an event. */
const STEP_MS = 10 * 60_000;
/** The most calls that a base makes between two reads of the budget. */
const CALLS_PER_LOOK = (LOOK_MS / 1000) * 5;

/**
 * Calls of an idle base in a day: everything that falls due, the first of each kind at the start, and the upkeep of a
 * webhook.
 */
export function simulateDay(cadence: Cadence, sweepCalls: number): number {
  const times = (everyMs: number) => Math.ceil(DAY_MS / everyMs);
  const webhookCalls = 4;
  return (
    times(cadence.pollMs) +
    times(cadence.freshnessMs) +
    times(cadence.schemaMs) +
    times(cadence.sweepEveryMs) * sweepCalls +
    webhookCalls
  );
}

interface Task {
  atMs: number;
  run(atMs: number): number;
}

export function simulateMonth(plan: MonthPlan): MonthEnd {
  const startMs = Date.parse(`${plan.month}-01T00:00:00Z`);
  const endMs = nextMonth(new Date(startMs)).getTime();
  const random = randomOf(plan.seed);
  const reserve = Math.floor(plan.callsPerMonth * plan.reservePart);
  const cap = { callsPerMonth: plan.callsPerMonth, reserve };
  const used = { sync: 0, client: 0 };
  const end: MonthEnd = {
    sync: 0,
    client: 0,
    refusedClients: 0,
    leastLeftForClients: Infinity,
    latestMs: startMs,
    spentMs: 0,
  };
  const tasks: Task[] = [];

  /**
   * What a worker takes for one base: its part of the remaining budget, which is read again when the part is used up.
   */
  function take(calls: number, atMs: number): number {
    let granted = 0;
    while (granted < calls) {
      const part = Math.floor(leftForSync(cap, used) / plan.bases.length);
      if (part < 1) break;
      const now = Math.min(part, calls - granted, CALLS_PER_LOOK);
      used.sync += now;
      granted += now;
    }
    if (granted > 0) end.latestMs = atMs;
    const leftForClients = plan.callsPerMonth - used.sync - Math.max(reserve, used.client);
    if (used.client <= reserve) end.leastLeftForClients = Math.min(end.leastLeftForClients, leftForClients);
    return granted;
  }

  for (const base of plan.bases) {
    const cadence = (atMs: number, batchCalls: number) => {
      const isActive = random() < base.activePart;
      return cadenceOf({
        ...base,
        ratePerSecond: rateOf(leftForSync(cap, used), new Date(atMs), plan.bases.length),
        isActive,
        quietMs: isActive ? 0 : Number.POSITIVE_INFINITY,
        changesByItself: false,
        batchCalls,
      });
    };
    /** Repeats at the current pace, which is computed again during the wait. */
    const repeat = (calls: () => number, everyMs: (atMs: number) => number) => {
      let lastMs = Number.NEGATIVE_INFINITY;
      tasks.push({
        atMs: startMs,
        run(atMs) {
          if (atMs - lastMs >= everyMs(atMs)) {
            lastMs = atMs;
            take(calls(), atMs);
          }
          return atMs + Math.max(LOOK_MS, Math.min(STEP_MS, lastMs + everyMs(atMs) - atMs));
        },
      });
    };
    let meanRound = 1;
    if (base.mode === "live") {
      repeat(
        () => {
          const calls = random() < base.activePart ? base.batchCalls : 1;
          meanRound = Math.max(1, meanRound * 0.9 + calls * 0.1);
          return calls;
        },
        (atMs) => {
          const { pollMs, notificationGapMs } = cadence(atMs, meanRound);
          return base.notifications !== "none" && random() < base.activePart ? notificationGapMs : pollMs;
        },
      );
      repeat(
        () => 1,
        (atMs) => cadence(atMs, meanRound).freshnessMs,
      );
    }
    if (base.mode === "rapid")
      repeat(
        () => base.tables,
        (atMs) => cadence(atMs, 1).cycleMs,
      );
    repeat(
      () => base.sweepCalls,
      (atMs) => cadence(atMs, 1).sweepEveryMs,
    );
    repeat(
      () => 1,
      (atMs) => Math.max(60_000, cadence(atMs, 1).schemaMs),
    );
    for (let burst = 0; burst < base.bursts; burst++) {
      const atMs = startMs + random() * (endMs - startMs);
      tasks.push({
        atMs,
        run(at) {
          take(base.burstCalls, at);
          return Infinity;
        },
      });
    }
  }

  const clientCalls = Math.floor(reserve * plan.clientPart);
  const clientEveryMs = (endMs - startMs) / Math.max(1, clientCalls);
  // In groups, so that a month is not millions of steps.
  const lump = Math.max(1, Math.ceil(STEP_MS / clientEveryMs));
  tasks.push({
    atMs: startMs + clientEveryMs,
    run(atMs) {
      used.client += Math.min(lump, clientCalls - used.client);
      return used.client < clientCalls ? atMs + lump * clientEveryMs : Infinity;
    },
  });

  let nowMs = startMs;
  for (;;) {
    const next = tasks.reduce((first, task) => (task.atMs < first.atMs ? task : first));
    if (next.atMs >= endMs) break;
    if (leftForSync(cap, used) < plan.bases.length) end.spentMs += next.atMs - nowMs;
    nowMs = next.atMs;
    next.atMs = next.run(nowMs);
  }
  return { ...end, ...used };
}

/** mulberry32 */
function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

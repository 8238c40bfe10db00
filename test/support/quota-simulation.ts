/**
 * Simulates the rate limiter on a virtual clock, with the real wait queues and the real SQL: an hour in seconds.
 *
 * Time stands still while a statement runs, and jumps to the next timer when nothing else is left to do.
 */
import fc from "fast-check";
import type postgres from "postgres";
import { BasetideError } from "../../core/errors";
import type { QuotaClock } from "../../core/limiter";
import {
  type LimiterBackend,
  type Margin,
  type Priority,
  type Reservation,
  reservationOf,
  STANDING_MS,
  wholeMs,
} from "../../core/limiter/backend";
import { createFallbackLimiter, withFallback } from "../../core/limiter/fallback-limiter";
import { startHeartbeat } from "../../core/limiter/heartbeat";
import { type Revocations, watchRevocations } from "../../core/limiter/revocations";
import { createSchedulingDelay } from "../../core/limiter/scheduling-delay";
import { createWaitQueue, type WaitQueue } from "../../core/limiter/wait-queue";
import { LIMITS } from "./quota-limits";

/** Virtual time 0 on the server's scale, ms: a day in 2026. */
export const EPOCH_MS = 1_780_000_000_000;

/** When the next standing reservation is made after a request, ms. */
const RENEW_AFTER_MS = 10;

interface Alarm {
  atMs: number;
  wake: () => void;
}

export class VirtualClock implements QuotaClock {
  private time = 0;
  private underWay = 0;
  private onIdle = () => {};
  private alarms: Alarm[] = [];

  now = (): number => this.time;

  at = (atMs: number, wake: () => void): (() => void) => {
    const alarm = { atMs, wake };
    this.alarms.push(alarm);
    return () => {
      this.alarms = this.alarms.filter((other) => other !== alarm);
    };
  };

  /** Suspends the process: time passes, and nothing runs. */
  stall(ms: number): void {
    this.time += ms;
  }

  sleep = (ms: number): Promise<void> => new Promise((resolve) => this.at(this.time + ms, resolve));

  /** Holds the clock until `work` is done. */
  async during<T>(work: PromiseLike<T>): Promise<T> {
    this.underWay++;
    try {
      return await work;
    } finally {
      if (--this.underWay === 0) this.onIdle();
    }
  }

  /** Lets time pass until no timer is due before `untilMs`. */
  async run(untilMs: number): Promise<void> {
    for (;;) {
      await new Promise((resolve) => setImmediate(resolve));
      if (this.underWay > 0) {
        await new Promise<void>((resolve) => {
          this.onIdle = resolve;
        });
        continue;
      }
      const next = this.alarms.reduce<Alarm | undefined>(
        (first, alarm) => (first === undefined || alarm.atMs < first.atMs ? alarm : first),
        undefined,
      );
      if (next === undefined || next.atMs > untilMs) break;
      this.alarms = this.alarms.filter((alarm) => alarm !== next);
      this.time = Math.max(this.time, next.atMs);
      next.wake();
    }
    this.time = untilMs;
  }
}

/** What one process knows of revoked reservations, as if it had many keys. Asking for the count takes `answerMs`. */
export function virtualRevocations(db: postgres.Sql, clock: VirtualClock, answerMs = () => 0): Revocations {
  const ask = async () => {
    const serverNow = EPOCH_MS + clock.now();
    const [row] = await clock.during(
      db<{ count: number }[]>`select last_value::float8 as count from quota_revocations`.then((rows) => rows),
    );
    await clock.sleep(answerMs());
    revocations.learn(row!.count, serverNow);
  };
  const revocations = watchRevocations(clock, ask, 0);
  return revocations;
}

/**
 * The limiter backend of the control plane, at the clock's time.
 *
 * @param revocations of the process; absent: it makes no reservations in advance
 */
export function virtualBackend(
  db: postgres.Sql,
  clock: VirtualClock,
  key: string,
  kind: Priority,
  share: number,
  revocations?: Revocations,
): LimiterBackend {
  return {
    ...(revocations && {
      advance: {
        spacingMs: 1000 / share,
        get isWorthwhile() {
          return revocations.isSteady;
        },
        isValid: revocations.isValid,
      },
    }),
    standing: {
      soon: (renew) => clock.at(clock.now() + RENEW_AFTER_MS, renew),
      async renew(used, isWanted, margin) {
        const [row] = await clock.during(
          db<{ standing: number | null; margin: number }[]>`
            select standing, margin from quota_acquire_standing(1000, 5, ${`{${key}}`}, ${`{"{${used}}"}`},
              ${`{${wholeMs(margin)}}`}, ${`{${isWanted}}`}, ${EPOCH_MS + clock.now()})`.then((rows) => rows),
        );
        const { standing, margin: marginMs } = row!;
        return reservationOf(standing, marginMs + STANDING_MS, margin.delayMs + STANDING_MS, -EPOCH_MS);
      },
    },
    async acquire(withinMs, back, margin, { ahead = 0 } = {}) {
      const now = EPOCH_MS + clock.now();
      const [row] = await clock.during(
        db<{ reservations: (number | null)[]; next_at: number; margin: number; revocations: number }[]>`
          select to_json(reservations) as reservations, next_at, margin,
            (select last_value::float8 from quota_revocations) as revocations
          from quota_acquire(${key}, ${LIMITS}::source_limits, ${kind}, ${share}, ${`{${withinMs}}`}, ${`{${back}}`},
            ${now}, null, ${wholeMs(margin)}, false, ${ahead})`.then((rows) => rows),
      );
      const { reservations, next_at, margin: marginMs, revocations: count } = row!;
      revocations?.learn(count, now);
      const nextAt = next_at - EPOCH_MS;
      if (ahead > 0) revocations?.outstanding(nextAt);
      return {
        reservations: reservations.map((slot) =>
          reservationOf(slot, marginMs, margin.delayMs, -EPOCH_MS, count),
        ),
        nextAt,
      };
    },
    async isVoid(reservation) {
      const [row] = await clock.during(
        db`select blocked_until from quota_windows where key = ${key}`.then((rows) => rows),
      );
      return row!.blocked_until > reservation.arrivesBy - reservation.marginMs;
    },
    async reportLateSend(reservation) {
      await clock.during(
        db`select quota_report_late(${key}, ${reservation.arrivesBy}, ${EPOCH_MS + clock.now()}, ${reservation.marginMs})`.then(
          (rows) => rows,
        ),
      );
    },
  };
}

/** The backend as seen by a process that receives each answer with this delay. */
export function slowed(backend: LimiterBackend, clock: VirtualClock, answerMs: () => number): LimiterBackend {
  const late = async <T>(answer: Promise<T>): Promise<T> => {
    const made = await answer;
    await clock.sleep(answerMs());
    return made;
  };
  return {
    ...backend,
    standing: backend.standing && {
      ...backend.standing,
      renew: (...wanted) => late(backend.standing!.renew(...wanted)),
    },
    acquire: (...wanted) => late(backend.acquire(...wanted)),
  };
}

export interface Grant {
  kind: Priority;
  /** When it was requested and granted, virtual ms. */
  askedAt: number;
  at: number;
}

export interface Simulation {
  clock: VirtualClock;
  grants: Grant[];
  /** Reservations that expired before their processes used them. */
  expired(): number;
  /** Reservations that were made in advance and found valid. */
  inAdvance(): number;
  /** A wait queue of a separate process, which receives each answer with this delay. */
  queue(kind: Priority, share: number, answerMs?: () => number): WaitQueue;
  /** A proxy, with a fallback limiter for the time when it cannot reach the control plane. */
  proxy(): SimulatedProxy;
  /** Waits in a wait queue and records the grant; null if it was rejected or aborted. */
  take(
    lane: WaitQueue,
    kind: Priority,
    options?: { deadlineMs?: number; signal?: AbortSignal },
  ): Promise<Grant | null>;
  /** Sweeps this many tables at once, page after page, until `untilMs` or until `pages` pages were requested. */
  sync(options: {
    share: number;
    tables: number;
    pages?: number;
    untilMs: number;
    latencyMs: () => number;
  }): void;
  block(ms: number): Promise<void>;
}

export interface SimulatedProxy {
  queue: WaitQueue;
  /** How it is separated from the control plane; `deaf`: its messages arrive there, and it receives no answers. */
  way: "open" | "cut" | "deaf";
  /** It takes no more requests, and serves those that it has. */
  leave(): Promise<void>;
}

let keys = 0;

export function simulate(db: postgres.Sql): Simulation {
  const clock = new VirtualClock();
  const key = `simulated:${++keys}:${crypto.randomUUID()}`;
  const grants: Grant[] = [];
  let expired = 0;
  let inAdvance = 0;

  function queue(kind: Priority, share: number, answerMs?: () => number): WaitQueue {
    const revocations = kind === "sync" ? virtualRevocations(db, clock, answerMs) : undefined;
    const counting = revocations && {
      ...revocations,
      get isSteady() {
        return revocations.isSteady;
      },
      isValid(reservation: Reservation) {
        const isValid = revocations.isValid(reservation);
        if (isValid) inAdvance++;
        return isValid;
      },
    };
    const backend = virtualBackend(db, clock, key, kind, share, counting);
    const slow = answerMs && slowed(backend, clock, answerMs);
    return createWaitQueue(kind, slow ?? backend, clock, createSchedulingDelay(), {
      onExpired: () => expired++,
    });
  }

  async function take(
    of: WaitQueue,
    kind: Priority,
    options: { deadlineMs?: number; signal?: AbortSignal } = {},
  ): Promise<Grant | null> {
    const askedAt = clock.now();
    const deadlineAt = askedAt + (options.deadlineMs ?? Infinity);
    try {
      await of.wait(deadlineAt, options.signal ?? new AbortController().signal);
    } catch {
      return null;
    }
    const grant = { kind, askedAt, at: clock.now() };
    grants.push(grant);
    return grant;
  }

  function proxy(): SimulatedProxy {
    const made: SimulatedProxy = { way: "open", queue: undefined as never, leave: () => heartbeat.leave() };
    async function over<T>(statement: () => Promise<T>): Promise<T> {
      if (made.way === "cut") throw new BasetideError("control_unavailable");
      const answer = await statement();
      if (made.way === "deaf") throw new BasetideError("control_unavailable");
      return answer;
    }
    const query = <T>(statement: PromiseLike<T>) => over(() => clock.during(statement.then((rows) => rows)));
    const shared = virtualBackend(db, clock, key, "client", 5);
    const heartbeat = startHeartbeat(
      {
        reach: () => over(async () => {}),
        async heartbeat(id) {
          const now = EPOCH_MS + clock.now();
          const [row] = await query(db`select quota_heartbeat(${id}, ${now}, 5, ${now}) as share`);
          return row!.share;
        },
        leave: async (id) => {
          await query(db`delete from quota_proxies where id = ${id}`);
        },
      },
      clock,
      `${key}:${crypto.randomUUID()}`,
      1000,
    );
    const window = createFallbackLimiter(clock, 1000);
    const local = () => {
      window.open(heartbeat.share, heartbeat.freeFrom);
      return window;
    };
    const backend = {
      acquire: (withinMs: number[], back: number[], margin: Margin) =>
        over(() => shared.acquire(withinMs, back, margin)),
      standing: {
        ...shared.standing!,
        renew: (used: number[], isWanted: boolean, margin: Margin) =>
          over(() => shared.standing!.renew(used, isWanted, margin)),
      },
      isVoid: (reservation: Reservation) => over(() => shared.isVoid(reservation)),
      reportLateSend: (reservation: Reservation) =>
        over(() => shared.reportLateSend(reservation)).catch(() => {}),
      rejoin: async () => {},
    };
    made.queue = createWaitQueue(
      "client",
      withFallback(backend, local, heartbeat, clock),
      clock,
      createSchedulingDelay(),
      { onExpired() {} },
    );
    return made;
  }

  return {
    clock,
    grants,
    expired: () => expired,
    inAdvance: () => inAdvance,
    queue,
    proxy,
    take,
    sync({ share, tables, pages = Infinity, untilMs, latencyMs }) {
      const syncQueue = queue("sync", share);
      let left = pages;
      for (let table = 0; table < tables; table++) {
        (async () => {
          while (clock.now() < untilMs && left-- > 0) {
            await take(syncQueue, "sync");
            await clock.sleep(latencyMs());
          }
        })();
      }
    },
    async block(ms) {
      await clock.during(
        db`select quota_block(${key}, ${LIMITS}::source_limits, ${ms}, 'rate_limited', ${EPOCH_MS + clock.now()})`.then(
          (rows) => rows,
        ),
      );
    },
  };
}

/** How late within its window each call is sent, 0 to 1, in turn. */
export const lateParts = fc.array(fc.constantFrom(0, 0.5, 1, 1, 1), { minLength: 1, maxLength: 7 });

/** The most times within any interval of `windowMs`, its end excluded. */
export function mostWithin(times: number[], windowMs: number): number {
  const sorted = times.toSorted((a, b) => a - b);
  let most = 0;
  let first = 0;
  sorted.forEach((time, index) => {
    while (sorted[first]! <= time - windowMs) first++;
    most = Math.max(most, index - first + 1);
  });
  return most;
}

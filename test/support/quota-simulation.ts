/**
 * The quota ledger on a clock that jumps: the real lanes and the real SQL, an hour in seconds.
 *
 * Time stands still while a statement is on its way, and jumps to the next timer once nothing else is to do.
 */
import fc from "fast-check";
import type postgres from "postgres";
import { BasetideError } from "../../core/errors";
import type { QuotaClock } from "../../core/limiter";
import {
  type Book,
  type CallKind,
  type Margin,
  type Place,
  placeOf,
  wholeMs,
} from "../../core/limiter/backend";
import { localWindow, withFallback } from "../../core/limiter/fallback-limiter";
import { startHeartbeat } from "../../core/limiter/heartbeat";
import { createDelay } from "../../core/limiter/margin";
import { createLane, type Lane } from "../../core/limiter/wait-queue";
import { LIMITS } from "./quota-limits";

/** Virtual time 0 on the server's scale, ms: a day in 2026. */
export const EPOCH_MS = 1_780_000_000_000;

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

  /** The process stands still: time passes, and nothing is done. */
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

  /** Lets time pass until nobody has an alarm before `untilMs`. */
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

/** The book of the control plane, asked at the clock's time. */
export function virtualBook(
  db: postgres.Sql,
  clock: VirtualClock,
  key: string,
  kind: CallKind,
  share: number,
): Book {
  return {
    async take(withinMs, back, margin) {
      const now = EPOCH_MS + clock.now();
      const [row] = await clock.during(
        db<{ slots: (number | null)[]; next_at: number; margin: number }[]>`
          select to_json(slots) as slots, next_at, margin from quota_take(${key}, ${LIMITS}::source_limits, ${kind}, ${share},
            ${`{${withinMs}}`}, ${`{${back}}`}, ${now}, null, ${wholeMs(margin)})`.then((rows) => rows),
      );
      const { slots, next_at, margin: marginMs } = row!;
      return {
        places: slots.map((slot) => placeOf(slot, marginMs, margin.delayMs, -EPOCH_MS)),
        nextAt: next_at - EPOCH_MS,
      };
    },
    async isVoid(place) {
      const [row] = await clock.during(
        db`select blocked_until from quota_windows where key = ${key}`.then((rows) => rows),
      );
      return row!.blocked_until > place.slot - place.marginMs;
    },
    async wentLate(place) {
      await clock.during(
        db`select quota_late(${key}, ${place.slot}, ${EPOCH_MS + clock.now()}, ${place.marginMs})`.then(
          (rows) => rows,
        ),
      );
    },
  };
}

/** The book as a process knows it that gets to each answer so much later. */
export function slowed(book: Book, clock: VirtualClock, answerMs: () => number): Book {
  return {
    ...book,
    async take(...wanted) {
      const booking = await book.take(...wanted);
      await clock.sleep(answerMs());
      return booking;
    },
  };
}

export interface Grant {
  kind: CallKind;
  /** When it was asked for and when it was had, virtual ms. */
  askedAt: number;
  at: number;
}

export interface Simulation {
  clock: VirtualClock;
  grants: Grant[];
  /** Places that their processes got to too late. */
  missed(): number;
  /** A lane of a process of its own, which gets to each answer so much later. */
  lane(kind: CallKind, share: number, answerMs?: () => number): Lane;
  /** A proxy, which stands in for a control plane that it cannot reach. */
  proxy(): SimulatedProxy;
  /** Waits in a lane and notes the grant; null when it was refused or called off. */
  take(
    lane: Lane,
    kind: CallKind,
    options?: { deadlineMs?: number; signal?: AbortSignal },
  ): Promise<Grant | null>;
  /** Sweeps with so many tables at once, page after page, until `untilMs` or `pages` pages are asked for. */
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
  lane: Lane;
  /** How it is cut off from the control plane; `deaf`: what it says arrives there, and it hears nothing. */
  way: "open" | "cut" | "deaf";
}

let keys = 0;

export function simulate(db: postgres.Sql): Simulation {
  const clock = new VirtualClock();
  const key = `simulated:${++keys}:${crypto.randomUUID()}`;
  const grants: Grant[] = [];
  let missed = 0;

  function lane(kind: CallKind, share: number, answerMs?: () => number): Lane {
    const book = virtualBook(db, clock, key, kind, share);
    const slow = answerMs && slowed(book, clock, answerMs);
    return createLane(kind, slow ?? book, clock, createDelay(), () => missed++);
  }

  async function take(
    of: Lane,
    kind: CallKind,
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
    const made: SimulatedProxy = { way: "open", lane: undefined as never };
    async function over<T>(statement: () => Promise<T>): Promise<T> {
      if (made.way === "cut") throw new BasetideError("control_unavailable");
      const answer = await statement();
      if (made.way === "deaf") throw new BasetideError("control_unavailable");
      return answer;
    }
    const query = <T>(statement: PromiseLike<T>) => over(() => clock.during(statement.then((rows) => rows)));
    const shared = virtualBook(db, clock, key, "client", 5);
    const heartbeat = startHeartbeat(
      {
        reach: () => over(async () => {}),
        async attend(id) {
          const now = EPOCH_MS + clock.now();
          const [row] = await query(db`select quota_attend(${id}, ${now}, 5, ${now}) as share`);
          return row!.share;
        },
        leave: async () => {},
      },
      clock,
      `${key}:${crypto.randomUUID()}`,
      1000,
    );
    const window = localWindow(clock, 1000);
    const local = () => {
      window.open(heartbeat.share, heartbeat.freeFrom);
      return window;
    };
    const book = {
      take: (withinMs: number[], back: number[], margin: Margin) =>
        over(() => shared.take(withinMs, back, margin)),
      isVoid: (place: Place) => over(() => shared.isVoid(place)),
      wentLate: (place: Place) => over(() => shared.wentLate(place)).catch(() => {}),
      reunite: async () => {},
    };
    made.lane = createLane(
      "client",
      withFallback(book, local, heartbeat, clock),
      clock,
      createDelay(),
      () => {},
    );
    return made;
  }

  return {
    clock,
    grants,
    missed: () => missed,
    lane,
    proxy,
    take,
    sync({ share, tables, pages = Infinity, untilMs, latencyMs }) {
      const syncLane = lane("sync", share);
      let left = pages;
      for (let table = 0; table < tables; table++) {
        (async () => {
          while (clock.now() < untilMs && left-- > 0) {
            await take(syncLane, "sync");
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

/** How late within its span each call goes out, 0 to 1, in turn. */
export const lateParts = fc.array(fc.constantFrom(0, 0.5, 1, 1, 1), { minLength: 1, maxLength: 7 });

/** Most times within any span of `windowMs`, its end not included. */
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

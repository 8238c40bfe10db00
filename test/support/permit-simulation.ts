/**
 * Simulates processes with the real permit holders and the real SQL on a virtual clock: minutes in a second.
 *
 * Each process has a clock of its own. Time stands still while a statement runs, and jumps to the next event when nothing else
 * is left to do. One simulation at a time: they share the database's table of processes.
 */
import type postgres from "postgres";
import type { QuotaClock } from "../../core/limiter";
import type { Priority, WaitOptions } from "../../core/limiter/base-queue";
import { type HeartbeatAnswer, PermitHolder, type Plane } from "../../core/limiter/permit-holder";
import type { PermitMessage } from "../../core/limiter/permit-set";

/** Virtual time 0 on the server's scale, ms: a day in 2026. */
export const EPOCH_MS = 1_780_000_000_000;
const LIMITS = { requestsPerWindow: 5, slowedPerWindow: 2, userRequestsPerWindow: 50, windowMs: 1000 };
const CALL_TIMEOUT_MS = 1000;
/** A process may stand still for as long as a lease between its last look at the clock and the request, and a proxy longer. */
const LONGEST_LATE_MS = 1500;
const PROXY_LATE_MS = 9000;
/** How often a connection tries to deliver what it could not. */
const LATE_MS = 100;
/** Events at one time, after which something repeats itself. */
const MOST_AT_ONCE = 2000;

/** How a process reaches the control plane; `deaf`: its messages arrive there, and it receives nothing. */
export type Way = "open" | "cut" | "deaf";

export interface Network {
  /** Time of a request to the source, ms, and how much it varies to both sides. */
  travelMs: number;
  jitterMs: number;
  /** Time of a statement, ms: from and to. */
  statementMs: [number, number];
  /** Average time between two standstills of a process, and their longest time, ms; 0: none. */
  stallEveryMs: number;
  stallMs: number;
}

export const LOOPBACK: Network = {
  travelMs: 80,
  jitterMs: 0,
  statementMs: [0.5, 3],
  stallEveryMs: 0,
  stallMs: 0,
};

interface Event {
  at: number;
  order: number;
  run: () => void;
}

export interface Sent {
  key: string;
  priority: Priority;
  askedAt: number;
  sentAt: number;
  arrivedAt: number;
}

/** A process that sends requests. */
export interface SimulatedProcess {
  way: Way;
  /** Waits for a permit and sends a request; null if it failed. */
  send(key: string, priority: Priority, options?: WaitOptions): Promise<Sent | null>;
  /** Stops at once, as if killed. */
  kill(): void;
  /** Stands still, before it does anything else. */
  stall(ms: number): void;
  readonly holder: PermitHolder;
}

export class World {
  now = 0;
  readonly sent: Sent[] = [];
  trades = 0;
  heartbeats = 0;
  readonly processes: SimulatedProcess[] = [];
  /** Requests of processes that were not killed, and that were neither sent nor failed. */
  waiting = 0;
  /** The control plane's server is down. */
  isDown = false;
  /** Processes do not stand still any longer. */
  isCalm = false;
  readonly #events: Event[] = [];
  #order = 0;
  #underWay = 0;
  readonly #db: postgres.Sql;
  readonly #network: Network;
  readonly random: () => number;
  readonly #listeners = new Map<string, (message: PermitMessage) => void>();

  constructor(db: postgres.Sql, network: Network, seed: number) {
    this.#db = db;
    this.#network = network;
    this.random = randomOf(seed);
  }

  async reset(): Promise<void> {
    await this
      .#db`truncate quota_holders, quota_keys, quota_permits, quota_wants, quota_blocks, quota_throttled`;
    await this.#db`update quota_epochs set opened_at = 0`;
  }

  at(at: number, run: () => void): () => void {
    const event = { at: Math.max(at, this.now), order: this.#order++, run };
    let index = this.#events.length;
    while (index > 0 && isAfter(this.#events[index - 1]!, event)) index--;
    this.#events.splice(index, 0, event);
    return () => {
      const found = this.#events.indexOf(event);
      if (found >= 0) this.#events.splice(found, 1);
    };
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.at(this.now + ms, resolve));
  }

  async run(untilMs: number): Promise<void> {
    let atOnce = 0;
    for (;;) {
      // What an event causes at once, and then what follows once requests are sent.
      for (let turn = 0; turn < 2; turn++) await new Promise((resolve) => setImmediate(resolve));
      if (this.#underWay > 0) continue;
      const next = this.#events[0];
      if (!next || next.at > untilMs) break;
      this.#events.shift();
      if (this.trades > 5 * this.sent.length + 300) throw new Error(`${this.trades} trades at ${this.now}`);
      if (next.at > this.now) atOnce = 0;
      else if (++atOnce > MOST_AT_ONCE) throw new Error(`a process does not stop working at ${this.now}`);
      this.now = Math.max(this.now, next.at);
      next.run();
    }
    this.now = untilMs;
  }

  /** Empties what a crash of the server empties. */
  async crash(): Promise<void> {
    await this.#during(this.#db`truncate quota_epochs, quota_keys, quota_permits, quota_wants`);
  }

  async #during<T>(work: PromiseLike<T>): Promise<T> {
    this.#underWay++;
    try {
      return await work;
    } finally {
      this.#underWay--;
    }
  }

  /** The source refuses a request of the key. */
  async refuse(process: SimulatedProcess, key: string, ms: number): Promise<void> {
    process.holder.queue(key).pause(ms);
    const time = EPOCH_MS + this.now;
    await this.#during(this.#db`
      select quota_block(${key}, '(1000,5,2,50,"{}")'::source_limits, ${ms}, ${process.holder.session}, 5, true, ${time})`);
    const rows = await this.#during(
      this.#db<{ session: string; message: PermitMessage }[]>`select * from quota_tell(${key}, ${time})`,
    );
    for (const { session, message } of rows) this.#tell(session, message);
  }

  #tell(session: string, message: PermitMessage): void {
    const [from, to] = this.#network.statementMs;
    this.at(this.now + (from + this.random() * (to - from)) / 2, () =>
      this.#listeners.get(session)?.(message),
    );
  }

  /** @param name of a proxy */
  process(name?: string): SimulatedProcess {
    const { random } = this;
    const network = this.#network;
    const skewMs = random() * 1e6;
    let busyUntil = 0;
    let isDead = false;
    let waiting = 0;
    const exec = (run: () => void): void => {
      if (isDead) return;
      if (busyUntil > this.now) this.at(busyUntil, () => exec(run));
      else run();
    };
    const clock: QuotaClock = {
      now: () => Math.max(this.now, lateUntil) + skewMs,
      // A little later, or rounding would make it too early.
      at: (atMs, wake) => this.at(atMs - skewMs + 0.001, () => exec(wake)),
      onceSent: (check) => void setImmediate(check),
    };
    /** While it stands still between its last look at the clock and the request, its clock goes on. */
    let lateUntil = 0;
    const stall = (ms: number) => {
      busyUntil = Math.max(busyUntil, this.now + ms);
    };
    if (network.stallEveryMs > 0) {
      const again = () => {
        if (this.isCalm) return;
        stall(random() * network.stallMs);
        if (!isDead) this.at(this.now + random() * 2 * network.stallEveryMs, again);
      };
      this.at(random() * 2 * network.stallEveryMs, again);
    }

    const latency = () =>
      network.statementMs[0] + random() * (network.statementMs[1] - network.statementMs[0]);
    const call = <T>(query: () => PromiseLike<T>): Promise<T> =>
      new Promise((resolve, reject) => {
        const way = process.way;
        const fail = () => exec(() => reject(new Error("away")));
        if (way === "cut" || this.isDown) return void this.at(this.now + CALL_TIMEOUT_MS, fail);
        // A process that stood still before a request asks after it.
        this.at(Math.max(this.now, lateUntil) + latency() / 2, async () => {
          if (this.isDown) return void this.at(this.now + CALL_TIMEOUT_MS, fail);
          // The database is closed when a test has taken too long.
          const result = await this.#during(query()).catch((error: { code?: string }) => {
            if (error.code !== "CONNECTION_ENDED") throw error;
          });
          if (result === undefined) return;
          if (way === "deaf" || process.way !== "open") return void this.at(this.now + CALL_TIMEOUT_MS, fail);
          this.at(this.now + latency() / 2, () => exec(() => resolve(result)));
        });
      });
    const db = this.#db;
    const time = () => EPOCH_MS + this.now;
    const plane: Plane = {
      heartbeat: (one) => {
        this.heartbeats++;
        return call(async () => {
          const [row] = await db<HeartbeatAnswer[]>`
            select * from quota_heartbeat(${one.name}, ${one.session}, ${one.isProxy}, ${one.seen}, ${one.owed},
              ${one.usesOwed}, 5, ${time()})`;
          return row!;
        });
      },
      trade: (session, { key, life, kind, want, most, given, rests, size, throttled, user = null }) => {
        this.trades++;
        return call(async () => {
          const rows = await db<{ session: string; message: PermitMessage }[]>`
            select * from quota_trade(${key}, ${session}, ${life}, ${kind}, ${want}, ${most},
              ${`{${given}}`}, ${`{${rests}}`}, ${size}, ${throttled}, ${user}, ${time()})`;
          for (const row of rows) if (row.session !== session) this.#tell(row.session, row.message);
          return rows.find((row) => row.session === session)?.message ?? null;
        }).then((message) => {
          if (!message) throw new Error("the session's lease has run out");
          return message;
        });
      },
      listen: async (session, onMessage) => {
        // The connection delivers late what it cannot deliver, or it ends.
        const deliver = (message: PermitMessage): void => {
          if (process.way === "open") exec(() => onMessage(message));
          else this.at(this.now + LATE_MS, () => deliver(message));
        };
        this.#listeners.set(session, deliver);
        return () => void this.#listeners.delete(session);
      },
      leave: (session) =>
        call(async () => {
          await db`select quota_end_session(${session}, ${time()})`;
        }),
    };
    const connections = {
      spreadMs: 2 * network.jitterMs,
      dropMs: 0,
      keepWarm() {},
      tryTake: () => ({ isOpen: true, [Symbol.dispose]() {} }) as never,
      take: async () => ({ isOpen: true, [Symbol.dispose]() {} }) as never,
    };
    const process: SimulatedProcess = {
      way: "open",
      kill: () => {
        if (!isDead) this.waiting -= waiting;
        isDead = true;
      },
      stall,
      holder: undefined as never,
      send: async (key, priority, options = {}) => {
        const askedAt = this.now;
        const count = (step: number) => {
          waiting += step;
          if (!isDead) this.waiting += step;
        };
        count(1);
        try {
          const { signal } = new AbortController();
          await process.holder.queue(key).wait(priority, signal, { connections, ...options });
        } catch {
          return null;
        } finally {
          count(-1);
        }
        const isLate = !this.isCalm && network.stallEveryMs > 0 && random() < 0.02;
        const longestMs =
          name !== undefined && network.stallMs > LONGEST_LATE_MS ? PROXY_LATE_MS : network.stallMs;
        const lateMs = isLate
          ? random() * (name === undefined ? Math.min(LONGEST_LATE_MS, longestMs) : longestMs)
          : 0;
        const sentAt = Math.max(this.now, lateUntil) + lateMs;
        if (isLate) {
          lateUntil = sentAt;
          busyUntil = Math.max(busyUntil, sentAt);
        }
        const arrivedAt = sentAt + network.travelMs + (random() * 2 - 1) * network.jitterMs;
        const one = { key, priority, askedAt, sentAt, arrivedAt };
        this.sent.push(one);
        return one;
      },
    };
    Object.assign(process, { holder: new PermitHolder(plane, clock, () => LIMITS, name) });
    this.processes.push(process);
    return process;
  }
}

function isAfter(a: Event, b: Event): boolean {
  return a.at > b.at || (a.at === b.at && a.order > b.order);
}

/** Returns a generator of numbers from 0 to 1. */
export function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** The most times within any interval of `windowMs`, its end excluded. */
export function mostWithin(times: number[], windowMs = 999.999): number {
  const sorted = times.toSorted((a, b) => a - b);
  let most = 0;
  let first = 0;
  sorted.forEach((time, index) => {
    while (sorted[first]! <= time - windowMs) first++;
    most = Math.max(most, index - first + 1);
  });
  return most;
}

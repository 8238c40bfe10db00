/**
 * Simulates processes with the real permit holders and the real SQL on a virtual clock: minutes in a second.
 *
 * Each process has a clock of its own. Time stands still while a statement runs, and jumps to the next event when nothing else
 * is left to do. One simulation at a time: they share the database's table of processes.
 */
import type postgres from "postgres";
import type { QuotaClock } from "../../core/limiter";
import type { Priority, WaitOptions } from "../../core/limiter/base-queue";
import {
  type HeartbeatAnswer,
  type HeartbeatCall,
  PermitHolder,
  type Plane,
} from "../../core/limiter/permit-holder";
import type { PermitMessage, Trade } from "../../core/limiter/permit-set";

/** Virtual time 0 on the server's scale, ms: a day in 2026. */
export const EPOCH_MS = 1_780_000_000_000;
const LIMITS = { requestsPerWindow: 5, slowedPerWindow: 2, userRequestsPerWindow: 50, windowMs: 1000 };
const CALL_TIMEOUT_MS = 1000;
const CONNECTION = { isOpen: true, [Symbol.dispose]() {} } as never;
const CONNECTIONS = { dropMs: 0, keepWarm() {}, tryTake: () => CONNECTION, take: async () => CONNECTION };
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
  readonly network: Network;
  readonly random: () => number;
  readonly listeners = new Map<string, (message: PermitMessage) => void>();

  constructor(db: postgres.Sql, network: Network, seed: number) {
    this.#db = db;
    this.network = network;
    this.random = randomOf(seed);
  }

  async reset(): Promise<void> {
    await this
      .#db`truncate quota_holders, quota_proxies, quota_keys, quota_permits, quota_wants, quota_blocks, quota_throttled`;
    await this
      .#db`insert into quota_epochs (opened_at) values (0) on conflict (is_only) do update set opened_at = 0`;
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
    await this.during(
      (db) => db`truncate quota_epochs, quota_holders, quota_keys, quota_permits, quota_wants`,
    );
  }

  /** Time stands still during a statement. @returns undefined once the test is over, which has closed the database */
  async during<T>(query: (db: postgres.Sql) => PromiseLike<T>): Promise<T | undefined> {
    this.#underWay++;
    try {
      return await query(this.#db);
    } catch (error) {
      if ((error as { code?: string }).code !== "CONNECTION_ENDED") throw error;
    } finally {
      this.#underWay--;
    }
  }

  /** The source refuses a request of the key. */
  async refuse(process: SimulatedProcess, key: string, ms: number): Promise<void> {
    process.holder.queue(key).pause(ms);
    const time = EPOCH_MS + this.now;
    const { session: own } = process.holder;
    await this.during(
      (db) =>
        db`select quota_block(${key}, '(1000,5,2,50,"{}")'::source_limits, ${ms}, ${own}, 5, true, ${time})`,
    );
    const rows = await this.during(
      (db) => db<{ session: string; message: PermitMessage }[]>`
        select distinct session, jsonb_build_object('key', key, 'life', life) || quota_state(key, ${time}) as message
        from quota_permits where key = ${key} and session is not null`,
    );
    this.tell(rows ?? []);
  }

  /** In an order that does not depend on the names of sessions, which are random: a seed plays the same history again. */
  tell(told: { session: string; message: PermitMessage }[]): void {
    const known = [...this.listeners.keys()];
    const inOrder = told.toSorted((a, b) => known.indexOf(a.session) - known.indexOf(b.session));
    for (const { session, message } of inOrder)
      this.at(this.now + this.latencyMs(), () => this.listeners.get(session)?.(message));
  }

  /** Time of a statement or an answer on its way. */
  latencyMs(): number {
    const [from, to] = this.network.statementMs;
    return (from + this.random() * (to - from)) / 2;
  }

  /** @param name of a proxy */
  process(name?: string): SimulatedProcess {
    const process = new SimulatedProcess(this, name);
    this.processes.push(process);
    return process;
  }
}

/** A process that sends requests. */
export class SimulatedProcess implements Plane {
  way: Way = "open";
  readonly holder: PermitHolder;
  readonly #world: World;
  readonly #isProxy: boolean;
  #busyUntil = 0;
  /** While it stands still between its last look at the clock and the request, its clock goes on. */
  #lateUntil = 0;
  #isDead = false;
  #waiting = 0;

  constructor(world: World, name?: string) {
    this.#world = world;
    this.#isProxy = name !== undefined;
    const skewMs = world.random() * 1e6;
    const clock: QuotaClock = {
      now: () => Math.max(world.now, this.#lateUntil) + skewMs,
      // A little later, or rounding would make it too early.
      at: (atMs, wake) => world.at(atMs - skewMs + 0.001, () => this.#exec(wake)),
      onceSent: (check) => void setImmediate(check),
    };
    const { stallEveryMs, stallMs } = world.network;
    const again = () => {
      if (world.isCalm) return;
      this.stall(world.random() * stallMs);
      if (!this.#isDead) world.at(world.now + world.random() * 2 * stallEveryMs, again);
    };
    if (stallEveryMs > 0) world.at(world.random() * 2 * stallEveryMs, again);
    this.holder = new PermitHolder(this, clock, () => LIMITS, name);
  }

  /** Stops at once, as if killed. */
  kill(): void {
    if (!this.#isDead) this.#world.waiting -= this.#waiting;
    this.#isDead = true;
  }

  /** Stands still, before it does anything else. */
  stall(ms: number): void {
    this.#busyUntil = Math.max(this.#busyUntil, this.#world.now + ms);
  }

  #exec(run: () => void): void {
    if (this.#isDead) return;
    if (this.#busyUntil > this.#world.now) this.#world.at(this.#busyUntil, () => this.#exec(run));
    else run();
  }

  /** Waits for a permit and sends a request; null if it failed. */
  async send(key: string, priority: Priority, options: WaitOptions = {}): Promise<Sent | null> {
    const world = this.#world;
    const { stallEveryMs, stallMs, travelMs, jitterMs } = world.network;
    const connections = { ...CONNECTIONS, spreadMs: 2 * jitterMs };
    const askedAt = world.now;
    this.#count(1);
    try {
      const { signal } = new AbortController();
      await this.holder.queue(key).wait(priority, signal, { connections, ...options });
    } catch {
      return null;
    } finally {
      this.#count(-1);
    }
    const isLate = !world.isCalm && stallEveryMs > 0 && world.random() < 0.02;
    const longestMs = this.#isProxy && stallMs > LONGEST_LATE_MS ? PROXY_LATE_MS : stallMs;
    const lateMs = world.random() * (this.#isProxy ? longestMs : Math.min(LONGEST_LATE_MS, longestMs));
    const sentAt = Math.max(world.now, this.#lateUntil) + (isLate ? lateMs : 0);
    if (isLate) {
      this.#lateUntil = sentAt;
      this.#busyUntil = Math.max(this.#busyUntil, sentAt);
    }
    const arrivedAt = sentAt + travelMs + (world.random() * 2 - 1) * jitterMs;
    const one = { key, priority, askedAt, sentAt, arrivedAt };
    world.sent.push(one);
    return one;
  }

  #count(step: number): void {
    this.#waiting += step;
    if (!this.#isDead) this.#world.waiting += step;
  }

  /** Runs a statement of the control plane, or fails when no answer arrives. */
  #call<T>(query: (db: postgres.Sql, time: number) => PromiseLike<T>): Promise<T> {
    const world = this.#world;
    return new Promise((resolve, reject) => {
      const { way } = this;
      const fail = () =>
        void world.at(world.now + CALL_TIMEOUT_MS, () => this.#exec(() => reject(new Error("away"))));
      if (way === "cut" || world.isDown) return fail();
      // A process that stood still before a request asks after it.
      world.at(Math.max(world.now, this.#lateUntil) + world.latencyMs(), async () => {
        if (world.isDown) return fail();
        const result = await world.during((db) => query(db, EPOCH_MS + world.now));
        if (result === undefined) return;
        if (way === "deaf" || this.way !== "open") return fail();
        world.at(world.now + world.latencyMs(), () => this.#exec(() => resolve(result)));
      });
    });
  }

  async heartbeat({ name, session, isProxy, seen, owed, usesOwed }: HeartbeatCall): Promise<HeartbeatAnswer> {
    this.#world.heartbeats++;
    const [row] = await this.#call(
      (db, time) => db<HeartbeatAnswer[]>`
        select * from quota_heartbeat(${name}, ${session}, ${isProxy}, ${seen}, ${owed}, ${usesOwed}, 5, ${time})`,
    );
    return row!;
  }

  async trade(session: string, trade: Trade): Promise<PermitMessage> {
    const { key, life, kind, want, most, given, rests, size, throttled, user = null } = trade;
    const world = this.#world;
    world.trades++;
    const rows = await this.#call(async (db, time) => {
      const messages = await db<{ session: string; message: PermitMessage }[]>`
        select * from quota_trade(${key}, ${session}, ${life}, ${kind}, ${want}, ${most}, ${`{${given}}`}, ${`{${rests}}`},
          ${size}, ${throttled}, ${user}, ${time})`;
      world.tell(messages.filter((row) => row.session !== session));
      return messages;
    });
    const own = rows.find((row) => row.session === session);
    if (!own) throw new Error("the session's lease has run out");
    return own.message;
  }

  async listen(session: string, onMessage: (message: PermitMessage) => void): Promise<() => void> {
    const world = this.#world;
    // The connection delivers late what it cannot deliver, or it ends.
    const deliver = (message: PermitMessage): void => {
      if (this.way === "open") this.#exec(() => onMessage(message));
      else world.at(world.now + LATE_MS, () => deliver(message));
    };
    world.listeners.set(session, deliver);
    return () => void world.listeners.delete(session);
  }

  async leave(session: string): Promise<void> {
    await this.#call((db, time) => db`select quota_end_session(${session}, ${time})`);
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

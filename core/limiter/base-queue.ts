/**
 * This process's requests for one base, and the permits that they wait for.
 *
 * Clients go first, then live changes, then other sync, then keys that the source has not accepted. Clients' requests of one
 * caller go in order; callers take turns, so that one with many requests does not delay the others (fair queuing).
 *
 * I4. A permit is used only with an established connection, so that no handshake lies between the permit and the source.
 */
import { offAbort, onAbort } from "../async";
import { BasetideError } from "../errors";
import type { HeldConnection } from "../http/connections";
import { BUSY_MS, type Demand, type Holding, type Permit, PermitSet } from "./permit-set";

export type Priority = "client" | "live" | "sync" | "unproven";
const RANKS: Record<Priority, number> = { client: 0, live: 1, sync: 2, unproven: 3 };

/** The part of a connection pool (core/http/connections) that a queue uses. */
export interface Connections {
  /** How much the travel times of two requests may differ, ms. */
  readonly spreadMs: number;
  /** How much longer requests may have taken that were sent before the path changed, ms. */
  readonly dropMs: number;
  /** Announces that requests are about to be sent. */
  keepWarm(): void;
  tryTake(): HeldConnection | undefined;
  take(signal: AbortSignal): Promise<HeldConnection>;
}

export interface WaitOptions {
  /** Requests per window that sync may use. */
  share?: number | undefined;
  /** For sync: the user of the source whose limit over all bases may matter, as a key. */
  user?: string | null | undefined;
  /** The request counts as the user's: it has the base's own key. */
  isOwnKey?: boolean | undefined;
  /** Callers take turns. */
  caller?: string | undefined;
  /** The pool that the request's connection comes from; absent if it needs none. */
  connections?: Connections | undefined;
  /** Resolves when the request may be sent as far as the caller is concerned. If it rejects, so does the wait. */
  complete?: Promise<void> | undefined;
  /** Latest time at which it is sent, ms on the clock. */
  deadlineAt?: number | undefined;
}

interface Waiter extends WaitOptions {
  priority: Priority;
  order: number;
  since: number;
  /** Requests of lower rounds go first; a caller has one request in each. */
  round: number;
  isComplete: boolean;
  isConnecting: boolean;
  held: HeldConnection | undefined;
  resolve(): void;
  reject(error: unknown): void;
}

/** The permits of a user of the source, which the bases of this process use in turn. */
export interface UserPermits {
  /** Uses a permit; if none is ready, calls `retry` in its turn. @param restMs as in `PermitSet.use` */
  tryUse(retry: BaseQueue, restMs: number): boolean;
}

/** The part of a permit's rest that covers the clocks, and a network that varies more than measured, ms. */
export const LEAST_MARGIN_MS = 20;
const MOST_SPREAD_MS = 180;
/** The least time between two requests of sync, as a part of its even spacing: it makes up for slow pages ... */
const LEAST_SPACING = 0.5;
/** ... and while clients ask, so that they find a permit at once. */
const EVEN_SPACING = 0.8;
/** The part of the permits that clients need on average that is kept for them while sync wants it. */
const KEPT_PART = 0.5;
/** Averages over this time how many permits clients need, ms. */
const AVERAGED_MS = 8000;
/** Keys that the source has not accepted: one request in this time as a client's, five in 25 s of what is left. */
const UNPROVEN_MS = 10_000;
const UNPROVEN_WINDOW_MS = 25_000;
const UNPROVEN_MOST = 5;

/** Never aborted: a connection that is being opened is useful to other requests, too. */
const NEVER = new AbortController().signal;

export class BaseQueue {
  readonly permits: PermitSet;
  readonly #of: Holding;
  readonly #windowMs: number;
  readonly #userOf: (user: string) => UserPermits;
  readonly #waiters: Waiter[] = [];
  #order = 0;
  #round = 0;
  /** The time from which sync is even again, and before which it sends nothing, ms on the clock. */
  #pacedAt = -Infinity;
  #syncAt = -Infinity;
  /** Sync's rate and user, by its latest request. */
  #sync = { share: 0, user: null as string | null, at: -Infinity };
  /** Clients' requests a second, and when that was computed. */
  #rate = 0;
  #ratedAt = -Infinity;
  #spreadMs = 0;
  #unprovenAt: number[] = [];
  /** When requests were sent, ms on the clock: the last few. */
  #sentAt: number[] = [];
  #cancelAlarm = () => {};

  constructor(
    of: Holding,
    limits: { key: string; requestsPerWindow: number; windowMs: number },
    userOf: (user: string) => UserPermits,
  ) {
    this.#of = of;
    this.#windowMs = limits.windowMs;
    this.#userOf = userOf;
    const set = { key: limits.key, size: limits.requestsPerWindow, isUser: false };
    this.permits = new PermitSet(
      of,
      set,
      () => this.#demand(),
      () => this.#onChange(),
    );
  }

  get isIdle(): boolean {
    return this.#waiters.length === 0 && this.permits.isIdle;
  }

  /** How many requests were sent in the last window and a half. */
  get sentLately(): number {
    const from = this.#of.clock.now() - 1.5 * this.#windowMs;
    return this.#sentAt.filter((at) => at >= from).length;
  }

  /**
   * Resolves when the request may be sent. It must then be sent at once, on the returned connection.
   *
   * @throws BasetideError `quota_timeout` (with `retryAfterSeconds`) once it is known that it would be sent after
   *   `deadlineAt`; the error of opening a connection; the signal's reason; that of `fail`
   */
  wait(priority: Priority, signal: AbortSignal, options: WaitOptions): Promise<HeldConnection | undefined> {
    if (signal.aborted) return Promise.reject(signal.reason);
    options.connections?.keepWarm();
    const { clock } = this.#of;
    const { deadlineAt = Infinity, complete } = options;
    return new Promise((resolve, reject) => {
      const end = () => {
        this.#waiters.splice(this.#waiters.indexOf(waiter), 1);
        offAbort(signal, leave);
        cancelDeadline();
      };
      const waiter: Waiter = {
        ...options,
        priority,
        order: this.#order++,
        since: clock.now(),
        round: this.#roundOf(options.caller),
        isComplete: complete === undefined,
        isConnecting: false,
        held: undefined,
        resolve: () => {
          end();
          resolve(waiter.held);
        },
        reject: (error) => {
          if (!this.#waiters.includes(waiter)) return;
          end();
          waiter.held?.[Symbol.dispose]();
          reject(error);
          this.work();
        },
      };
      const leave = () => waiter.reject(signal.reason);
      const cancelDeadline =
        deadlineAt === Infinity
          ? () => {}
          : clock.at(deadlineAt, () => waiter.reject(this.#timedOut(waiter)));
      onAbort(signal, leave);
      complete?.then(() => {
        waiter.isComplete = true;
        this.work();
      }, waiter.reject);
      this.#insert(waiter);
      this.#learn(waiter);
      this.work();
      this.#rejectLate();
    });
  }

  /** Rejects the requests of sync, or all, because the control plane is unavailable. */
  fail(error: unknown, isForClients: boolean): void {
    for (const waiter of [...this.#waiters])
      if (isForClients || waiter.priority === "sync" || waiter.priority === "live") waiter.reject(error);
  }

  pause(ms: number): void {
    this.permits.pause(ms);
    this.#rejectLate();
    this.work();
  }

  #roundOf(caller: string | undefined): number {
    const last = this.#waiters.findLast((other) => other.caller === caller);
    return Math.max(this.#round, (last?.round ?? -1) + 1);
  }

  #insert(waiter: Waiter): void {
    const behind = this.#waiters.findIndex(
      (other) =>
        RANKS[other.priority] > RANKS[waiter.priority] ||
        (other.priority === waiter.priority && other.round > waiter.round),
    );
    this.#waiters.splice(behind < 0 ? this.#waiters.length : behind, 0, waiter);
  }

  #learn({ priority, share = 1, user = null, connections, since }: Waiter): void {
    this.#spreadMs = Math.min(MOST_SPREAD_MS, connections?.spreadMs ?? 0);
    if (priority === "client") {
      this.#rate = this.#rateAt(since) + 1000 / AVERAGED_MS;
      this.#ratedAt = since;
    } else if (priority !== "unproven") this.#sync = { share, user, at: since };
  }

  #rateAt(now: number): number {
    return this.#rate * Math.exp((this.#ratedAt - now) / AVERAGED_MS);
  }

  get #restMs(): number {
    return this.#windowMs + LEAST_MARGIN_MS + this.#spreadMs;
  }

  #demand(): Demand {
    const now = this.#of.clock.now();
    const count = (...kinds: Priority[]) =>
      this.#waiters.filter(({ priority }) => kinds.includes(priority)).length;
    const clients = count("client") + Number(this.#isUnprovenDue(now) && count("unproven") > 0);
    const { size } = this.permits;
    const isSyncing = count("sync", "live") > 0 || now - this.#sync.at < BUSY_MS;
    if (clients > 0 || (!isSyncing && count("unproven") === 0)) {
      const kept = Math.round((KEPT_PART * this.#rateAt(now) * this.#restMs) / 1000);
      return { kind: "client", waiting: clients, steady: 0, kept, reserved: 0, most: size, user: null };
    }
    if (!isSyncing)
      return { kind: "unproven", waiting: 1, steady: 0, kept: 0, reserved: 0, most: size, user: null };
    // A tenth of a permit less makes no difference that matters.
    const steady = Math.min(size, Math.ceil((this.#share * this.#restMs) / this.#windowMs - 0.1));
    const reserved = Math.min(1, count("live"));
    return {
      kind: "sync",
      waiting: count("sync", "live"),
      steady,
      kept: 0,
      reserved,
      most: steady,
      user: this.#sync.user,
    };
  }

  #onChange(): void {
    if (this.permits.pausedUntil > this.#of.clock.now()) this.#rejectLate();
    this.work();
  }

  /** Sends what may be sent. */
  work(): void {
    this.#cancelAlarm();
    for (;;) {
      const now = this.#of.clock.now();
      if (!this.#of.isValid()) break;
      const waiter = this.#next(now);
      const permit = waiter && this.permits.ready(now, waiter.connections?.dropMs);
      if (!waiter || !permit || !this.#isConnected(waiter)) {
        if (waiter?.isConnecting) continue;
        break;
      }
      if (!this.#useUsers(waiter)) break;
      this.#use(waiter, permit, now);
    }
    this.#setAlarm();
    this.permits.settle();
  }

  /** Returns the first request that may be sent now, if it gets a permit. */
  #next(now: number): Waiter | undefined {
    if (this.#isUnprovenDue(now)) {
      const due = this.#waiters.find(({ priority }) => priority === "unproven");
      if (due?.isComplete && !due.isConnecting) return due;
    }
    for (const waiter of this.#waiters) {
      if (!waiter.isComplete || waiter.isConnecting) continue;
      const { priority } = waiter;
      if (priority === "client") return waiter;
      if (!this.#of.isConnected && priority !== "unproven") continue;
      if (priority === "unproven") return this.#isRoomForUnproven(now) ? waiter : undefined;
      return now >= this.#paceFrom() ? waiter : undefined;
    }
    return undefined;
  }

  #isUnprovenDue(now: number): boolean {
    return now - (this.#unprovenAt.at(-1) ?? -Infinity) >= UNPROVEN_MS;
  }

  #isRoomForUnproven(now: number): boolean {
    const recent = this.#unprovenAt.filter((at) => at > now - UNPROVEN_WINDOW_MS);
    const unused = this.permits.readyTimes().filter((at) => at <= now).length;
    return (
      recent.length < UNPROVEN_MOST &&
      (unused > this.permits.size / 2 || this.permits.held < this.permits.size)
    );
  }

  /** The time from which sync may send. */
  #paceFrom(): number {
    const spacingMs = this.#spacingMs();
    const isEven = this.permits.isContended;
    const least = isEven ? EVEN_SPACING : LEAST_SPACING;
    return Math.max(this.#syncAt + least * spacingMs, isEven ? -Infinity : this.#pacedAt - this.#windowMs);
  }

  /** Requests per window that sync may send: of a throttled base, its part of fewer. */
  get #share(): number {
    const { allowed, limit, size } = this.permits;
    return Math.min(limit, Math.max(1, Math.floor((this.#sync.share * allowed) / size)));
  }

  #spacingMs(): number {
    const byPermits = this.#restMs / Math.max(1, this.permits.held);
    return this.#share < this.permits.size ? Math.max(this.#windowMs / this.#share, byPermits) : byPermits;
  }

  /** Returns whether the request has, or needs no, connection; if not, opens one. */
  #isConnected(waiter: Waiter): boolean {
    const { connections } = waiter;
    if (!connections || waiter.held?.isOpen) return true;
    waiter.held = connections.tryTake();
    if (!waiter.held) void this.#connect(waiter, connections);
    return waiter.held !== undefined;
  }

  async #connect(waiter: Waiter, connections: Connections): Promise<void> {
    waiter.isConnecting = true;
    try {
      const held = await connections.take(NEVER);
      if (this.#waiters.includes(waiter)) waiter.held = held;
      else held[Symbol.dispose]();
    } catch (error) {
      waiter.reject(error);
    }
    waiter.isConnecting = false;
    this.work();
  }

  #useUsers(waiter: Waiter): boolean {
    const isSync = waiter.priority === "sync" || waiter.priority === "live";
    const user = isSync ? waiter.user : this.permits.user;
    if (!user || !this.#of.isConnected || waiter.priority === "unproven") return true;
    // A client's other key may be the user's, and is counted as far as possible; it may not be, and does not wait.
    return this.#userOf(user).tryUse(this, this.#restMs) || !(isSync || waiter.isOwnKey);
  }

  #use(waiter: Waiter, permit: Permit, now: number): void {
    if (waiter.priority === "unproven")
      this.#unprovenAt = [...this.#unprovenAt.slice(1 - UNPROVEN_MOST), now];
    else if (waiter.priority === "client") this.#round = Math.max(this.#round, waiter.round);
    else {
      this.#syncAt = now;
      this.#pacedAt = Math.max(now, this.#pacedAt) + this.#spacingMs();
    }
    this.#sentAt = [...this.#sentAt.slice(1 - 2 * this.permits.size), now];
    this.permits.use(permit, this.#restMs);
    waiter.resolve();
  }

  #setAlarm(): void {
    const [first] = this.#waiters;
    if (!first) return;
    const now = this.#of.clock.now();
    const ready = this.permits.readyTimes().at(0) ?? Infinity;
    const isPaced = first.priority === "sync" || first.priority === "live";
    const at = Math.max(ready + (first.connections?.dropMs ?? 0), isPaced ? this.#paceFrom() : -Infinity);
    if (at > now && at < Infinity) this.#cancelAlarm = this.#of.clock.at(at, () => this.work());
  }

  /** Returns when each of the waiting requests is sent at the latest, as far as is known, ms on the clock. */
  #servedAt(): (ahead: number) => number {
    const now = this.#of.clock.now();
    const { limit, pausedUntil } = this.permits;
    const ready = this.permits.readyTimes().map((at) => Math.max(at, now));
    // Others may pass on theirs at once.
    while (ready.length < limit) ready.unshift(Math.max(now, pausedUntil));
    return (ahead) => ready[ahead % ready.length]! + Math.floor(ahead / ready.length) * this.#restMs;
  }

  /** Rejects clients that cannot be served in time. */
  #rejectLate(): void {
    const servedAt = this.#servedAt();
    const late = this.#waiters.filter(({ deadlineAt = Infinity }, at) => servedAt(at) > deadlineAt);
    for (const waiter of late) waiter.reject(this.#timedOut(waiter));
  }

  #timedOut(waiter: Waiter): BasetideError {
    const waitMs = this.#servedAt()(this.#waiters.indexOf(waiter)) - this.#of.clock.now();
    const retryAfterSeconds = Math.max(1, Math.ceil(waitMs / 1000));
    return new BasetideError("quota_timeout", undefined, { details: { retryAfterSeconds } });
  }
}

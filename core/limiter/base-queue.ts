/**
 * This process's requests for one base, and the permits that they wait for.
 *
 * Clients go first, then live changes, then other sync. Clients' requests of one caller go in order; callers take turns, so
 * that one with many requests does not delay the others (fair queuing). Requests whose keys the source has not accepted are
 * rare.
 *
 * I4. A permit is used only with an established connection, so that no handshake lies between the permit and the source.
 */
import { offAbort, onAbort } from "../async";
import { BasetideError } from "../errors";
import type { Connections, HeldConnection } from "../http/connections";
import type { KeyLimits, PermitHolder } from "./permit-holder";
import { BUSY_MS, type Demand, PermitSet } from "./permit-set";
import { UnprovenPace } from "./unproven-pace";

export type Priority = "client" | "live" | "sync" | "unproven";
const RANKS: Record<Priority, number> = { client: 0, live: 1, sync: 2, unproven: 3 };

export interface WaitOptions {
  /** Requests per window that sync may use. */
  share?: number;
  /** For sync: the user of the source whose limit over all bases may matter, as a key. */
  user?: string | null | undefined;
  /** The request has the base's own key, so it also counts against the limit of that key's user. */
  isOwnKey?: boolean | undefined;
  /** Requests of different callers take turns; requests without a name count as one caller. */
  caller?: string | undefined;
  /** The pool that the request's connection comes from; absent if it needs none. */
  connections?: Connections | undefined;
  /**
   * Called when the request's turn is near, and never for one that is refused or leaves before. The request may be sent when
   * it has resolved; if it rejects, so does the wait.
   */
  prepare?: (() => Promise<void>) | undefined;
  /** Latest time at which it is sent, ms on the clock. */
  deadlineAt?: number;
}

interface Waiter extends WaitOptions {
  priority: Priority;
  /** Requests of lower rounds go first; a caller has one request in each. */
  round: number;
  preparation: "due" | "running" | "done";
  isConnecting: boolean;
  held: HeldConnection | undefined;
  resolve(): void;
  reject(error: unknown): void;
}

/** The part of a permit's rest that covers the clocks, and a network that varies more than measured, ms. */
export const LEAST_MARGIN_MS = 20;
const MOST_SPREAD_MS = 180;
/** The longest rest after a use, beyond the window, ms. */
export const LONGEST_MARGIN_MS = LEAST_MARGIN_MS + MOST_SPREAD_MS;
/** The least time between two requests of sync, as a part of its even spacing: it makes up for slow pages, but not at once. */
const SPACING = 0.6;
/** Clients leave sync one permit for one request after this time. `quota_is_overdue` has the same. */
const OVERDUE_MS = 7000;

/** Never aborted: a connection that is being opened is useful to other requests, too. */
const NEVER = new AbortController().signal;

export class BaseQueue extends PermitSet {
  readonly #windowMs: number;
  readonly #waiters: Waiter[] = [];
  #round = 0;
  /** The time from which sync is even again, and its last request, ms on the clock. */
  #pacedAt = -Infinity;
  #syncAt = -Infinity;
  /** Sync's rate and user, by its latest request. */
  #sync = { share: 0, user: null as string | null, at: -Infinity };
  /** Of the latest request. */
  #connections: Connections | undefined;
  readonly #unproven = new UnprovenPace();
  /** When requests were sent, ms on the clock: the last few. */
  #sentAt: number[] = [];
  /** How long the last preparation took: the next begins so long before its request's turn, ms. */
  #preparationMs = 0;
  #cancelTurn = () => {};

  constructor(of: PermitHolder, key: string, limits: KeyLimits) {
    super(of, key, limits.requestsPerWindow, limits.slowedPerWindow);
    this.#windowMs = limits.windowMs;
  }

  override get isIdle(): boolean {
    return this.#waiters.length === 0 && super.isIdle;
  }

  /** How many requests were sent in the last window and a half. */
  get sentLately(): number {
    return this.#sentAt.filter((at) => at >= this.now - 1.5 * this.#windowMs).length;
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
    const { prepare, caller } = options;
    return new Promise((resolve, reject) => {
      const end = () => {
        this.#waiters.splice(this.#waiters.indexOf(waiter), 1);
        offAbort(signal, leave);
      };
      const last = this.#waiters.findLast((other) => other.caller === caller);
      const waiter: Waiter = {
        ...options,
        priority,
        round: Math.max(this.#round, (last?.round ?? -1) + 1),
        preparation: prepare ? "due" : "done",
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
        },
      };
      const leave = () => {
        waiter.reject(signal.reason);
        this.work();
      };
      onAbort(signal, leave);
      this.#insert(waiter);
      this.work();
    });
  }

  /** Rejects the requests of sync, or all, because the control plane is unavailable. */
  fail(error: unknown, isForClients: boolean): void {
    for (const waiter of [...this.#waiters]) if (isForClients || isSyncs(waiter)) waiter.reject(error);
    this.work();
  }

  #insert(waiter: Waiter): void {
    const { priority, round, share = 1, user = null, connections } = waiter;
    const behind = this.#waiters.findIndex(
      (other) =>
        RANKS[other.priority] > RANKS[priority] || (other.priority === priority && other.round > round),
    );
    this.#waiters.splice(behind < 0 ? this.#waiters.length : behind, 0, waiter);
    this.#connections = connections;
    if (isSyncs(waiter)) this.#sync = { share, user, at: this.now };
    else if (priority === "client") this.#unproven.clientAsked(this.now);
  }

  protected override get spreadMs(): number {
    return Math.min(MOST_SPREAD_MS, this.#connections?.spreadMs ?? 0);
  }

  get #restMs(): number {
    return this.#windowMs + LEAST_MARGIN_MS + this.spreadMs;
  }

  protected demand(): Demand {
    const count = (...kinds: Priority[]) =>
      this.#waiters.filter(({ priority }) => kinds.includes(priority)).length;
    const clients = count("client") + (this.now >= this.#unprovenFrom ? Math.min(1, count("unproven")) : 0);
    const isSyncing = count("sync", "live") > 0 || this.now - this.#sync.at < BUSY_MS;
    if (clients > 0 || !isSyncing) return { kind: "client", waiting: clients, most: this.size };
    // A tenth of a permit less makes no difference that matters.
    const steady = Math.min(this.size, Math.ceil((this.#share * this.#restMs) / this.#windowMs - 0.1));
    const isOverdue = count("sync") > 0 && this.now >= this.#syncAt + OVERDUE_MS;
    const reserved = isOverdue ? 1 : Math.min(1, count("live"));
    const { user } = this.#sync;
    return { kind: "sync", waiting: count("sync", "live"), steady, reserved, most: steady, user };
  }

  /**
   * Sends what may be sent, one request after the other: if the process is suspended between the last look at the clock and
   * the write, it is one request that comes late.
   */
  work(): void {
    let turnAt = Math.min(this.#rejectLate(), this.#prepareNear());
    while (!this.isSending && this.of.isValid()) {
      const { waiter, at } = this.#next();
      if (!waiter || at > this.now) {
        this.#connectAhead();
        turnAt = Math.min(turnAt, at);
        break;
      }
      if (!this.#isConnected(waiter)) continue;
      if (!this.#useUsers(waiter)) break;
      this.#use(waiter);
    }
    this.#cancelTurn();
    this.#cancelTurn = turnAt < Infinity ? this.of.clock.at(turnAt, () => this.work()) : () => {};
    this.settle();
  }

  /** Returns the requests that may be sent, in their order. Of those with unproven keys, it is one. */
  #inOrder(): Waiter[] {
    const able = this.#waiters.filter((waiter) => this.of.isConnected || !isSyncs(waiter));
    const from = able.findIndex(({ priority }) => priority === "unproven");
    if (from < 0) return able;
    const [unproven] = able.splice(from) as [Waiter];
    return this.#unprovenFrom <= this.now ? [unproven, ...able] : [...able, unproven];
  }

  /**
   * Returns the next request that is prepared, and when it may be sent, ms on the clock. Those before it that are not, keep a
   * permit each: the order stays.
   */
  #next(): { waiter?: Waiter; at: number } {
    let ahead = 0;
    for (const waiter of this.#inOrder()) {
      if (waiter.preparation !== "done") ahead++;
      else if (!waiter.isConnecting) return { waiter, at: this.#turnAt(waiter, ahead) };
    }
    return { at: Infinity };
  }

  /** Returns when the request may be sent if `ahead` others go before it, ms on the clock. */
  #turnAt(waiter: Waiter, ahead = 0): number {
    const { priority, connections } = waiter;
    const from = isSyncs(waiter)
      ? this.#paceFrom(priority)
      : priority === "unproven"
        ? this.#unprovenFrom
        : -Infinity;
    return Math.max(from, this.readyAt(ahead) + (connections?.dropMs ?? 0));
  }

  /** Prepares the requests whose turn is near: no more than there are permits. Returns when the next is, ms on the clock. */
  #prepareNear(): number {
    if (!this.of.isValid()) return Infinity;
    for (const [ahead, waiter] of this.#inOrder().entries()) {
      if (waiter.preparation !== "due") continue;
      const at = this.#turnAt(waiter, ahead) - this.#preparationMs;
      if (at > this.now) return at;
      void this.#prepare(waiter);
    }
    return Infinity;
  }

  async #prepare(waiter: Waiter): Promise<void> {
    waiter.preparation = "running";
    const from = this.now;
    try {
      await waiter.prepare!();
      waiter.preparation = "done";
      this.#preparationMs = this.now - from;
    } catch (error) {
      waiter.reject(error);
    }
    this.work();
  }

  get #unprovenFrom(): number {
    return this.#unproven.from(this.allowed);
  }

  /**
   * The time from which sync may send. It makes up within a window for pages that took long, and at once for changes that someone
   * waits for; but evenly while clients ask, so that one of its permits is always about to be ready.
   */
  #paceFrom(priority: Priority): number {
    if (this.isContended) return this.#syncAt + this.#spacingMs();
    const from = this.#pacedAt - this.#windowMs;
    return priority === "live" ? from : Math.max(this.#syncAt + SPACING * this.#spacingMs(), from);
  }

  /** Requests per window that sync may send: of a throttled base, its part of fewer. */
  get #share(): number {
    const { allowed, limit, size } = this;
    return Math.min(limit, Math.max(1, Math.floor((this.#sync.share * allowed) / size)));
  }

  #spacingMs(): number {
    const byPermits = this.#restMs / Math.max(1, this.held);
    return this.#share < this.size ? Math.max(this.#windowMs / this.#share, byPermits) : byPermits;
  }

  /** Returns whether the request has, or needs no, connection; if not, opens one. */
  #isConnected(waiter: Waiter): boolean {
    const { connections } = waiter;
    if (!connections || waiter.held?.isOpen) return true;
    waiter.held = connections.tryTake();
    if (!waiter.held) void this.#connect(waiter, connections);
    return waiter.held !== undefined;
  }

  /** Opens the connection of the next request while it waits for its permit; not during a pause, in which it would grow old. */
  #connectAhead(): void {
    const [next] = this.#inOrder();
    const isAnyConnecting = this.#waiters.some(({ isConnecting }) => isConnecting);
    if (next && !isAnyConnecting && this.pausedUntil <= this.now) this.#isConnected(next);
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
    const user = isSyncs(waiter) ? waiter.user : this.user;
    if (!user || !this.of.isConnected || waiter.priority === "unproven") return true;
    // A client's other key may be the user's, and is counted as far as possible; it may not be, and does not wait.
    return this.of.user(user).tryUse(this, this.#restMs) || !(isSyncs(waiter) || waiter.isOwnKey);
  }

  #use(waiter: Waiter): void {
    const now = this.now;
    if (waiter.priority === "unproven") this.#unproven.sent(now, this.size);
    else if (waiter.priority === "client") this.#round = Math.max(this.#round, waiter.round);
    else {
      this.#syncAt = now;
      this.#pacedAt = Math.max(now, this.#pacedAt) + this.#spacingMs();
    }
    this.#sentAt = [...this.#sentAt.slice(1 - 2 * this.size), now];
    this.use(this.#windowMs + LEAST_MARGIN_MS);
    waiter.resolve();
  }

  /**
   * Rejects requests that cannot be served in time, even if other processes pass on all permits at once. Returns the next
   * deadline, ms on the clock.
   */
  #rejectLate(): number {
    let nextAt = Infinity;
    const pauseMs = Math.max(0, this.pausedUntil - this.now);
    for (const [nth, waiter] of [...this.#waiters].entries()) {
      const { deadlineAt = Infinity } = waiter;
      const waitMs = pauseMs + Math.floor(nth / this.limit) * this.#restMs;
      if (this.now + waitMs < deadlineAt) {
        nextAt = Math.min(nextAt, deadlineAt);
        continue;
      }
      const retryAfterSeconds = Math.max(1, Math.ceil(waitMs / 1000));
      waiter.reject(new BasetideError("quota_timeout", undefined, { details: { retryAfterSeconds } }));
    }
    return nextAt;
  }
}

function isSyncs({ priority }: Waiter): boolean {
  return priority === "sync" || priority === "live";
}

/**
 * The permits of one key that this process holds: which may be used, which others need more, and how many it needs itself.
 *
 * I4. A permit is used once in a window by the process that holds it, and rests for the window and the variation of the
 * network after the request was written: a process that stands still before it writes makes the rest longer, and nothing
 * else. It is passed on with the rest that is left, as a duration. The variation is the one that is known when the permit is
 * used again: it is measured by the first requests.
 */
import type { PermitHolder } from "./permit-holder";

/** What the control plane tells a process of a key. See `quota_trade` and `quota_recall` for the meaning of each part. */
export interface PermitMessage {
  key: string;
  life: number;
  /** Number, and rest in ms; negative since the permit may be used. */
  granted?: [number: number, restMs: number][];
  recalled?: number;
  shared?: true;
  wanted?: number;
  throttled?: number;
  throttledMs?: number;
  blockedMs?: number;
  user?: string | null;
}

/** What the requests of a key need at present. */
export interface Demand {
  kind: "client" | "sync";
  /** Requests that wait and may be sent with any permit. */
  waiting: number;
  /** For sync: how many permits its rate takes. Absent: as many as requests wait. */
  steady?: number;
  /** Permits that are kept although clients wait for them. */
  reserved?: number;
  /** Of all permits, those that processes may hold for this kind. */
  most: number;
  user?: string | null;
}

/** One call of `quota_trade`, which says what each part means. */
export interface Trade extends Pick<Demand, "kind" | "most" | "user"> {
  key: string;
  life: number;
  want: number;
  given: number[];
  rests: number[];
  size: number;
  throttled: number | null;
}

export interface Permit {
  number: number;
  /** From when on it may be used on a network that does not vary, ms on the clock. */
  readyAt: number;
  /** When it was granted, ms on the clock. */
  grantedAt: number;
  isInUse: boolean;
  /** It was granted for a request that waits, and has not been used since. */
  isNew: boolean;
}

/** A permit may be passed on if it may be used within this time, ms. `quota_is_resting` has the same. */
const NEAR_MS = 200;
/** How long a base counts as asked by clients, or by those of other processes, ms; permits return after twice the time. */
export const BUSY_MS = 5000;
/** How often permits are looked at, and how long after a call that has failed or brought nothing the next is made, ms. */
const AGAIN_MS = 1000;

export abstract class PermitSet {
  readonly key: string;
  /** How many permits the key has; and a throttled one, null for a user of the source. */
  readonly size: number;
  readonly #throttledSize: number | null;
  protected readonly of: PermitHolder;
  usedAt: number;
  /** The user of the source whose permits requests of this base take, too. */
  user: string | null = null;
  #permits: Permit[] = [];
  #life: number;
  /** A call has failed, and it is unknown what it has changed: what is held lapses with the next one. */
  #isUnsure = false;
  #isTrading = false;
  #asked = { kind: "", want: 0, at: -Infinity };
  #recalled = 0;
  #wanted = 0;
  #sharedUntil = -Infinity;
  #contendedUntil = -Infinity;
  #throttled = { most: 0, until: -Infinity };
  /** Pauses that this process has met, and those that the control plane knows, ms on the clock. */
  #pausedUntil = -Infinity;
  #blockedUntil = -Infinity;
  #cancelAlarm = () => {};

  constructor(of: PermitHolder, key: string, size: number, throttled: number | null) {
    this.of = of;
    this.key = key;
    this.size = size;
    this.#throttledSize = throttled;
    this.usedAt = this.now;
    this.#life = of.newLife();
  }

  protected abstract demand(): Demand;

  /** A request may be able to go, or something else has changed: sends what may be sent, and calls `settle`. */
  abstract work(): void;

  /** How much the travel times of two requests may differ, ms. */
  protected get spreadMs(): number {
    return 0;
  }

  protected get now(): number {
    return this.of.clock.now();
  }

  /** How many requests the source allows in a window at present. */
  get allowed(): number {
    return this.now < this.#throttled.until ? this.#throttled.most : this.size;
  }

  /** How many permits all processes may use at present; silent proxies have the others. */
  get limit(): number {
    if (this.#throttledSize === null || !this.of.isConnected) return this.size;
    return Math.max(1, this.allowed - this.of.silent);
  }

  get held(): number {
    return this.#usable().length;
  }

  /** Whether a request has a permit and is not written yet. */
  get isSending(): boolean {
    return this.#permits.some(({ isInUse }) => isInUse);
  }

  /** Whether it holds nothing and waits for nothing, and what it was granted after it had left the queue has been returned. */
  get isIdle(): boolean {
    const isDone =
      this.#permits.length === 0 && !this.#isTrading && !this.#isUnsure && this.#asked.want === 0;
    return isDone && this.now - Math.max(this.usedAt, this.#asked.at) >= 2 * BUSY_MS;
  }

  /** Whether clients have lately needed what this process holds. */
  get isContended(): boolean {
    return this.now < this.#contendedUntil;
  }

  /** No permit is ready before, ms on the clock. */
  get pausedUntil(): number {
    return Math.max(this.#pausedUntil, this.#blockedUntil);
  }

  #usable(): Permit[] {
    return this.#permits.filter(({ number }) => number <= this.limit);
  }

  /** Of some permits, those that are not in use; the one that has rested longest is the first. */
  #free(permits: Permit[]): Permit[] {
    return permits.filter(({ isInUse }) => !isInUse).sort((a, b) => a.readyAt - b.readyAt);
  }

  #readyAt(permit: Permit): number {
    return Math.max(permit.readyAt + this.spreadMs, this.pausedUntil);
  }

  /** Returns when a permit may be used, ms on the clock, after `ahead` others; Infinity if it holds no more that are not in use. */
  readyAt(ahead = 0): number {
    const permit = this.#free(this.#usable())[ahead];
    return permit ? this.#readyAt(permit) : Infinity;
  }

  /** Uses the permit that has rested longest for a request that is about to be written; it rests for `restMs` after that. */
  use(restMs: number): void {
    const permit = this.#free(this.#usable())[0]!;
    permit.isInUse = true;
    permit.isNew = false;
    this.usedAt = this.now;
    this.of.clock.onceSent(() => {
      permit.isInUse = false;
      permit.readyAt = this.now + restMs;
      this.work();
    });
  }

  pause(ms: number): void {
    this.#pausedUntil = Math.max(this.#pausedUntil, this.now + ms);
    this.work();
  }

  /** Takes what the control plane says. */
  take(message: PermitMessage): void {
    const { life, granted = [], recalled, shared, wanted, user, blockedMs = 0, throttledMs = 0 } = message;
    if (life !== this.#life) return;
    const { now } = this;
    const unused = { grantedAt: now, isInUse: false, isNew: true };
    for (const [number, restMs] of granted)
      this.#permits.push({ number, readyAt: now + restMs - this.spreadMs, ...unused });
    this.#asked.want = Math.max(0, this.#asked.want - granted.length);
    if (recalled) {
      this.#recalled = recalled;
      this.#contendedUntil = now + BUSY_MS;
    }
    if (shared) this.#sharedUntil = now + BUSY_MS;
    if (wanted !== undefined) this.#wanted = wanted;
    if (user !== undefined) {
      // Only what says everything of the key.
      this.user = user;
      this.#blockedUntil = now + blockedMs;
      this.#throttled = { most: message.throttled ?? 0, until: now + throttledMs };
    }
    this.work();
  }

  /** The process's lease has run out: it goes on with `owed` permits, those that it holds and others from `fromMs` on. */
  lapse(owed: number, fromMs: number): void {
    // Those of silent proxies are theirs.
    const own = this.#permits.filter(({ number }) => number <= this.allowed - this.of.silent);
    // With those that were used last: a request that was written late, after the lease, is one of those that it is owed.
    const usedAt = ({ isInUse, readyAt }: Permit) => (isInUse ? Infinity : readyAt);
    this.#permits = own.sort((a, b) => usedAt(b) - usedAt(a)).slice(0, owed);
    const unused = { grantedAt: this.now, isInUse: false, isNew: false };
    while (this.#permits.length < owed) this.#permits.push({ number: 0, readyAt: fromMs, ...unused });
  }

  /** The process has a new lease, and holds nothing. */
  renew(): void {
    this.#permits = [];
    this.#asked = { kind: "", want: 0, at: -Infinity };
    this.#recalled = this.#wanted = 0;
    this.#isUnsure = false;
    this.settle();
  }

  /** Returns what others need more, and asks for what is needed here. */
  settle(): void {
    if (this.#isTrading || !this.of.isConnected) return;
    this.#cancelAlarm();
    const { now } = this;
    const demand = this.demand();
    const isIdle = demand.waiting === 0 && now - this.usedAt >= 2 * BUSY_MS;
    const given = isIdle ? this.#free(this.#permits) : this.#spare(demand);
    const want = isIdle ? 0 : this.#want(demand, given);
    const { kind, want: asked, at } = this.#asked;
    const isNew = want > asked || (want > 0 && demand.kind !== kind);
    // While it has permits, what it lacks comes when others have used it.
    const pauseMs = this.held > given.length && !this.#isUnsure ? BUSY_MS : AGAIN_MS;
    const againAt =
      want > 0 || this.#isUnsure ? Math.max(at + pauseMs, this.pausedUntil - NEAR_MS) : Infinity;
    if (given.length > 0 || isNew || now >= againAt || (isIdle && asked > 0))
      return void this.#trade(demand, want, given);
    if (!this.isIdle)
      this.#wakeAt(Math.min(againAt, now + (this.#wanted + this.#recalled > 0 ? NEAR_MS / 2 : AGAIN_MS)));
  }

  #wakeAt(atMs: number): void {
    this.#cancelAlarm = this.of.clock.at(atMs, () => this.settle());
  }

  #want({ waiting, steady }: Demand, given: Permit[]): number {
    const held = this.#usable().filter((permit) => !given.includes(permit));
    const isShared = this.now < this.#sharedUntil;
    const ready = this.now - this.spreadMs;
    const soon = held.filter(
      ({ isNew, isInUse, readyAt }) => isShared || isNew || (!isInUse && readyAt <= ready),
    );
    const lacking = steady === undefined ? waiting - soon.length : steady - held.length;
    return Math.max(0, Math.min(this.limit - held.length, lacking));
  }

  /**
   * Returns the permits to return. One may be passed on shortly before it may be used. Before that, and during a pause, it is
   * worth nothing to others, who would pass it back and forth; and a request may come that asks anyway.
   */
  #spare({ kind, waiting, reserved = 0 }: Demand): Permit[] {
    const free = this.#free(this.#permits);
    // They would count as held for the process's kind, and keep it from others. One that was granted since the last heartbeat
    // may be one that the process has not heard of yet: that a silent proxy is back.
    const useless = free.filter(
      ({ number, grantedAt }) => number > this.limit && grantedAt < this.of.heardAt,
    );
    if (useless.length > 0) return useless;
    const near = free.filter((permit) => this.#readyAt(permit) <= this.now + NEAR_MS).length;
    const recalled = Math.max(0, Math.min(this.#recalled, near, free.length - reserved));
    // The first takes the others along, or each would be a call.
    const wanted = waiting === 0 && near > 0 ? Math.min(this.#wanted, free.length) : 0;
    const turns = kind === "client" && this.now < this.#sharedUntil ? free.length - waiting : 0;
    const count = Math.max(recalled, wanted, turns);
    this.#recalled = Math.max(0, this.#recalled - count);
    this.#wanted = Math.max(0, this.#wanted - count);
    // A client that waits elsewhere gets the one that has rested longest; those that wait here keep it.
    return count === recalled ? free.slice(0, count) : free.slice(-count);
  }

  async #trade({ kind, most, user }: Demand, want: number, given: Permit[]): Promise<void> {
    if (this.#isUnsure) {
      this.#life = this.of.newLife();
      this.#permits = [];
      given = [];
      this.#isUnsure = false;
    }
    const { key, size, now } = this;
    this.#permits = this.#permits.filter((permit) => !given.includes(permit));
    this.#isTrading = true;
    this.#asked = { kind, want, at: now };
    const trade = { key, size, throttled: this.#throttledSize, life: this.#life, kind, most, user, want };
    const numbers = given.map(({ number }) => number);
    const rests = given.map(({ readyAt }) => Math.max(readyAt + this.spreadMs, this.#pausedUntil) - now);
    const message = await this.of.trade({ ...trade, given: numbers, rests }).catch(() => null);
    this.#isTrading = false;
    if (message) return this.take(message);
    this.#isUnsure = true;
    this.#asked.want = 0;
    this.#wakeAt(now + AGAIN_MS);
  }
}

/**
 * The permits of one key that this process holds: which may be used, which others need more, and how many it needs itself.
 *
 * I4. A permit is used once in a window by the process that holds it, and rests for the window and the variation of the
 * network after the request was written: a process that stands still before it writes makes the rest longer, and nothing
 * else. It is passed on with the rest that is left, as a duration. The variation is the one that is known when the permit is
 * used again: it is measured by the first requests.
 */
import type { PermitHolder } from "./permit-holder";

/** For what a process asks for permits; `unproven`: for a client whose key the source has not accepted. */
export type PermitKind = "client" | "sync" | "unproven";

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
  kind: PermitKind;
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

/** One call of `quota_trade`. */
export interface Trade {
  key: string;
  size: number;
  isUser: boolean;
  life: number;
  demand: Demand;
  want: number;
  given: { number: number; restMs: number }[];
}

export interface Permit {
  number: number;
  /** From when on it may be used on a network that does not vary, ms on the clock. */
  readyAt: number;
  isInUse: boolean;
  /** It was granted for a request that waits, and has not been used since. */
  isNew: boolean;
}

/** A permit that may be used within this time is worth passing on, ms. `quota_is_resting` has the same. */
const NEAR_MS = 200;
/** How long a base counts as asked by clients, or by those of other processes, ms; permits return after twice the time. */
export const BUSY_MS = 5000;
/** How often permits are looked at, and how long after a call that has failed or brought nothing the next is made, ms. */
const AGAIN_MS = 1000;

export class PermitSet {
  readonly key: string;
  /** How many permits the key has. */
  readonly size: number;
  usedAt: number;
  /** The user of the source whose permits requests of this base take, too. */
  user: string | null = null;
  readonly #isUser: boolean;
  readonly #of: PermitHolder;
  readonly #spreadMs: () => number;
  readonly #demand: () => Demand;
  readonly #onChange: () => void;
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

  /**
   * @param spreadMs returns how much the travel times of two requests may differ
   * @param onChange called when a request may be able to go, or something else has changed; it calls `settle`
   */
  constructor(
    of: PermitHolder,
    { key, size, isUser }: { key: string; size: number; isUser: boolean },
    spreadMs: () => number,
    demand: () => Demand,
    onChange: () => void,
  ) {
    this.key = key;
    this.size = size;
    this.usedAt = of.clock.now();
    this.#life = of.newLife();
    this.#isUser = isUser;
    this.#of = of;
    this.#spreadMs = spreadMs;
    this.#demand = demand;
    this.#onChange = onChange;
  }

  /** How many requests the source allows in a window at present. */
  get allowed(): number {
    return this.#of.clock.now() < this.#throttled.until ? this.#throttled.most : this.size;
  }

  /** How many permits all processes may use at present; silent proxies have the others. */
  get limit(): number {
    if (this.#isUser || !this.#of.isConnected) return this.size;
    return Math.max(1, this.allowed - this.#of.silent);
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
    return isDone && this.#of.clock.now() - Math.max(this.usedAt, this.#asked.at) >= 2 * BUSY_MS;
  }

  /** Whether clients have lately needed what this process holds. */
  get isContended(): boolean {
    return this.#of.clock.now() < this.#contendedUntil;
  }

  /** No permit is ready before, ms on the clock. */
  get pausedUntil(): number {
    return Math.max(this.#pausedUntil, this.#blockedUntil);
  }

  /** The permits of this process that are not in use; the one that has rested longest is the first. */
  rested(): Permit[] {
    return this.#usable()
      .filter(({ isInUse }) => !isInUse)
      .sort((a, b) => a.readyAt - b.readyAt);
  }

  #usable(): Permit[] {
    const { limit } = this;
    return limit < this.size ? this.#permits.filter(({ number }) => number <= limit) : this.#permits;
  }

  /** Returns when a permit may be used, ms on the clock; Infinity if it holds none that is not in use. */
  readyAt(): number {
    return Math.max((this.rested()[0]?.readyAt ?? Infinity) + this.#spreadMs(), this.pausedUntil);
  }

  /** Uses the permit that has rested longest for a request that is about to be written; it rests for `restMs` after that. */
  use(restMs: number): void {
    const { clock } = this.#of;
    const permit = this.rested()[0]!;
    permit.isInUse = true;
    permit.isNew = false;
    this.usedAt = clock.now();
    clock.onceSent(() => {
      permit.isInUse = false;
      permit.readyAt = clock.now() + restMs;
      this.#onChange();
    });
  }

  pause(ms: number): void {
    this.#pausedUntil = Math.max(this.#pausedUntil, this.#of.clock.now() + ms);
  }

  /** Takes what the control plane says. */
  take(message: PermitMessage): void {
    const { life, granted = [], recalled, shared, wanted, user, blockedMs = 0, throttledMs = 0 } = message;
    if (life !== this.#life) return;
    const now = this.#of.clock.now();
    for (const [number, restMs] of granted)
      this.#permits.push({ number, readyAt: now + restMs - this.#spreadMs(), isInUse: false, isNew: true });
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
    this.#onChange();
  }

  /** The process's lease has run out: it goes on with `owed` permits, those that it holds and others from `fromMs` on. */
  lapse(owed: number, fromMs: number): void {
    // Those of silent proxies are theirs.
    const own = this.#permits.filter(({ number }) => number <= this.allowed - this.#of.silent);
    // With those that were used last: a request that was written late, after the lease, is one of those that it is owed.
    const usedAt = ({ isInUse, readyAt }: Permit) => (isInUse ? Infinity : readyAt);
    this.#permits = own.sort((a, b) => usedAt(b) - usedAt(a)).slice(0, owed);
    while (this.#permits.length < owed)
      this.#permits.push({ number: 0, readyAt: fromMs, isInUse: false, isNew: false });
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
    if (this.#isTrading || !this.#of.isConnected) return;
    this.#cancelAlarm();
    const now = this.#of.clock.now();
    // During a pause, a permit is worth nothing to anyone: those who lack one would pass it back and forth.
    if (this.pausedUntil > now + NEAR_MS) {
      if (!this.isIdle) this.#wakeAt(this.pausedUntil - NEAR_MS);
      return;
    }
    const demand = this.#demand();
    const isIdle = demand.waiting === 0 && now - this.usedAt >= 2 * BUSY_MS;
    const given = isIdle ? this.#permits.filter(({ isInUse }) => !isInUse) : this.#spare(now, demand);
    const want = isIdle ? 0 : this.#want(now, demand, given);
    const { kind, want: asked, at } = this.#asked;
    const isNew = want > asked || (want > 0 && demand.kind !== kind);
    // While it has permits, what it lacks comes when others have used it.
    const pauseMs = this.held > given.length && !this.#isUnsure ? BUSY_MS : AGAIN_MS;
    const againAt = want > 0 || this.#isUnsure ? at + pauseMs : Infinity;
    if (given.length > 0 || isNew || now >= againAt || (isIdle && asked > 0))
      return void this.#trade(demand, want, given);
    if (!this.isIdle)
      this.#wakeAt(Math.min(againAt, now + (this.#wanted + this.#recalled > 0 ? NEAR_MS / 2 : AGAIN_MS)));
  }

  #wakeAt(atMs: number): void {
    this.#cancelAlarm = this.#of.clock.at(atMs, () => this.settle());
  }

  #want(now: number, { waiting, steady }: Demand, given: Permit[]): number {
    const held = this.#usable().filter((permit) => !given.includes(permit));
    const room = Math.max(0, this.limit - held.length);
    if (steady !== undefined) return Math.min(room, Math.max(0, steady - held.length));
    const isShared = now < this.#sharedUntil;
    const ready = now - this.#spreadMs();
    const soon = held.filter(
      ({ isNew, isInUse, readyAt }) => isShared || isNew || (!isInUse && readyAt <= ready),
    );
    return Math.min(room, Math.max(0, waiting - soon.length));
  }

  /** Returns the permits to return. */
  #spare(now: number, { kind, waiting, reserved = 0 }: Demand): Permit[] {
    const free = this.#permits.filter(({ isInUse }) => !isInUse).sort((a, b) => a.readyAt - b.readyAt);
    // They would count as held for the process's kind, and keep it from others.
    const useless = free.filter((permit) => !this.#usable().includes(permit));
    if (useless.length > 0) return useless;
    // Until shortly before one may be used, it is worth nothing to others, who would pass it back and forth; and a request may
    // come that asks anyway.
    const near = free.filter(({ readyAt }) => readyAt + this.#spreadMs() <= now + NEAR_MS);
    const recalled = Math.min(this.#recalled, near.length, free.length - reserved);
    const turns = kind === "client" && now < this.#sharedUntil ? free.length - waiting : 0;
    const isSpare = waiting === 0 || kind === "unproven";
    const wanted = isSpare && near.length > 0 ? Math.min(this.#wanted, free.length) : 0;
    const count = Math.max(0, recalled, turns, wanted);
    this.#recalled = Math.max(0, this.#recalled - count);
    this.#wanted = Math.max(0, this.#wanted - count);
    // A client that waits elsewhere gets the one that has rested longest; those that wait here keep it.
    const isFirst = wanted < count && (count === recalled || waiting === 0);
    return isFirst ? free.slice(0, count) : free.slice(free.length - count);
  }

  async #trade(demand: Demand, want: number, given: Permit[]): Promise<void> {
    if (this.#isUnsure) {
      this.#life = this.#of.newLife();
      this.#permits = [];
      given = [];
      this.#isUnsure = false;
    }
    const { key, size } = this;
    const now = this.#of.clock.now();
    this.#permits = this.#permits.filter((permit) => !given.includes(permit));
    this.#isTrading = true;
    this.#asked = { kind: demand.kind, want, at: now };
    const rests = given.map(({ number, readyAt }) => ({ number, restMs: readyAt + this.#spreadMs() - now }));
    const trade = { key, size, isUser: this.#isUser, life: this.#life, demand, want, given: rests };
    const message = await this.#of.trade(trade).catch(() => null);
    this.#isTrading = false;
    if (message) return this.take(message);
    this.#isUnsure = true;
    this.#asked.want = 0;
    this.#wakeAt(now + AGAIN_MS);
  }
}

/**
 * The permits of one key that this process holds: which may be used, which others need more, and how many it needs itself.
 *
 * I4. A permit is used once in a window by the process that holds it, and rests for the window and the variation of the
 * network after the request was written: a process that stands still before it writes makes the rest longer, and nothing
 * else. It is passed on with the rest that is left, as a duration.
 */
import type { QuotaClock } from "./clock";

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

/** One call of `quota_trade`. */
export interface Trade {
  key: string;
  /** How many permits the key has. */
  size: number;
  /** The key is a user, and no base. */
  isUser: boolean;
  life: number;
  kind: PermitKind;
  want: number;
  most: number;
  given: { number: number; restMs: number }[];
  user: string | null;
}

/** What the requests of a key need at present. */
export interface Demand {
  kind: PermitKind;
  /** Requests that wait and may be sent with any permit. */
  waiting: number;
  /** For sync: how many permits its rate takes; 0 for clients, which ask for as many as they wait for. */
  steady: number;
  /** Permits that are kept although sync wants them. */
  kept: number;
  /** Permits that are kept although clients wait for them. */
  reserved: number;
  most: number;
  user: string | null;
}

export interface Permit {
  number: number;
  /** From when on it may be used, ms on the clock. */
  readyAt: number;
  isInUse: boolean;
  /** It was granted for a request that waits, and has not been used since. */
  isNew: boolean;
}

/** The process that a set belongs to. */
export interface Holding {
  readonly clock: QuotaClock;
  /** Whether permits may be used: its lease has not run out. */
  isValid(): boolean;
  /** Whether permits may be traded; else it uses what it holds or is owed. */
  readonly isConnected: boolean;
  /** How many of each base's permits, those with the highest numbers, are left to silent proxies. */
  readonly silent: number;
  /** @throws BasetideError `control_unavailable` */
  trade(trade: Trade): Promise<PermitMessage>;
}

/** A request waits this long for a permit of its own process, ms, before it asks for another. */
const NEAR_MS = 200;
/** How long a base counts as shared with other processes' clients, or as used by clients, ms. */
export const BUSY_MS = 5000;
/** Permits that were not used for this long are returned, ms. */
const IDLE_MS = 10_000;
/** How long after a call that was not served in full, or has failed, the next is made, ms. */
const ASK_AGAIN_MS = 1000;

export class PermitSet {
  readonly key: string;
  readonly size: number;
  readonly #isUser: boolean;
  readonly #of: Holding;
  readonly #demand: () => Demand;
  readonly #onChange: () => void;
  #permits: Permit[] = [];
  #life = 1;
  /** A call has failed, and it is unknown what it has changed: what is held lapses with the next one. */
  #isUnsure = false;
  #isTrading = false;
  #asked = { kind: "" as string, want: 0, at: -Infinity };
  #recalled = 0;
  #wanted = 0;
  #sharedUntil = -Infinity;
  #recalledAt = -Infinity;
  #throttled = { most: 0, until: -Infinity };
  #cancelAlarm = () => {};
  usedAt: number;
  /** Pauses that this process has met, and those that the control plane knows, ms on the clock. */
  #pausedUntil = -Infinity;
  #blockedUntil = -Infinity;
  user: string | null = null;

  /** @param onChange called when a request may be able to go, or something else has changed; it calls `settle` */
  constructor(
    of: Holding,
    { key, size, isUser }: { key: string; size: number; isUser: boolean },
    demand: () => Demand,
    onChange: () => void,
  ) {
    this.#of = of;
    this.key = key;
    this.size = size;
    this.#isUser = isUser;
    this.#demand = demand;
    this.#onChange = onChange;
    this.usedAt = of.clock.now();
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

  /** Whether it holds nothing, and waits for nothing. */
  get isIdle(): boolean {
    return this.#permits.length === 0 && !this.#isTrading && this.#asked.want === 0;
  }

  /** Whether clients have asked for the key lately, or have what this process needs. */
  get isContended(): boolean {
    return this.#of.clock.now() - this.#recalledAt < BUSY_MS;
  }

  /** No permit is ready before, ms on the clock. */
  get pausedUntil(): number {
    return Math.max(this.#pausedUntil, this.#blockedUntil);
  }

  /** When each permit of this process may be used, ms on the clock, in order. */
  readyTimes(): number[] {
    return this.#usable()
      .filter(({ isInUse }) => !isInUse)
      .map(({ readyAt }) => Math.max(readyAt, this.pausedUntil))
      .sort((a, b) => a - b);
  }

  /** Returns the permit that has rested longest, if it may be used at `now`. */
  ready(now: number, dropMs = 0): Permit | undefined {
    if (now < this.pausedUntil) return undefined;
    let best: Permit | undefined;
    for (const permit of this.#usable())
      if (!permit.isInUse && permit.readyAt + dropMs <= now && (!best || permit.readyAt < best.readyAt))
        best = permit;
    return best;
  }

  #usable(): Permit[] {
    const { limit } = this;
    return limit < this.size ? this.#permits.filter(({ number }) => number <= limit) : this.#permits;
  }

  /** Uses a permit for a request that is about to be written; it rests for `restMs` after that. */
  use(permit: Permit, restMs: number): void {
    const { clock } = this.#of;
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
    if (message.life !== this.#life) return;
    const now = this.#of.clock.now();
    for (const [number, restMs] of message.granted ?? [])
      this.#permits.push({ number, readyAt: now + restMs, isInUse: false, isNew: true });
    this.#asked.want = Math.max(0, this.#asked.want - (message.granted?.length ?? 0));
    if (message.recalled) {
      this.#recalled = message.recalled;
      this.#recalledAt = now;
    }
    if (message.shared) this.#sharedUntil = now + BUSY_MS;
    if (message.wanted !== undefined) this.#wanted = message.wanted;
    if (message.user !== undefined) {
      // Only what says everything of the key.
      this.user = message.user;
      this.#blockedUntil = now + (message.blockedMs ?? 0);
      this.#throttled = { most: message.throttled ?? 0, until: now + (message.throttledMs ?? 0) };
    }
    this.#onChange();
  }

  /** The process's lease has run out: it goes on with `owed` permits, those that it holds and others from `fromMs` on. */
  lapse(owed: number, fromMs: number): void {
    // Those of silent proxies are theirs.
    this.#permits = this.#permits.filter(({ number }) => number <= this.allowed - this.#of.silent);
    this.#permits = this.#permits.sort((a, b) => a.readyAt - b.readyAt).slice(0, owed);
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
    const demand = this.#demand();
    const isIdle = demand.waiting === 0 && now - this.usedAt >= IDLE_MS;
    const given = isIdle ? this.#permits.filter(({ isInUse }) => !isInUse) : this.#spare(now, demand);
    const want = isIdle ? 0 : this.#want(now, demand, given);
    const isNew = want > this.#asked.want || (want > 0 && demand.kind !== this.#asked.kind);
    // While it has permits, what it lacks comes when others have used it.
    const againMs = this.held - given.length > 0 ? BUSY_MS + ASK_AGAIN_MS : ASK_AGAIN_MS;
    const isAgain = want > 0 && now - this.#asked.at >= againMs;
    const isOver = isIdle && this.#asked.want > 0;
    if (given.length > 0 || isNew || isAgain || isOver) return void this.#trade(demand, want, given);
    const nextMs = this.#wanted > 0 ? NEAR_MS / 2 : ASK_AGAIN_MS;
    if (!this.isIdle) this.#wakeAt(Math.min(now + nextMs, want > 0 ? this.#asked.at + againMs : Infinity));
  }

  #wakeAt(atMs: number): void {
    this.#cancelAlarm = this.#of.clock.at(atMs, () => this.settle());
  }

  #want(now: number, { kind, waiting, steady }: Demand, given: Permit[]): number {
    const held = this.#usable().filter((permit) => !given.includes(permit));
    const room = Math.max(0, this.limit - held.length);
    if (kind === "sync" && !this.#isUser) return Math.min(room, Math.max(0, steady - held.length));
    const isTaken = now < this.#sharedUntil && !this.#isUser;
    const soon = held.filter(
      ({ isNew, isInUse, readyAt }) => isTaken || isNew || (!isInUse && readyAt <= now + NEAR_MS),
    );
    return Math.min(room, Math.max(0, waiting - soon.length));
  }

  /** Returns the permits to return. */
  #spare(now: number, { kind, waiting, kept, reserved }: Demand): Permit[] {
    const free = this.#permits.filter(({ isInUse }) => !isInUse).sort((a, b) => a.readyAt - b.readyAt);
    const recalled = Math.min(this.#recalled, free.length - (kind === "sync" ? reserved : 0));
    const isShared = kind === "client" && now < this.#sharedUntil && !this.#isUser;
    const turns = isShared ? free.length - waiting : 0;
    // Until shortly before one may be used, it is worth nothing to others, and a request may come that asks anyway.
    const isTime = (free[kept]?.readyAt ?? Infinity) <= now + NEAR_MS;
    const wanted = waiting > 0 || !isTime ? 0 : Math.min(this.#wanted, free.length - kept);
    const count = Math.max(0, recalled, turns, wanted);
    if (count === 0) return [];
    this.#recalled = Math.max(0, this.#recalled - count);
    this.#wanted = Math.max(0, this.#wanted - count);
    // A client that waits elsewhere gets the one that has rested longest; those that wait here keep it.
    const isFirst = count === recalled || waiting === 0 ? wanted < count : false;
    return isFirst ? free.slice(0, count) : free.slice(free.length - count);
  }

  async #trade(demand: Demand, want: number, given: Permit[]): Promise<void> {
    const { clock } = this.#of;
    if (this.#isUnsure) {
      this.#life++;
      this.#permits = [];
      this.#isUnsure = false;
      given = [];
    }
    this.#permits = this.#permits.filter((permit) => !given.includes(permit));
    this.#isTrading = true;
    const now = clock.now();
    this.#asked = { kind: demand.kind, want, at: now };
    const trade: Trade = {
      key: this.key,
      size: this.size,
      isUser: this.#isUser,
      life: this.#life,
      kind: demand.kind,
      want,
      most: demand.most,
      given: given.map(({ number, readyAt }) => ({ number, restMs: readyAt - now })),
      user: demand.user,
    };
    let message: PermitMessage | undefined;
    try {
      message = await this.#of.trade(trade);
    } catch {
      this.#isUnsure = true;
      this.#asked.want = 0;
    }
    this.#isTrading = false;
    if (message) this.take(message);
    else this.#wakeAt(now + ASK_AGAIN_MS);
  }
}

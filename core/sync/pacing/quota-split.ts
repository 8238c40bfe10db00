/**
 * One base's share of the quota, split between the two things that go on at the same time in rapid and live mode: what
 * people wait for in front (looks for what was modified; the feed and what it tells of), and whatever is read whole
 * beside.
 *
 * The ledger knows one line of sync requests per base. Here it is decided whose each place is: while both wait, one in
 * so many goes to what is beside. That may also be held to a pace of its own, so that the ledger has room at once for
 * what comes in front. In front the request that is due first goes first: who can wait says for how long.
 */

import { type LinkedAbort, linkedAbort } from "../../async";
import type { HeldConnection } from "../../http/connections";
import type { LivePriority, RateLimiter, SyncCall } from "../../limiter";
import { processClock, type QuotaClock } from "../../limiter";

export type WorkPriority = "foreground" | "background";

export interface BackgroundPace {
  /** One place in so many goes beside while both wait; need not be whole. */
  every: number;
  /** Time between two places that go beside, ms; 0: as many as are left over. */
  gapMs: number;
  /**
   * For so long after a place in front none that is left over goes beside, ms: what comes of one call in front are
   * others, which are to find room at once.
   */
  holdMs?: number;
}

export interface SplitOptions {
  /**
   * Requests in front are for changes that someone waits to see: clients leave them one place in five. Those without
   * patience are for what the feed has just named.
   */
  isLive?: boolean;
  clock?: QuotaClock;
}

/** While somebody hurries (a rebuild, a gap in the feed) half of the places go beside. */
const HURRIED: BackgroundPace = { every: 2, gapMs: 0 };
/** A pace may have changed: it is looked at again after this. */
const LONGEST_PAUSE_MS = 1000;

interface Waiter {
  isPatient: boolean;
  /** In its lane the one that is due first goes first. */
  dueAt: number;
  resolve(held: HeldConnection | undefined): void;
  reject(error: unknown): void;
}

export class QuotaSplit {
  #ledger: RateLimiter;
  #usual: () => BackgroundPace;
  #stop: AbortSignal;
  #isLive: boolean;
  #clock: QuotaClock;
  #hurried = new Set<string>();
  /** In the order in which they are due. */
  #queues: Record<WorkPriority, Waiter[]> = { foreground: [], background: [] };
  /** Requests a second, as whoever asked last says. */
  #share = 0;
  /** The place that is being waited for. */
  #taking: { live: LivePriority | undefined; cancel: LinkedAbort } | undefined;
  /** Places that went to the front since the last one that went beside. */
  #given = 0;
  #backgroundAt = Number.NEGATIVE_INFINITY;
  #foregroundAt = Number.NEGATIVE_INFINITY;
  #cancelAlarm = () => {};

  /**
   * @param usual how much goes beside while nobody hurries, at that moment
   * @param stop aborts when nobody is to wait any more
   */
  constructor(
    limiter: RateLimiter,
    usual: () => BackgroundPace,
    stop: AbortSignal,
    { isLive = false, clock = processClock }: SplitOptions = {},
  ) {
    this.#ledger = limiter;
    this.#usual = usual;
    this.#stop = stop;
    this.#isLive = isLive;
    this.#clock = clock;
    stop.addEventListener("abort", () => this.#cancelAlarm(), { once: true });
  }

  /** What is beside is in a hurry from now on, or not any more, for this reason. */
  hurry(reason: string, isHurried: boolean): void {
    if (isHurried) this.#hurried.add(reason);
    else this.#hurried.delete(reason);
  }

  /**
   * The ledger, for those in one lane.
   *
   * @param patienceMs how long its requests may be kept waiting by others of the lane that came later
   */
  limiterFor(priority: WorkPriority, patienceMs = 0): RateLimiter {
    return {
      ...this.#ledger,
      acquireSync: (key, share, signal, call = {}) =>
        this.#take(priority, patienceMs, key, share, signal, call),
    };
  }

  get #pace(): BackgroundPace {
    return this.#hurried.size > 0 ? HURRIED : this.#usual();
  }

  #take(
    priority: WorkPriority,
    patienceMs: number,
    key: string,
    share: number,
    signal: AbortSignal,
    call: SyncCall,
  ): Promise<HeldConnection | undefined> {
    if (signal.aborted) return Promise.reject(signal.reason);
    const queue = this.#queues[priority];
    return new Promise((resolve, reject) => {
      const leave = () => waiter.reject(signal.reason);
      const end = (settle: () => void) => {
        const index = queue.indexOf(waiter);
        if (index >= 0) queue.splice(index, 1);
        signal.removeEventListener("abort", leave);
        settle();
      };
      const waiter: Waiter = {
        isPatient: patienceMs > 0,
        dueAt: this.#clock.now() + patienceMs,
        resolve: (held) => end(() => resolve(held)),
        reject: (error) => end(() => reject(error)),
      };
      signal.addEventListener("abort", leave, { once: true });
      const behind = queue.findIndex((other) => other.dueAt > waiter.dueAt);
      queue.splice(behind < 0 ? queue.length : behind, 0, waiter);
      this.#share = share;
      if (this.#taking && rankOf(this.#liveKind()) > rankOf(this.#taking.live)) this.#taking.cancel.abort();
      void this.#takePlaces(key, call);
    });
  }

  /** What the request in front is that is due first, where it need not leave every place to clients. */
  #liveKind(): LivePriority | undefined {
    const [first] = this.#queues.foreground;
    if (!this.#isLive || !first) return undefined;
    return first.isPatient ? "live" : "named";
  }

  /** Takes places, one after the other, until nobody waits or it is not time yet. */
  async #takePlaces(key: string, call: SyncCall): Promise<void> {
    if (this.#taking) return;
    this.#cancelAlarm();
    try {
      while (this.#next()) await this.#takePlace(key, call);
      const isWaiting = this.#queues.background.length > 0 && !this.#stop.aborted;
      const pauseMs = Math.min(LONGEST_PAUSE_MS, this.#backgroundInMs());
      if (isWaiting) {
        this.#cancelAlarm = this.#clock.at(
          this.#clock.now() + pauseMs,
          () => void this.#takePlaces(key, call),
        );
      }
    } catch (error) {
      for (const queue of Object.values(this.#queues)) for (const waiter of [...queue]) waiter.reject(error);
    } finally {
      this.#taking = undefined;
    }
  }

  /** Takes one and gives it away; none where it was called off for one that is to be had sooner. */
  async #takePlace(key: string, call: SyncCall): Promise<void> {
    using cancel = linkedAbort(this.#stop);
    const live = this.#liveKind();
    this.#taking = { live, cancel };
    try {
      const held = await this.#ledger.acquireSync(key, this.#share, cancel.signal, { ...call, live });
      // Whoever left meanwhile has left a place unused: a third of a second, at the end of a lease.
      this.#give(held);
    } catch (error) {
      if (!cancel.signal.aborted || this.#stop.aborted) throw error;
    }
  }

  #give(held: HeldConnection | undefined): void {
    const next = this.#next();
    if (!next) {
      held?.[Symbol.dispose]();
      return;
    }
    // What is left over counts for the next time, so that `every` need not be whole.
    const { every } = this.#pace;
    const given = Math.min(this.#given, every);
    this.#given = next === "background" ? Math.max(0, given - every + 1) : given + 1;
    if (next === "background") this.#backgroundAt = this.#clock.now();
    else this.#foregroundAt = this.#clock.now();
    this.#queues[next][0]!.resolve(held);
  }

  /** How long until a place may go beside, ms; its part of the places is due at once. */
  #backgroundInMs(): number {
    const { gapMs, holdMs = 0 } = this.#pace;
    const heldUntil = this.#isBackgroundNext() ? 0 : this.#foregroundAt + holdMs;
    return Math.max(0, Math.max(this.#backgroundAt + gapMs, heldUntil) - this.#clock.now());
  }

  #isBackgroundNext(): boolean {
    return this.#given >= this.#pace.every - 1;
  }

  /** Whose the next place is; null while nobody waits whose time it is. */
  #next(): WorkPriority | null {
    const { foreground, background } = this.#queues;
    const isBackgroundDue = background.length > 0 && this.#backgroundInMs() === 0;
    if (foreground.length === 0) return isBackgroundDue ? "background" : null;
    return isBackgroundDue && this.#isBackgroundNext() ? "background" : "foreground";
  }
}

/** The higher, the sooner there is a place. */
function rankOf(live: LivePriority | undefined): number {
  return live === undefined ? 0 : { live: 1, named: 2 }[live];
}

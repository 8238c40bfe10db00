/**
 * Splits one base's share of the quota between the two kinds of work that run at the same time in rapid and live mode.
 * Foreground work shows changes that people wait for (polls for modified records; reads of the feed and the records
 * that it names). Background work reads whole tables.
 *
 * The rate limiter has one queue of sync requests per base. This class decides which request uses each permit:
 * while both kinds wait, one permit in `every` goes to the background. The background may also be limited to a
 * pace of its own, so that the rate limiter has room at once for foreground requests. In the foreground, the request
 * that is due first goes first: each request states how long it can wait.
 */

import { type LinkedAbort, linkedAbort } from "../../async";
import type { HeldConnection } from "../../http/connections";
import type { RateLimiter, SyncCall } from "../../limiter";
import { processClock, type QuotaClock } from "../../limiter";
import { SHORTEST_MS } from "./limits";

export type WorkPriority = "foreground" | "background";

interface BackgroundPace {
  /** One permit in this many goes to the background while both wait; need not be an integer. */
  every: number;
  /** Time between two background permits, ms; 0: as many as are left over. */
  gapMs: number;
  /**
   * For this long after a foreground permit, no leftover permit goes to the background, ms. A foreground
   * call leads to more of them, and they should find room at once.
   */
  holdMs?: number;
}

interface SplitOptions {
  /**
   * Foreground requests are for changes that someone waits to see: clients leave them one permit in five.
   */
  isLive?: boolean;
  clock?: QuotaClock;
}

/** While background work is urgent (a rebuild, a feed gap), it gets half of the permits. */
export const URGENT_PACE: BackgroundPace = { every: 2, gapMs: 0 };

interface Waiter {
  /** Within a queue, the request that is due first goes first. */
  dueAt: number;
  resolve(held: HeldConnection | undefined): void;
  reject(error: unknown): void;
}

export class QuotaSplit {
  #limiter: RateLimiter;
  #usual: () => BackgroundPace;
  #stop: AbortSignal;
  #isLive: boolean;
  #clock: QuotaClock;
  #isHurried = false;
  /** Sorted by `dueAt`. */
  #queues: Record<WorkPriority, Waiter[]> = { foreground: [], background: [] };
  /** Requests a second, as given by the latest caller. */
  #share = 0;
  /** The permit that is being acquired. */
  #acquiring: { isLive: boolean; cancel: LinkedAbort } | undefined;
  /** Foreground permits since the last background one. */
  #given = 0;
  #backgroundAt = Number.NEGATIVE_INFINITY;
  #foregroundAt = Number.NEGATIVE_INFINITY;
  #cancelAlarm = () => {};

  /**
   * @param usual returns the current pace of the background while it is not urgent
   * @param stop aborts when requests must no longer wait
   */
  constructor(
    limiter: RateLimiter,
    usual: () => BackgroundPace,
    stop: AbortSignal,
    { isLive = false, clock = processClock }: SplitOptions = {},
  ) {
    this.#limiter = limiter;
    this.#usual = usual;
    this.#stop = stop;
    this.#isLive = isLive;
    this.#clock = clock;
    stop.addEventListener("abort", () => this.#cancelAlarm(), { once: true });
  }

  /** Makes background work urgent, or no longer urgent. */
  hurry(isHurried: boolean): void {
    this.#isHurried = isHurried;
  }

  /**
   * Returns the rate limiter for requests of one priority.
   *
   * @param patienceMs how long its requests may wait behind later requests of the same priority
   */
  limiterFor(priority: WorkPriority, patienceMs = 0): RateLimiter {
    return {
      ...this.#limiter,
      acquireSync: (key, share, signal, call = {}) =>
        this.#enqueue(priority, patienceMs, key, share, signal, call),
    };
  }

  get #pace(): BackgroundPace {
    return this.#isHurried ? URGENT_PACE : this.#usual();
  }

  #enqueue(
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
        dueAt: this.#clock.now() + patienceMs,
        resolve: (held) => end(() => resolve(held)),
        reject: (error) => end(() => reject(error)),
      };
      signal.addEventListener("abort", leave, { once: true });
      const behind = queue.findIndex((other) => other.dueAt > waiter.dueAt);
      queue.splice(behind < 0 ? queue.length : behind, 0, waiter);
      this.#share = share;
      if (this.#acquiring && this.#isForLive && !this.#acquiring.isLive) this.#acquiring.cancel.abort();
      void this.#acquireAll(key, call);
    });
  }

  /** Whether someone waits to see what the next foreground request reads. */
  get #isForLive(): boolean {
    return this.#isLive && this.#queues.foreground.length > 0;
  }

  /** Acquires permits one after another until no request waits, or none is due yet. */
  async #acquireAll(key: string, call: SyncCall): Promise<void> {
    if (this.#acquiring) return;
    this.#cancelAlarm();
    try {
      while (this.#next()) await this.#acquireOne(key, call);
      const isWaiting = this.#queues.background.length > 0 && !this.#stop.aborted;
      // The pace may change meanwhile.
      const pauseMs = Math.min(SHORTEST_MS, this.#backgroundInMs());
      if (isWaiting) {
        this.#cancelAlarm = this.#clock.at(
          this.#clock.now() + pauseMs,
          () => void this.#acquireAll(key, call),
        );
      }
    } catch (error) {
      for (const queue of Object.values(this.#queues)) for (const waiter of [...queue]) waiter.reject(error);
    } finally {
      this.#acquiring = undefined;
    }
  }

  /**
   * Acquires one permit and assigns it; assigns none if the attempt was canceled for a class that gets one
   * sooner.
   */
  async #acquireOne(key: string, call: SyncCall): Promise<void> {
    using cancel = linkedAbort(this.#stop);
    const isLive = this.#isForLive;
    this.#acquiring = { isLive, cancel };
    try {
      const held = await this.#limiter.acquireSync(key, this.#share, cancel.signal, { ...call, isLive });
      // If the waiters have left meanwhile, the permit stays unused: a third of a second, at the end of a
      // lease.
      this.#assign(held);
    } catch (error) {
      if (!cancel.signal.aborted || this.#stop.aborted) throw error;
    }
  }

  #assign(held: HeldConnection | undefined): void {
    const next = this.#next();
    if (!next) {
      held?.[Symbol.dispose]();
      return;
    }
    // The remainder is carried over, so that `every` need not be an integer.
    const { every } = this.#pace;
    const given = Math.min(this.#given, every);
    this.#given = next === "background" ? Math.max(0, given - every + 1) : given + 1;
    if (next === "background") this.#backgroundAt = this.#clock.now();
    else this.#foregroundAt = this.#clock.now();
    this.#queues[next][0]!.resolve(held);
  }

  /** Returns the time until the background may get a permit, ms; its guaranteed part is due at once. */
  #backgroundInMs(): number {
    const { gapMs, holdMs = 0 } = this.#pace;
    const heldUntil = this.#isBackgroundNext() ? 0 : this.#foregroundAt + holdMs;
    return Math.max(0, Math.max(this.#backgroundAt + gapMs, heldUntil) - this.#clock.now());
  }

  #isBackgroundNext(): boolean {
    return this.#given >= this.#pace.every - 1;
  }

  /** Returns which queue gets the next permit; null while no waiting request is due. */
  #next(): WorkPriority | null {
    const { foreground, background } = this.#queues;
    const isBackgroundDue = background.length > 0 && this.#backgroundInMs() === 0;
    if (foreground.length === 0) return isBackgroundDue ? "background" : null;
    return isBackgroundDue && this.#isBackgroundNext() ? "background" : "foreground";
  }
}

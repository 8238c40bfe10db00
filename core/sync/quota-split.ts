/**
 * One base's share of the quota, split between the two things that go on at the same time in rapid and live mode: what
 * people wait for in front (looks for what was modified; the feed and what it tells of), and whatever is read whole
 * beside.
 *
 * The ledger knows one line of sync requests per base. Here it is decided whose each place is: while both wait, one in
 * so many goes to what is beside. That may also be held to a pace of its own, so that the ledger has room at once for
 * what comes in front.
 */
import type { Ledger } from "../quota";

export type Lane = "front" | "beside";

export interface BesidePace {
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

/** While somebody hurries (a rebuild, a gap in the feed) half of the places go beside. */
const HURRIED: BesidePace = { every: 2, gapMs: 0 };
/** A pace may have changed: it is looked at again after this. */
const LONGEST_PAUSE_MS = 1000;

interface Waiter {
  resolve(): void;
  reject(error: unknown): void;
}

export class QuotaSplit {
  #ledger: Ledger;
  #usual: () => BesidePace;
  #stop: AbortSignal;
  #hurried = new Set<string>();
  #lines: Record<Lane, Set<Waiter>> = { front: new Set(), beside: new Set() };
  /** Requests a second, as whoever asked last says. */
  #share = 0;
  #isTaking = false;
  /** Places that went to the front since the last one that went beside. */
  #given = 0;
  #besideAt = Number.NEGATIVE_INFINITY;
  #frontAt = Number.NEGATIVE_INFINITY;
  #alarm: ReturnType<typeof setTimeout> | undefined;

  /**
   * @param usual how much goes beside while nobody hurries, at that moment
   * @param stop aborts when nobody is to wait any more
   */
  constructor(ledger: Ledger, usual: () => BesidePace, stop: AbortSignal) {
    this.#ledger = ledger;
    this.#usual = usual;
    this.#stop = stop;
    stop.addEventListener("abort", () => clearTimeout(this.#alarm), { once: true });
  }

  /** What is beside is in a hurry from now on, or not any more, for this reason. */
  hurry(reason: string, isHurried: boolean): void {
    if (isHurried) this.#hurried.add(reason);
    else this.#hurried.delete(reason);
  }

  /** The ledger, for those in one lane. */
  lane(lane: Lane): Ledger {
    return {
      ...this.#ledger,
      takeSync: (key, share, signal) => this.#take(lane, key, share, signal),
    };
  }

  get #pace(): BesidePace {
    return this.#hurried.size > 0 ? HURRIED : this.#usual();
  }

  #take(lane: Lane, key: string, share: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.reject(signal.reason);
    const line = this.#lines[lane];
    return new Promise((resolve, reject) => {
      const leave = () => waiter.reject(signal.reason);
      const end = (settle: () => void) => {
        line.delete(waiter);
        signal.removeEventListener("abort", leave);
        settle();
      };
      const waiter: Waiter = {
        resolve: () => end(resolve),
        reject: (error) => end(() => reject(error)),
      };
      signal.addEventListener("abort", leave, { once: true });
      line.add(waiter);
      this.#share = share;
      void this.#takePlaces(key);
    });
  }

  /** Takes places, one after the other, until nobody waits or it is not time yet. */
  async #takePlaces(key: string): Promise<void> {
    if (this.#isTaking) return;
    this.#isTaking = true;
    clearTimeout(this.#alarm);
    try {
      while (this.#next()) {
        await this.#ledger.takeSync(key, this.#share, this.#stop);
        // Whoever left meanwhile has left a place unused: a third of a second, at the end of a lease.
        this.#give();
      }
      const isWaiting = this.#lines.beside.size > 0 && !this.#stop.aborted;
      const pauseMs = Math.min(LONGEST_PAUSE_MS, this.#besideInMs());
      if (isWaiting) this.#alarm = setTimeout(() => this.#takePlaces(key), pauseMs);
    } catch (error) {
      for (const line of Object.values(this.#lines)) for (const waiter of [...line]) waiter.reject(error);
    } finally {
      this.#isTaking = false;
    }
  }

  #give(): void {
    const next = this.#next();
    if (!next) return;
    // What is left over counts for the next time, so that `every` need not be whole.
    const { every } = this.#pace;
    const given = Math.min(this.#given, every);
    this.#given = next === "beside" ? Math.max(0, given - every + 1) : given + 1;
    if (next === "beside") this.#besideAt = performance.now();
    else this.#frontAt = performance.now();
    const [waiter] = this.#lines[next];
    waiter!.resolve();
  }

  /** How long until a place may go beside, ms; its part of the places is due at once. */
  #besideInMs(): number {
    const { gapMs, holdMs = 0 } = this.#pace;
    const heldUntil = this.#isBesidesTurn() ? 0 : this.#frontAt + holdMs;
    return Math.max(0, Math.max(this.#besideAt + gapMs, heldUntil) - performance.now());
  }

  #isBesidesTurn(): boolean {
    return this.#given >= this.#pace.every - 1;
  }

  /** Whose the next place is; null while nobody waits whose time it is. */
  #next(): Lane | null {
    const { front, beside } = this.#lines;
    const isBesideDue = beside.size > 0 && this.#besideInMs() === 0;
    if (front.size === 0) return isBesideDue ? "beside" : null;
    return isBesideDue && this.#isBesidesTurn() ? "beside" : "front";
  }
}

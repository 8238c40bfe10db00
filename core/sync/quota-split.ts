/**
 * One base's share of the quota, split between the two things that go on at the same time in rapid mode: looks for
 * what was modified, and whatever is read whole beside them.
 *
 * The ledger knows one line of sync requests per base. Here it is decided whose each place is: while both wait, one in
 * so many goes to what is beside, and none is left unused while either waits.
 */
import type { Ledger } from "../quota";

export type Lane = "looks" | "beside";

interface Waiter {
  resolve(): void;
  reject(error: unknown): void;
}

export class QuotaSplit {
  /** One place in so many goes to what is beside. */
  besideEvery: number;
  #ledger: Ledger;
  #stop: AbortSignal;
  #lines: Record<Lane, Set<Waiter>> = { looks: new Set(), beside: new Set() };
  /** Requests a second, as whoever asked last says. */
  #share = 0;
  #isTaking = false;
  /** Places that went to looks since the last one that went beside. */
  #given = 0;

  /** @param stop aborts when nobody is to wait any more */
  constructor(ledger: Ledger, besideEvery: number, stop: AbortSignal) {
    this.#ledger = ledger;
    this.besideEvery = besideEvery;
    this.#stop = stop;
  }

  /** The ledger, for those in one lane. */
  lane(lane: Lane): Ledger {
    return {
      ...this.#ledger,
      takeSync: (key, share, signal) => this.#take(lane, key, share, signal),
    };
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

  /** Takes places, one after the other, until nobody waits. */
  async #takePlaces(key: string): Promise<void> {
    if (this.#isTaking) return;
    this.#isTaking = true;
    try {
      while (this.#next()) {
        await this.#ledger.takeSync(key, this.#share, this.#stop);
        // Whoever left meanwhile has left a place unused: a third of a second, at the end of a lease.
        this.#give();
      }
    } catch (error) {
      for (const line of Object.values(this.#lines)) for (const waiter of [...line]) waiter.reject(error);
    } finally {
      this.#isTaking = false;
    }
  }

  #give(): void {
    const next = this.#next();
    if (!next) return;
    // What is left over counts for the next time, so that `besideEvery` need not be whole.
    const given = Math.min(this.#given, this.besideEvery);
    this.#given = next === "beside" ? Math.max(0, given - this.besideEvery + 1) : given + 1;
    const [waiter] = this.#lines[next];
    waiter!.resolve();
  }

  /** Whose the next place is; null while nobody waits. */
  #next(): Lane | null {
    const { looks, beside } = this.#lines;
    if (looks.size === 0) return beside.size === 0 ? null : "beside";
    return beside.size > 0 && this.#given >= this.besideEvery - 1 ? "beside" : "looks";
  }
}

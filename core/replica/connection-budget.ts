/**
 * Bounds how many connections this process has open to one server of replicas, over all of their databases.
 *
 * A connection at rest gives way to one that is wanted, the longest at rest first; where none rests, the next statement
 * that ends makes room. So any number of bases shares a server's connections, and the price is a login more.
 */

/** A pool of the driver, as `patches/` has extended it. */
export interface BudgetedPool {
  /** Closes the connections at rest. @returns how many */
  closeIdle(): number;
  /** The server's max_connections. */
  serverMost(): Promise<number>;
}

/** Until the server has said how many it allows. */
const FIRST_MOST = 10;
/** It is asked so long after the first connection, which has something else to do, ms. */
const ASKED_AFTER_MS = 1000;
/** How long the server's answer counts, ms. */
const KNOWN_MS = 10 * 60_000;

export class ConnectionBudget {
  readonly #share: number;
  readonly #askedAfterMs: number;
  #most = FIRST_MOST;
  #open = 0;
  #askedAt = Number.NEGATIVE_INFINITY;
  readonly #waiting: (() => void)[] = [];
  /** Pools with connections at rest, the longest first. */
  readonly #resting = new Set<BudgetedPool>();

  /** @param share of the server's max_connections */
  constructor(share: number, askedAfterMs = ASKED_AFTER_MS) {
    this.#share = share;
    this.#askedAfterMs = askedAfterMs;
  }

  /** Resolves when one more connection may be made. */
  async take(): Promise<void> {
    if (this.#open < this.#most) {
      this.#open++;
      return;
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push(resolve);
    this.#makeRoom();
    await promise;
  }

  /** One is closed. */
  give(): void {
    this.#open--;
    this.#admit();
  }

  /** A connection of the pool is at rest. */
  rests(pool: BudgetedPool): void {
    this.#learn(pool);
    this.#resting.delete(pool);
    this.#resting.add(pool);
    if (this.#waiting.length > 0) this.#makeRoom();
  }

  forget(pool: BudgetedPool): void {
    this.#resting.delete(pool);
  }

  #admit(): void {
    while (this.#waiting.length > 0 && this.#open < this.#most) {
      this.#open++;
      this.#waiting.shift()!();
    }
  }

  #makeRoom(): void {
    for (const pool of this.#resting) {
      this.#resting.delete(pool);
      if (pool.closeIdle() > 0) return;
    }
  }

  #learn(pool: BudgetedPool): void {
    if (performance.now() - this.#askedAt < KNOWN_MS) return;
    this.#askedAt = performance.now();
    if (this.#askedAfterMs === 0) this.#ask(pool);
    else setTimeout(() => this.#ask(pool), this.#askedAfterMs).unref();
  }

  #ask(pool: BudgetedPool): void {
    pool.serverMost().then(
      (most) => {
        this.#most = Math.max(1, Math.floor(most * this.#share));
        this.#admit();
      },
      () => {
        this.#askedAt = Number.NEGATIVE_INFINITY;
      },
    );
  }
}

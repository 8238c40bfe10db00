/**
 * Bounds how many connections this process has open to one server of replicas, over all of their databases.
 *
 * A connection at rest gives way to one that is wanted, the longest at rest first; where none rests, the next statement
 * that ends makes room. So any number of bases shares a server's connections, and the price is a login more.
 *
 * A server that refuses a login because it is full (SQLSTATE 53300) is asked for fewer connections, and less often, until
 * it has room again: the statement waits. This is all that processes know of each other's use of a server that is not
 * shared out among them by number.
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
/** Pause after a refused login: it doubles with each refusal in a row, ms. */
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 3000;
/** A server that has been full for so long is reported to what waits for it. */
const FULL_FOR_MS = 60_000;
/** One connection more is tried this long after a refusal, and again each time that it went well, ms. */
const RECOVERY_MS = 5000;

interface Options {
  /** How many processes use the same share of the server's connections. */
  sharers?: (() => number) | undefined;
  askedAfterMs?: number;
  /** The clock; performance.now() unless given. */
  now?: () => number;
}

export class ConnectionBudget {
  readonly #share: number;
  readonly #sharers: () => number;
  readonly #askedAfterMs: number;
  readonly #now: () => number;
  /** The server's max_connections. */
  #serverMost: number | undefined;
  /** What a full server was seen to allow. */
  #ceiling = Number.POSITIVE_INFINITY;
  #ceilingAt = Number.NEGATIVE_INFINITY;
  #open = 0;
  #refusals = 0;
  #fullSince: number | undefined;
  #pausedUntil = Number.NEGATIVE_INFINITY;
  #askedAt = Number.NEGATIVE_INFINITY;
  readonly #waiting: (() => void)[] = [];
  /** Pools with connections at rest, the longest first. */
  readonly #resting = new Set<BudgetedPool>();

  /** @param share of the server's max_connections, for all that share them */
  constructor(share: number, options: Options = {}) {
    this.#share = share;
    this.#sharers = options.sharers ?? (() => 1);
    this.#askedAfterMs = options.askedAfterMs ?? ASKED_AFTER_MS;
    this.#now = options.now ?? (() => performance.now());
  }

  /** How many may be open now. */
  get most(): number {
    const most = this.#serverMost;
    const share = most === undefined ? FIRST_MOST : Math.floor((most * this.#share) / this.#sharers());
    return Math.max(1, Math.min(share, this.#ceiling));
  }

  /** Resolves when one more connection may be made. */
  async take(): Promise<void> {
    if (this.#waiting.length === 0 && this.#hasRoom()) {
      this.#open++;
      return;
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push(resolve);
    if (this.#open >= this.most) this.#makeRoom();
    await promise;
  }

  /** One is ready to be used. */
  opened(): void {
    this.#refusals = 0;
    this.#fullSince = undefined;
    const now = this.#now();
    if (this.#ceiling === Number.POSITIVE_INFINITY || now - this.#ceilingAt < RECOVERY_MS) return;
    this.#ceiling++;
    this.#ceilingAt = now;
    this.#admit();
  }

  /**
   * The server has no room for one that is about to be closed.
   *
   * @returns whether to try again: false where the server has been full for too long
   */
  refused(): boolean {
    const now = this.#now();
    this.#fullSince ??= now;
    this.#ceiling = Math.max(1, this.#open - 1);
    this.#ceilingAt = now;
    const pauseMs =
      Math.min(FIRST_PAUSE_MS * 2 ** this.#refusals++, LONGEST_PAUSE_MS) * (0.5 + Math.random());
    this.#pausedUntil = now + pauseMs;
    setTimeout(() => this.#admit(), pauseMs);
    return now - this.#fullSince < FULL_FOR_MS;
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
    if (this.#waiting.length > 0 || this.#open > this.most) this.#makeRoom();
  }

  forget(pool: BudgetedPool): void {
    this.#resting.delete(pool);
  }

  #hasRoom(): boolean {
    return this.#open < this.most && this.#now() >= this.#pausedUntil;
  }

  #admit(): void {
    while (this.#waiting.length > 0 && this.#hasRoom()) {
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
    if (this.#now() - this.#askedAt < KNOWN_MS) return;
    this.#askedAt = this.#now();
    if (this.#askedAfterMs === 0) this.#ask(pool);
    else setTimeout(() => this.#ask(pool), this.#askedAfterMs).unref();
  }

  #ask(pool: BudgetedPool): void {
    pool.serverMost().then(
      (most) => {
        this.#serverMost = most;
        this.#admit();
      },
      () => {
        this.#askedAt = Number.NEGATIVE_INFINITY;
      },
    );
  }
}

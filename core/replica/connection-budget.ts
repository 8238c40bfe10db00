/**
 * Bounds the number of connections that this process has open to one server of replicas, over all of its databases.
 *
 * When a connection is needed and the budget is used up, the connection that has been idle longest is closed; if none
 * is idle, the next statement that ends makes room. Any number of bases can share a server's connections, at the cost
 * of extra logins.
 *
 * When a server refuses a login because it is full (SQLSTATE 53300), the budget shrinks and logins become rarer until
 * the server has room again; the statement waits. Refusals are the only way in which processes learn about each other's
 * use of a server whose connections are not divided among them by number.
 *
 * Few logins run at once. A login costs the server more than most statements, and fails if it takes too long: on a slow
 * server, those of hundreds of bases that start together, as after a restart, may all fail and begin again.
 */

/** A connection pool of the driver, as extended by `patches/`. */
export interface BudgetedPool {
  /** Closes idle connections. @returns how many */
  closeIdle(): number;
}

/** How many connections may be open at once: a fraction of the server's max_connections, or a number. */
export type ConnectionLimit = { share: number } | { connections: number };

/** Logins that run at once: enough for eighty a second to a server that is 80 ms away. */
const MOST_LOGINS = 32;
/** The limit until the first connection has reported the server's. */
const FIRST_MOST = 10;
/** Pause after a refused login. It doubles with each consecutive refusal, ms. */
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 3000;
/** After a server has been full for this long, waiting statements get an error. */
const FULL_FOR_MS = 60_000;
/** Delay after a refusal, and after each attempt to have one more connection, before the next attempt, ms. */
const RECOVERY_MS = 5000;

interface Options {
  /** Number of processes that use the same share of the server's connections. */
  sharers?: (() => number) | undefined;
  /** The clock; performance.now() unless given. */
  now?: () => number;
}

export class ConnectionBudget {
  readonly #limit: ConnectionLimit;
  readonly #sharers: () => number;
  readonly #now: () => number;
  /** The server's max_connections. */
  #serverMost: number | undefined;
  /** The number of connections that a full server was seen to allow. */
  #ceiling = Number.POSITIVE_INFINITY;
  #ceilingAt = Number.NEGATIVE_INFINITY;
  /** Connections that are open or being opened. */
  #open = 0;
  #opening = 0;
  #refusals = 0;
  #fullSince: number | undefined;
  #pausedUntil = Number.NEGATIVE_INFINITY;
  #pauseTimer: ReturnType<typeof setTimeout> | undefined;
  #recoveryTimer: ReturnType<typeof setTimeout> | undefined;
  readonly #waiting: (() => void)[] = [];
  /** Pools with idle connections, longest idle first. */
  readonly #resting = new Set<BudgetedPool>();
  /** Pools that keep their connections between statements: for how long, ms, and the timer, once they have one. */
  readonly #kept = new Map<BudgetedPool, { ms: number; timer?: ReturnType<typeof setTimeout> }>();

  /** @param limit for all processes that share it */
  constructor(limit: ConnectionLimit, options: Options = {}) {
    this.#limit = limit;
    this.#sharers = options.sharers ?? (() => 1);
    this.#now = options.now ?? (() => performance.now());
  }

  /** Number of connections that may be open now. */
  get most(): number {
    return Math.max(1, Math.min(this.#allowed(), this.#ceiling));
  }

  #allowed(): number {
    if ("connections" in this.#limit) return this.#limit.connections;
    if (this.#serverMost === undefined) return FIRST_MOST;
    return Math.floor((this.#serverMost * this.#limit.share) / this.#sharers());
  }

  /** Resolves when one more connection may be opened: `opened` or `giveUnopened` follows. */
  async take(): Promise<void> {
    if (this.hasSpare) {
      this.#begin();
      return;
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push(resolve);
    this.#makeRoomIfFull();
    await promise;
  }

  /** Whether one more connection could be opened without closing another or delaying anyone. */
  get hasSpare(): boolean {
    return this.#waiting.length === 0 && this.#hasRoom();
  }

  /**
   * Reports that a connection was opened.
   *
   * @param serverMost the server's max_connections
   */
  opened(serverMost: number): void {
    this.#opening--;
    this.#serverMost = serverMost;
    this.#refusals = 0;
    this.#fullSince = undefined;
    const now = this.#now();
    if (this.#ceiling !== Number.POSITIVE_INFINITY && now - this.#ceilingAt >= RECOVERY_MS) {
      this.#ceiling++;
      this.#ceilingAt = now;
    }
    this.#admit();
  }

  /**
   * Reports that the server refused a connection because it is full; the connection will be closed.
   *
   * @returns whether to try again: false if the server has been full for too long
   */
  refused(): boolean {
    const now = this.#now();
    this.#fullSince ??= now;
    this.#ceiling = Math.max(1, this.#open - 1);
    this.#ceilingAt = now;
    this.#recoverSoon();
    const pauseMs =
      Math.min(FIRST_PAUSE_MS * 2 ** this.#refusals++, LONGEST_PAUSE_MS) * (0.5 + Math.random());
    this.#pausedUntil = now + pauseMs;
    clearTimeout(this.#pauseTimer);
    this.#pauseTimer = setTimeout(() => {
      // Timers count whole milliseconds and may fire before the pause ends by the clock.
      this.#pausedUntil = Number.NEGATIVE_INFINITY;
      this.#admit();
    }, pauseMs);
    return now - this.#fullSince < FULL_FOR_MS;
  }

  /**
   * Tries one more connection in a while, even if none of the open ones ends: what they do may depend on a connection
   * that waits here.
   */
  #recoverSoon(): void {
    clearTimeout(this.#recoveryTimer);
    this.#recoveryTimer = setTimeout(() => {
      if (this.#waiting.length === 0) return;
      this.#ceiling++;
      this.#ceilingAt = this.#now();
      this.#admit();
      this.#recoverSoon();
    }, RECOVERY_MS);
  }

  /** Reports that a connection was closed that was open. */
  give(): void {
    this.#open--;
    this.#admit();
  }

  /** Reports that a connection could not be opened. */
  giveUnopened(): void {
    this.#opening--;
    this.give();
  }

  /** Reports that a connection of the pool became idle. */
  rests(pool: BudgetedPool): void {
    this.#resting.delete(pool);
    this.#resting.add(pool);
    const kept = this.#kept.get(pool);
    if (kept) kept.timer ??= setTimeout(() => this.release(pool), kept.ms);
    this.#makeRoomIfFull();
  }

  /**
   * Closes no idle connection of the pool until `release`, or for `ms` after its first statement. A pool with many
   * statements to run one after the other would otherwise log in for each of them while others wait.
   */
  keep(pool: BudgetedPool, ms: number): void {
    clearTimeout(this.#kept.get(pool)?.timer);
    this.#kept.set(pool, { ms });
  }

  release(pool: BudgetedPool): void {
    clearTimeout(this.#kept.get(pool)?.timer);
    if (this.#kept.delete(pool)) this.#makeRoomIfFull();
  }

  /** Reports that a connection of the pool was closed. */
  forget(pool: BudgetedPool): void {
    this.#resting.delete(pool);
  }

  #hasRoom(): boolean {
    return this.#open < this.most && this.#opening < MOST_LOGINS && this.#now() >= this.#pausedUntil;
  }

  #begin(): void {
    this.#open++;
    this.#opening++;
  }

  #admit(): void {
    while (this.#waiting.length > 0 && this.#hasRoom()) {
      this.#begin();
      this.#waiting.shift()!();
    }
  }

  /** A connection that waits for other logins needs no room. */
  #makeRoomIfFull(): void {
    const isNeeded = this.#waiting.length > 0 && this.#open >= this.most;
    if (!isNeeded && this.#open <= this.most) return;
    for (const pool of this.#resting) {
      if (this.#kept.has(pool)) continue;
      this.#resting.delete(pool);
      if (pool.closeIdle() > 0) return;
    }
  }
}

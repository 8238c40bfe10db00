/** Servers that have broken the protocol, or crashed the gateway: reconnected to after growing pauses. */
import { LruMap } from "../lru-map";

/** Violations without a pause: a restart or an intermediate proxy may garble a connection once. */
const FREE_STRIKES = 3;
const FIRST_PAUSE_MS = 5000;
const MAX_PAUSE_MS = 10 * 60_000;
/** After this long without a violation a server has a clean record again. */
const FORGET_AFTER_MS = 30 * 60_000;
const MAX_SERVERS = 10_000;

interface Record {
  strikes: number;
  at: number;
}

export class Breaker {
  readonly #records = new LruMap<string, Record>(MAX_SERVERS);
  readonly #now: () => number;

  constructor(now = () => performance.now()) {
    this.#now = now;
  }

  strike(key: string): void {
    const record = this.#recordOf(key) ?? { strikes: 0, at: 0 };
    this.#records.set(key, { strikes: record.strikes + 1, at: this.#now() });
  }

  /** Milliseconds until connections to the server are allowed again; 0 if they are allowed now. */
  pauseMs(key: string): number {
    const record = this.#recordOf(key);
    if (!record || record.strikes < FREE_STRIKES) return 0;
    const pause = Math.min(FIRST_PAUSE_MS * 2 ** (record.strikes - FREE_STRIKES), MAX_PAUSE_MS);
    return Math.max(0, record.at + pause - this.#now());
  }

  #recordOf(key: string): Record | undefined {
    const record = this.#records.get(key);
    return record && this.#now() - record.at < FORGET_AFTER_MS ? record : undefined;
  }
}

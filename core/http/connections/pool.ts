/**
 * This process's connections to one address, shared by everything that sends requests there.
 *
 * H1. A granted request already holds an established connection: no handshake delays it between the grant and the
 *     source.
 * H3. A connection that is opened while no other is open may be over a new network path: all broke, or this process
 *     knows nothing of earlier ones. Requests that were sent before, by this process or others, may have taken longer.
 *     The rate limiter allows for that difference (`dropMs`) until those requests are out of every window.
 *
 * While counted requests use the pool, five idle connections are kept open, so that five requests at once find one. A
 * connection is replaced before it is so old that the source, or an intermediary, may have dropped it. The handshakes
 * measure network latency (round-trips.ts), from the first request on.
 */
import { offAbort, onAbort } from "../../async";
import type { HttpAnswer } from "./answer-reader";
import type { StreamedAnswer } from "./answer-stream";
import { ConnectFailure, Connection, type WholeRequest, type WireRequest } from "./connection";
import { type OpenedSocket, openSocket, type TlsSession } from "./dial";
import { RoundTrips } from "./round-trips";

/** Connections that are kept open: the number of requests that one base may send at once. */
const WARM = 5;
/**
 * Maximum number of connections; further requests wait for one. A thousand bases that send 3,000 requests a second need
 * 1,400 if answers take 50 to 250 ms: a request already holds its connection while it waits for the rate limiter.
 */
const MOST_OPEN = 2048;
/** A connection is replaced after this idle time, ms: before load balancers and NATs drop it (60 s and more). */
const MOST_REST_MS = 20_000;
/**
 * A connection is replaced at this age, ms: host names may resolve to other addresses. A process with a thousand
 * connections opens three a second for that.
 */
const MOST_AGE_MS = 5 * 60_000;
/** How long before the source's announced idle time-out a connection is closed, ms. */
const SOURCE_LEAD_MS = 1500;
/** A pool that was unused for this long keeps no connection open, ms. */
const UNUSED_MS = 5 * 60_000;
const TICK_MS = 2000;
/** How much the latency may drop with a new path, ms. */
const MOST_DROP_MS = 250;
/** How long a path counts as new, ms: a source's window of a second, and the drop. */
const NEW_MS = 1000 + MOST_DROP_MS;

/** A connection held for one request. Disposing of it unused returns it to the pool. */
export interface HeldConnection extends Disposable {
  readonly isOpen: boolean;
  /**
   * Writes the request at once, and returns its answer as soon as its head has arrived. The caller must receive the
   * body, discard it, or destroy the answer.
   *
   * @param timeoutMs longest time to the head of the answer; unlimited unless given
   * @param onSent gets what breaks the request off before its answer has begun
   * @throws StaleConnection, AnswerTimeout, InvalidAnswer, TypeError for a request that cannot be written, or the
   *   connection's error
   */
  send(
    request: WireRequest,
    signal: AbortSignal,
    timeoutMs?: number,
    onSent?: (breakOff: () => void) => void,
  ): Promise<StreamedAnswer>;
  /**
   * Writes the request at once, and returns its answer when it has been read to its end.
   *
   * @throws StaleConnection, AnswerTimeout, InvalidAnswer, AnswerTooLarge, or the connection's error
   */
  exchange(request: WholeRequest, signal: AbortSignal): Promise<HttpAnswer>;
}

interface Waiter {
  resolve(held: HeldConnection): void;
  reject(error: unknown): void;
}

class Held implements HeldConnection {
  readonly #connection: Connection;
  readonly #hasRested: boolean;
  readonly #onUnused: (connection: Connection, hasRested: boolean) => void;
  #isLeft = false;

  /** @param onUnused called if it is disposed of before a request was sent */
  constructor(
    connection: Connection,
    hasRested: boolean,
    onUnused: (connection: Connection, hasRested: boolean) => void,
  ) {
    this.#connection = connection;
    this.#hasRested = hasRested;
    this.#onUnused = onUnused;
  }

  get isOpen(): boolean {
    return !this.#isLeft && this.#connection.isOpen;
  }

  send(
    request: WireRequest,
    signal: AbortSignal,
    timeoutMs?: number,
    onSent?: (breakOff: () => void) => void,
  ): Promise<StreamedAnswer> {
    this.#isLeft = true;
    return this.#connection.send(request, signal, this.#hasRested, timeoutMs, onSent);
  }

  exchange(request: WholeRequest, signal: AbortSignal): Promise<HttpAnswer> {
    this.#isLeft = true;
    return this.#connection.exchange(request, signal, this.#hasRested);
  }

  [Symbol.dispose](): void {
    if (this.#isLeft) return;
    this.#isLeft = true;
    this.#onUnused(this.#connection, this.#hasRested);
  }
}

export class ConnectionPool {
  readonly #address: string;
  readonly #host: string;
  readonly #dial: (address: string, session: TlsSession) => Promise<OpenedSocket>;
  readonly #now: () => number;
  readonly #session: TlsSession = {};
  readonly #roundTrips = new RoundTrips();
  /** The most recently used connection is at the end, and used first. */
  readonly #resting: Connection[] = [];
  /** In the order of their arrival. Not a Set: see docs/performance.md, "Sets and Maps that many requests pass through". */
  readonly #waiting: Waiter[] = [];
  #open = 0;
  #opening = 0;
  #usedAt = -Infinity;
  /** Until then the path counts as new, ms on the clock. */
  #newUntil = -Infinity;
  #isKeptWarm = false;
  #timer: ReturnType<typeof setInterval> | undefined;

  /**
   * @param address scheme, host and port
   * @param options.now ms on any monotonic clock
   */
  constructor(address: string, options: { dial?: typeof openSocket; now?: () => number } = {}) {
    this.#address = address;
    this.#host = new URL(address).host;
    this.#dial = options.dial ?? openSocket;
    this.#now = options.now ?? (() => performance.now());
  }

  /** The maximum difference in network latency between two requests, ms. */
  get spreadMs(): number {
    return this.#roundTrips.spreadMs;
  }

  /** How much longer requests may have taken that were sent before the path changed, by any process, ms. */
  get dropMs(): number {
    return this.#now() < this.#newUntil ? MOST_DROP_MS : 0;
  }

  /** The number of idle connections, and of all open ones. */
  get size(): { resting: number; open: number } {
    return { resting: this.#resting.length, open: this.#open };
  }

  /** Keeps five connections open for counted requests, until none has been sent for a long time. */
  keepWarm(): void {
    if (this.#isKeptWarm) return;
    this.#isKeptWarm = true;
    this.#usedAt = this.#now();
    void this.maintain();
  }

  /** Takes an idle connection without waiting; undefined if there is none. */
  tryTake(): HeldConnection | undefined {
    if (this.#waiting.length > 0) return undefined;
    const now = this.#now();
    this.#usedAt = now;
    const connection = this.#rested(now);
    return connection && this.#hold(connection, true);
  }

  /**
   * Takes a connection as soon as one is available; opens one if none is idle.
   *
   * @throws ConnectFailure; the signal's reason
   */
  take(signal: AbortSignal): Promise<HeldConnection> {
    if (signal.aborted) return Promise.reject(signal.reason);
    const held = this.tryTake();
    if (held) return Promise.resolve(held);
    return new Promise((resolve, reject) => {
      const leave = () => waiter.reject(signal.reason);
      const end = () => {
        const index = this.#waiting.indexOf(waiter);
        if (index >= 0) this.#waiting.splice(index, 1);
        offAbort(signal, leave);
      };
      const waiter: Waiter = {
        resolve: (connection) => {
          end();
          resolve(connection);
        },
        reject: (error) => {
          end();
          reject(error);
        },
      };
      onAbort(signal, leave);
      this.#usedAt = this.#now();
      this.#waiting.push(waiter);
      this.#openForWaiting();
    });
  }

  /** Closes idle connections; requests under way continue. */
  close(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#isKeptWarm = false;
    for (const connection of this.#resting.splice(0)) this.#drop(connection);
  }

  #rested(now: number): Connection | undefined {
    for (let last = this.#resting.pop(); last; last = this.#resting.pop()) {
      if (last.isOpen && !this.#isOld(last, now)) return last;
      this.#drop(last);
    }
  }

  #hold(connection: Connection, hasRested: boolean): HeldConnection {
    return new Held(connection, hasRested, this.#takeBack);
  }

  readonly #takeBack = (connection: Connection, hasRested: boolean) => this.#release(connection, hasRested);

  #release(connection: Connection, hasRested: boolean): void {
    if (!connection.isOpen) return;
    const [waiter] = this.#waiting;
    if (waiter) {
      waiter.resolve(this.#hold(connection, hasRested));
      return;
    }
    connection.rest();
    // A connection that was never used is used last.
    if (hasRested) this.#resting.push(connection);
    else this.#resting.unshift(connection);
  }

  #openForWaiting(): void {
    while (this.#opening < this.#waiting.length && this.#open + this.#opening < MOST_OPEN)
      void this.#openOne();
  }

  async #openOne(): Promise<void> {
    this.#opening++;
    try {
      const dialed = await this.#dial(this.#address, this.#session);
      this.#roundTrips.add(dialed.roundTripMs, dialed.usualMs);
      if (this.#open === 0) this.#newUntil = this.#now() + NEW_MS;
      this.#open++;
      const connection: Connection = new Connection(this.#host, dialed, {
        onRest: () => this.#release(connection, true),
        onClose: () => this.#forget(connection),
        // Whatever closed this connection has usually closed all that were idle as long.
        onStale: () => this.#dropResting(),
        now: this.#now,
      });
      this.#release(connection, false);
    } catch (error) {
      const [waiter] = this.#waiting;
      waiter?.reject(new ConnectFailure(error));
    } finally {
      this.#opening--;
      // It may have closed again before a waiter got it.
      this.#openForWaiting();
      this.#startTimer();
    }
  }

  #forget(connection: Connection): void {
    this.#open--;
    const index = this.#resting.indexOf(connection);
    if (index >= 0) this.#resting.splice(index, 1);
    this.#openForWaiting();
  }

  #drop(connection: Connection): void {
    if (connection.isOpen) {
      connection.close();
      this.#forget(connection);
    }
  }

  #dropResting(): void {
    for (const connection of this.#resting.splice(0)) this.#drop(connection);
  }

  #startTimer(): void {
    if (this.#timer) return;
    this.#timer = setInterval(() => void this.maintain(), TICK_MS);
    this.#timer.unref();
  }

  /** Closes connections that are not needed, and replaces old ones: opens the new ones first. Runs periodically. */
  async maintain(): Promise<void> {
    if (this.#now() - this.#usedAt > UNUSED_MS) return this.close();
    if (this.#opening > 0) return;
    const warm = this.#isKeptWarm ? WARM : 0;
    const nextLook = this.#now() + 2 * TICK_MS;
    const old = this.#resting.filter((connection) => this.#isOld(connection, nextLook));
    for (const connection of old.splice(0, Math.max(0, this.#open - warm))) this.#retire(connection);
    const missing = Math.max(0, warm - this.#open) + old.length;
    await Promise.all(Array.from({ length: missing }, () => this.#openOne()));
    for (const connection of old) if (this.#resting.includes(connection)) this.#retire(connection);
  }

  #retire(connection: Connection): void {
    const index = this.#resting.indexOf(connection);
    if (index >= 0) this.#resting.splice(index, 1);
    this.#drop(connection);
  }

  #isOld(connection: Connection, now: number): boolean {
    const maxIdleMs = Math.min(MOST_REST_MS, connection.sourceKeepsMs - SOURCE_LEAD_MS);
    return now - connection.idleSince > maxIdleMs || now - connection.openedAt > MOST_AGE_MS;
  }
}

/** The part of a pool that senders of counted requests use. */
export type Connections = Pick<ConnectionPool, "spreadMs" | "dropMs" | "keepWarm" | "tryTake" | "take">;

const pools = new Map<string, ConnectionPool>();

/** Returns this process's pool for an address: scheme, host and port. */
export function poolOf(address: string): ConnectionPool {
  const known = pools.get(address);
  if (known) return known;
  const made = new ConnectionPool(address);
  pools.set(address, made);
  return made;
}

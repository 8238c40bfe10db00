/**
 * The connections of this process to one address, shared by everything that sends requests there.
 *
 * H1. Whatever is granted a request has an established connection in hand: no handshake lies between the grant and the
 *     source.
 * While counted requests use the pool, five connections are kept open though they rest, so that five at once find one. A
 * connection is replaced before it is so old that the source, or something on the way, may have forgotten it. The handshakes
 * measure the way (round-trips.ts), from the first request on.
 */
import type { IncomingMessage } from "node:http";
import { ConnectFailure, Connection, StaleConnection, type WireRequest } from "./connection";
import { type OpenedSocket, openSocket, type TlsSession } from "./dial";
import { RoundTrips } from "./round-trips";

/** Connections that are kept open: what one base may send at once. */
const WARM = 5;
/** Connections in all; requests beyond wait for one. */
const MOST_OPEN = 512;
/** A connection is replaced when it has rested for so long, ms: before load balancers and NATs forget it (60 s and more). */
const MOST_REST_MS = 20_000;
/** ... and when it is so old, ms: names of hosts change what they stand for. */
const MOST_AGE_MS = 60_000;
/** How much earlier than the source says that it closes a resting connection, ms. */
const SOURCE_LEAD_MS = 1500;
/** A pool that nothing has used for so long keeps no connection open, ms. */
const UNUSED_MS = 5 * 60_000;
const TICK_MS = 2000;

/** A connection that one request may be sent on. Disposing of it unused lets another request have it. */
export interface HeldConnection extends Disposable {
  readonly isOpen: boolean;
  /**
   * Writes the request at once; the body of the answer is to be read, or its stream to be destroyed.
   *
   * @throws StaleConnection, or what node:http finds wrong with the way, the request or the answer
   */
  send(request: WireRequest, signal: AbortSignal): Promise<IncomingMessage>;
}

interface Waiter {
  resolve(held: HeldConnection): void;
  reject(error: unknown): void;
}

export class ConnectionPool {
  readonly #address: string;
  readonly #host: string;
  readonly #dial: (address: string, session: TlsSession) => Promise<OpenedSocket>;
  readonly #now: () => number;
  readonly #session: TlsSession = {};
  readonly #roundTrips = new RoundTrips();
  /** The one that was used last is at the end, and used first. */
  readonly #resting: Connection[] = [];
  readonly #waiting = new Set<Waiter>();
  #open = 0;
  #opening = 0;
  #usedAt = -Infinity;
  #isKeptWarm = false;
  #timer: ReturnType<typeof setInterval> | undefined;

  /**
   * @param address scheme, host and port
   * @param options.now ms on any clock that only goes forward
   */
  constructor(address: string, options: { dial?: typeof openSocket; now?: () => number } = {}) {
    this.#address = address;
    this.#host = new URL(address).host;
    this.#dial = options.dial ?? openSocket;
    this.#now = options.now ?? (() => performance.now());
  }

  /** By how much longer one request may be on its way than another, ms. */
  get spreadMs(): number {
    return this.#roundTrips.spreadMs;
  }

  /** Connections that rest, and all that are open. */
  get size(): { resting: number; open: number } {
    return { resting: this.#resting.length, open: this.#open };
  }

  /** Counted requests are going to be sent: from now on, until none was for long, five connections are kept open. */
  keepWarm(): void {
    if (this.#isKeptWarm) return;
    this.#isKeptWarm = true;
    this.#usedAt = this.#now();
    void this.maintain();
  }

  /** A connection that rests, at once; undefined where there is none. */
  tryTake(): HeldConnection | undefined {
    if (this.#waiting.size > 0) return undefined;
    this.#usedAt = this.#now();
    const connection = this.#rested();
    return connection && this.#hold(connection, true);
  }

  /**
   * A connection as soon as there is one; opens it where none rests.
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
        this.#waiting.delete(waiter);
        signal.removeEventListener("abort", leave);
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
      signal.addEventListener("abort", leave, { once: true });
      this.#usedAt = this.#now();
      this.#waiting.add(waiter);
      this.#openForWaiting();
    });
  }

  /** Closes what rests; requests under way go on. */
  close(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#isKeptWarm = false;
    for (const connection of this.#resting.splice(0)) this.#drop(connection);
  }

  #rested(): Connection | undefined {
    for (let last = this.#resting.pop(); last; last = this.#resting.pop()) {
      if (last.isOpen && !this.#isOld(last)) return last;
      this.#drop(last);
    }
  }

  #hold(connection: Connection, hasRested: boolean): HeldConnection {
    const pool = this;
    let isLeft = false;
    return {
      get isOpen() {
        return !isLeft && connection.isOpen;
      },
      async send(request, signal) {
        isLeft = true;
        try {
          return await connection.send(request, signal, hasRested);
        } catch (error) {
          // What closed one has as a rule closed all that rested as long.
          if (error instanceof StaleConnection) pool.#dropResting();
          throw error;
        }
      },
      [Symbol.dispose]() {
        if (isLeft) return;
        isLeft = true;
        pool.#release(connection, hasRested);
      },
    };
  }

  #release(connection: Connection, hasRested: boolean): void {
    if (!connection.isOpen) return;
    const [waiter] = this.#waiting;
    if (waiter) {
      waiter.resolve(this.#hold(connection, hasRested));
      return;
    }
    connection.rest();
    // One that was never used is the last to be.
    if (hasRested) this.#resting.push(connection);
    else this.#resting.unshift(connection);
  }

  #openForWaiting(): void {
    while (this.#opening < this.#waiting.size && this.#open + this.#opening < MOST_OPEN) void this.#openOne();
  }

  async #openOne(): Promise<void> {
    this.#opening++;
    try {
      const dialed = await this.#dial(this.#address, this.#session);
      this.#roundTrips.add(dialed.roundTripMs, dialed.usualMs);
      this.#open++;
      const connection: Connection = new Connection(this.#host, dialed, {
        onRest: () => this.#release(connection, true),
        onClose: () => this.#forget(connection),
        now: this.#now,
      });
      this.#release(connection, false);
    } catch (error) {
      const [waiter] = this.#waiting;
      waiter?.reject(new ConnectFailure(error));
    } finally {
      this.#opening--;
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

  /** Closes what is not needed, and replaces what gets old: the new ones first. Runs by itself. */
  async maintain(): Promise<void> {
    if (this.#now() - this.#usedAt > UNUSED_MS) return this.close();
    if (this.#opening > 0) return;
    const warm = this.#isKeptWarm ? WARM : 0;
    const old = this.#resting.filter((connection) => this.#isOld(connection, 2 * TICK_MS));
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

  /** @param leadMs it will be by then */
  #isOld(connection: Connection, leadMs = 0): boolean {
    const now = this.#now() + leadMs;
    const maxIdleMs = Math.min(MOST_REST_MS, connection.sourceKeepsMs - SOURCE_LEAD_MS);
    return now - connection.idleSince > maxIdleMs || now - connection.openedAt > MOST_AGE_MS;
  }
}

const pools = new Map<string, ConnectionPool>();

/** The pool of this process for an address: scheme, host and port. */
export function poolOf(address: string): ConnectionPool {
  const known = pools.get(address);
  if (known) return known;
  const made = new ConnectionPool(address);
  pools.set(address, made);
  return made;
}

/**
 * Relays messages between a driver and a customer's server after the login, and checks every message of the server.
 *
 * Applies backpressure: a side that reads slowly is sent no more until it has caught up.
 */
import type { Duplex } from "node:stream";
import {
  ASIDE_BYTES,
  MAX_COLUMNS,
  MESSAGE_BYTES,
  MESSAGE_MS,
  REQUEST_MS,
  RESULT_BYTES,
  SILENCE_MS,
} from "../limits";
import { checkNotification, isKnownParameter } from "./bodies";
import { Violation } from "./fault";
import { Frames } from "./frames";
import { Order } from "./order";

const NOTICE = 0x4e;
const NOTIFICATION = 0x41;
const PARAMETER = 0x53;
const READY = 0x5a;
/** PortalSuspended: the driver asks for the next part once it has taken this one. */
const SUSPENDED = 0x73;

/** Longest bodies of a server's messages. */
const LIMITS = new Map<number, number>(
  Object.entries({
    D: MESSAGE_BYTES,
    T: MAX_COLUMNS * 300,
    t: 300_000,
    E: 1_000_000,
    N: 1_000_000,
    S: 65_536,
    A: 65_536,
    C: 200,
    Z: 1,
    1: 0,
    2: 0,
    3: 0,
    n: 0,
    I: 0,
    s: 0,
  }).map(([letter, bytes]) => [letter.charCodeAt(0), bytes]),
);

export class Relay {
  readonly #driver: Duplex;
  readonly #server: Duplex;
  readonly #onFault: (fault: unknown) => void;
  readonly #order = new Order();
  readonly #questions = new Frames(() => 0xffffffff);
  readonly #answers = new Frames(limitOf);
  /** Since the last ReadyForQuery; and of that, of the part that the driver is taking. */
  #resultBytes = 0;
  #partBytes = 0;
  #asideBytes = 0;
  #askedAt = 0;
  #heardAt = 0;
  #isWaitingForDriver = false;

  constructor(driver: Duplex, server: Duplex, onFault: (fault: unknown) => void) {
    this.#driver = driver;
    this.#server = server;
    this.#onFault = onFault;
  }

  /** Bytes that the server's messages occupy in this process and in the driver's. */
  get held(): number {
    return this.#answers.held + this.#partBytes;
  }

  /** @param driverRest bytes already read from the driver; `serverRest` from the server */
  start(driverRest: Buffer, serverRest: Buffer, onChunk: (work: () => void) => void): void {
    const [driver, server] = [this.#driver, this.#server];
    const guarded = (work: () => void) => {
      try {
        onChunk(work);
      } catch (error) {
        this.#onFault(error);
      }
    };
    const fromDriver = (chunk: Buffer) => guarded(() => this.#fromDriver(chunk));
    const fromServer = (chunk: Buffer) => guarded(() => this.#fromServer(chunk));
    driver.on("drain", () => {
      this.#isWaitingForDriver = false;
      server.resume();
    });
    server.on("drain", () => driver.resume());
    if (driverRest.length > 0) fromDriver(driverRest);
    if (serverRest.length > 0) fromServer(serverRest);
    driver.on("data", fromDriver).resume();
    server.on("data", fromServer).resume();
  }

  /** Must be called every second. @throws Violation if the server is late */
  checkTime(now: number): void {
    if (this.#isWaitingForDriver) {
      // The server is not silent while we do not read from it.
      this.#heardAt = now;
      return;
    }
    if (now - (this.#answers.begunAt ?? now) > MESSAGE_MS)
      throw new Violation("silence", "a message that does not end");
    if (!this.#order.isBusy) return;
    const quietSince = Math.max(this.#askedAt, this.#heardAt);
    if (now - quietSince > SILENCE_MS) throw new Violation("silence", "no answer");
    if (now - this.#askedAt > REQUEST_MS) throw new Violation("silence", "an answer that does not end");
  }

  #fromDriver(chunk: Buffer): void {
    if (!this.#order.isBusy) this.#askedAt = performance.now();
    this.#questions.push(chunk, (type, whole) => this.#order.asked(type, whole));
    if (!this.#server.write(chunk)) this.#driver.pause();
  }

  #fromServer(chunk: Buffer): void {
    this.#heardAt = performance.now();
    const parts: Buffer[] = [];
    try {
      this.#answers.push(chunk, (type, whole) => {
        const part = this.#checked(type, whole);
        if (part) parts.push(part);
      });
    } finally {
      this.#forward(parts);
    }
  }

  /** Returns what the driver gets for a message of the server. */
  #checked(type: number, whole: Buffer): Buffer | undefined {
    if (type === NOTICE || type === NOTIFICATION || type === PARAMETER) {
      this.#asideBytes += whole.length;
      if (this.#asideBytes > ASIDE_BYTES) throw new Violation("size", "more notices than answers");
      if (type === NOTIFICATION) {
        checkNotification(whole);
        return whole;
      }
      return type === PARAMETER && isKnownParameter(whole) ? whole : undefined;
    }
    this.#resultBytes += whole.length;
    this.#partBytes += whole.length;
    if (this.#resultBytes > RESULT_BYTES)
      throw new Violation("size", `a result of more than ${RESULT_BYTES} bytes`);
    const verdict = this.#order.answered(type, whole);
    if (type === READY) this.#ready();
    if (type === SUSPENDED) this.#partBytes = 0;
    return verdict === "forward" ? whole : verdict;
  }

  #ready(): void {
    this.#resultBytes = this.#partBytes = this.#asideBytes = 0;
    this.#askedAt = performance.now();
  }

  #forward(parts: Buffer[]): void {
    if (parts.length === 0 || this.#driver.destroyed) return;
    const data = joined(parts);
    if (this.#driver.write(data)) return;
    this.#isWaitingForDriver = true;
    this.#server.pause();
  }
}

/** Adjacent parts of one chunk are sent without a copy. */
function joined(parts: Buffer[]): Buffer {
  const [first] = parts;
  const last = parts.at(-1)!;
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const isOneRun =
    first!.buffer === last.buffer && last.byteOffset + last.length - first!.byteOffset === length;
  return isOneRun && parts.every(({ buffer }) => buffer === first!.buffer)
    ? Buffer.from(first!.buffer, first!.byteOffset, length)
    : Buffer.concat(parts, length);
}

function limitOf(type: number): number {
  const limit = LIMITS.get(type);
  if (limit === undefined) throw new Violation("framing", `a message of unknown type ${type}`);
  return limit;
}

/**
 * FIFO queue of this process's pending requests for one key and priority.
 *
 * Calls of one caller get their reservations in the order they came, and callers take turns, so that one with many calls
 * does not keep the others waiting (fair queuing). At most one question to the backend is on its way at a time, and
 * it asks for all that wait (up to five); the answer says when asking again makes sense.
 *
 * I4. A reservation is made only for a call with an established connection in hand, so that no handshake lies between the
 * reservation and the source. The first five in line have one each while the backend is asked; a call that gets no reservation gives its
 * connection back.
 * I4. A reservation is good for as long as this process is usually late. One that its caller gets to even later (a stalled
 * process, a slow answer) is given back and another is taken. A process may also be stopped between its last look at the
 * clock and the request: the backend is told as soon as that is known, and counts the window from then.
 */
import { BasetideError } from "../errors";
import type { HeldConnection } from "../http/connections";
import type { Grant, LimiterBackend, Margin, Priority, Reservation } from "./backend";
import type { QuotaClock } from "./clock";
import type { SchedulingDelay } from "./scheduling-delay";

/** Calls asked for at once: what one window holds. */
const MOST_AT_ONCE = 5;
/**
 * How far ahead a reservation may begin, ms. Clients reserve ahead to keep their order over all processes; no more than this,
 * since what is reserved shuts others out: a live call finds room in the next window, and what a crash of the backend forgets is
 * past when it is back.
 */
const CLIENT_REACH_MS = 300;
/**
 * How far ahead sync reserves, ms, and what the process is late by: it leaves everything ahead to clients, but for what saves
 * it a second question when it asks early.
 */
const SYNC_REACH_MS = 10;
/** How much earlier than `nextAt` sync asks, ms, and what the process is late by: what timers and the way to the backend take. */
const SYNC_EARLY_MS = 4;
/** Longest time between two questions while somebody waits, ms: reservations given back by others come to notice. */
const LONGEST_PAUSE_MS = 1000;
/** A reservation further ahead than this is looked at again before it is used, ms: a block may have made it void. */
const RECHECK_AFTER_MS = 50;
/** How long before its time, ms. */
const RECHECK_LEAD_MS = 5;
/**
 * Reservations expired in a row before a call goes out all the same, and the backend is told: a process this slow must still get
 * on, and each that is missed costs a question more, which makes a machine without free CPU slower still.
 */
const MOST_EXPIRED = 5;

/** A connection that is being opened is of use to others, too. */
const NEVER = new AbortController().signal;

interface Waiter {
  /** Its number in the line. */
  order: number;
  /** Whose it is: callers take turns. */
  caller: string;
  /** Calls of lower rounds go first; a caller has one call in each. */
  round: number;
  /** Latest time its reservation may have, ms on the clock. */
  deadlineAt: number;
  expired: number;
  /** Held until its time comes. */
  reservation: Reservation | undefined;
  /** Where its connection is from; absent: it needs none. */
  connections: Connections | undefined;
  held: HeldConnection | undefined;
  isConnecting: boolean;
  isDone: boolean;
  resolve(): void;
  reject(error: unknown): void;
}

/** What a wait queue needs of a pool of connections (core/http/connections). */
export interface Connections {
  /** By how much longer one request may be on its way than another, ms. */
  readonly spreadMs: number;
  /** Requests are going to be sent. */
  keepWarm(): void;
  tryTake(): HeldConnection | undefined;
  take(signal: AbortSignal): Promise<HeldConnection>;
}

export interface WaitOptions {
  /** Those with the same name go in the order they came; callers take turns. */
  caller?: string | undefined;
  /** Where the call's connection is from; absent: it needs none. */
  connections?: Connections | undefined;
}

export interface WaitQueue {
  /**
   * Resolves when the request may be sent, which must then happen at once, on the connection that it resolves with.
   *
   * @throws BasetideError `quota_timeout` (with `retryAfterSeconds`) once it is known that it would be later than
   *   `deadlineAt`; the backend's error; what opening a connection failed with; the signal's reason
   */
  wait(deadlineAt: number, signal: AbortSignal, options?: WaitOptions): Promise<HeldConnection | undefined>;
  readonly isIdle: boolean;
}

export function createWaitQueue(
  kind: Priority,
  backend: LimiterBackend,
  clock: QuotaClock,
  delay: SchedulingDelay,
  onExpired: () => void,
): WaitQueue {
  const waiters: Waiter[] = [];
  let unused: number[] = [];
  let holding = 0;
  let lastOrder = 0;
  /** The latest round that a call has had its reservation in. */
  let lastRound = 0;
  let isAsking = false;
  let askFrom = 0;
  /** When one call more could go, as the backend last said. */
  let nextAt = -Infinity;
  let cancelAlarm = () => {};

  function wait(
    deadlineAt: number,
    signal: AbortSignal,
    { caller = "", connections }: WaitOptions = {},
  ): Promise<HeldConnection | undefined> {
    if (signal.aborted) return Promise.reject(signal.reason);
    connections?.keepWarm();
    return new Promise((resolve, reject) => {
      const end = (settle: () => void) => {
        if (waiter.isDone) return;
        waiter.isDone = true;
        signal.removeEventListener("abort", leave);
        cancelDeadline();
        settle();
      };
      const waiter: Waiter = {
        order: ++lastOrder,
        caller,
        round: nextRound(caller),
        deadlineAt,
        expired: 0,
        reservation: undefined,
        connections,
        held: undefined,
        isConnecting: false,
        isDone: false,
        resolve: () => end(() => resolve(waiter.held)),
        reject: (error) =>
          end(() => {
            releaseConnection(waiter);
            reject(error);
          }),
      };
      const leave = () => {
        waiter.reject(signal.reason);
        drop(waiter);
      };
      const timeOut = () => {
        // A reservation that is held lies before the deadline; its timer is only a moment behind this one.
        if (waiter.reservation) return;
        waiter.reject(timedOut());
        drop(waiter);
      };
      const cancelDeadline = deadlineAt === Infinity ? () => {} : clock.at(deadlineAt, timeOut);
      signal.addEventListener("abort", leave, { once: true });
      insert(waiter);
      ask();
    });
  }

  /** One after the last of the caller's that wait, and not before those whose round it is. */
  function nextRound(caller: string): number {
    const last = waiters.findLast((other) => other.caller === caller);
    return Math.max(lastRound, (last?.round ?? -1) + 1);
  }

  function insert(waiter: Waiter): void {
    const behind = waiters.findIndex((other) => goesBefore(waiter, other));
    waiters.splice(behind < 0 ? waiters.length : behind, 0, waiter);
  }

  /** Asks the backend for those who wait, if nobody is asking and it is time. */
  async function ask(): Promise<void> {
    if (isAsking) return;
    cancelAlarm();
    const now = clock.now();
    const isTime = askFrom <= now;
    if (waiters.length > 0 && !isTime) {
      cancelAlarm = clock.at(Math.min(askFrom, now + LONGEST_PAUSE_MS), () => {
        askFrom = 0;
        ask();
      });
    }
    const requested = isTime ? waiters.slice(0, MOST_AT_ONCE).filter(isConnected) : [];
    const back = unused;
    if (requested.length === 0 && back.length === 0) return;
    unused = [];
    isAsking = true;
    try {
      const margin = marginOf(requested);
      const { reachMs } = aheadOf(kind, margin);
      const within = requested.map((waiter) => Math.min(reachMs, waiter.deadlineAt - now));
      assign(requested, await backend.acquire(within, back, margin));
    } catch (error) {
      for (const waiter of waiters.splice(0)) waiter.reject(error);
    } finally {
      isAsking = false;
    }
    ask();
  }

  /** Has it a connection, or needs none? If not one is opened for it, and the backend is asked when that is there. */
  function isConnected(waiter: Waiter): boolean {
    const { connections } = waiter;
    if (!connections) return true;
    if (waiter.held?.isOpen) return true;
    waiter.held = connections.tryTake();
    if (waiter.held) return true;
    if (!waiter.isConnecting) void connect(waiter, connections);
    return false;
  }

  async function connect(waiter: Waiter, connections: Connections): Promise<void> {
    waiter.isConnecting = true;
    try {
      const held = await connections.take(NEVER);
      // It may have left, or found another.
      if (waiter.isDone || waiter.held?.isOpen) return held[Symbol.dispose]();
      waiter.held = held;
    } catch (error) {
      waiter.reject(error);
      drop(waiter);
    } finally {
      waiter.isConnecting = false;
    }
    ask();
  }

  function releaseConnection(waiter: Waiter): void {
    waiter.held?.[Symbol.dispose]();
    waiter.held = undefined;
  }

  function marginOf(requested: Waiter[]) {
    const spreadMs = Math.max(0, ...requested.map(({ connections }) => connections?.spreadMs ?? 0));
    return { delayMs: delay.ms, spreadMs };
  }

  function assign(requested: Waiter[], grant: Grant): void {
    nextAt = grant.nextAt;
    askFrom = nextAt - aheadOf(kind, marginOf(requested)).earlyMs;
    requested.forEach((waiter, index) => {
      const reservation = grant.reservations[index];
      if (waiter.isDone) {
        if (reservation) unused.push(reservation.arrivesBy);
      } else if (reservation) {
        lastRound = Math.max(lastRound, waiter.round);
        drop(waiter);
        hold(waiter, reservation);
      } else {
        releaseConnection(waiter);
        if (nextAt <= waiter.deadlineAt) return;
        waiter.reject(timedOut());
        drop(waiter);
      }
    });
  }

  /** Keeps a reservation until its time, and lets its call go then. */
  async function hold(waiter: Waiter, reservation: Reservation): Promise<void> {
    waiter.reservation = reservation;
    holding++;
    try {
      if (reservation.at - clock.now() > RECHECK_AFTER_MS) {
        await until(reservation.at - RECHECK_LEAD_MS);
        if (waiter.isDone) return;
        if (await backend.isVoid(reservation)) {
          // The book may have taken it for one that was used before the block.
          unused.push(reservation.arrivesBy);
          return requeue(waiter);
        }
      }
      await until(reservation.at);
      if (waiter.isDone) return;
      const now = clock.now();
      delay.learn(now - reservation.at);
      const isExpired = now > reservation.until && waiter.expired < MOST_EXPIRED;
      // The source may have closed the connection meanwhile; any other that is open will do.
      if (isExpired || !isConnected(waiter)) {
        if (isExpired) {
          waiter.expired++;
          onExpired();
        }
        unused.push(reservation.arrivesBy);
        return requeue(waiter);
      }
      waiter.resolve();
      const sentAt = await whenSent();
      if (sentAt > reservation.until) {
        delay.learn(sentAt - reservation.at);
        await backend.reportLateSend(reservation);
      }
    } catch (error) {
      waiter.reject(error);
    } finally {
      holding--;
    }
  }

  function requeue(waiter: Waiter): void {
    waiter.reservation = undefined;
    if (waiter.isDone) return;
    insert(waiter);
    askFrom = 0;
    ask();
  }

  /** Takes a waiter out of the line; a reservation that it holds and has no use for goes back. */
  function drop(waiter: Waiter): void {
    const index = waiters.indexOf(waiter);
    if (index >= 0) waiters.splice(index, 1);
    if (!waiter.reservation) return;
    unused.push(waiter.reservation.arrivesBy);
    waiter.reservation = undefined;
    ask();
  }

  /**
   * When whoever waited for a reservation has sent its request. In a busy process the next turn of the event loop would be
   * long after that, and the backend told of calls that went in time.
   */
  function whenSent(): Promise<number> {
    return new Promise((resolve) => process.nextTick(() => resolve(clock.now())));
  }

  function timedOut(): BasetideError {
    const retryAfterSeconds = Math.max(1, Math.ceil((nextAt - clock.now()) / 1000));
    return new BasetideError("quota_timeout", undefined, { details: { retryAfterSeconds } });
  }

  /** Resolves at a time; at once, without losing a turn of the event loop, when it is past. */
  async function until(atMs: number): Promise<void> {
    if (atMs > clock.now()) await new Promise<void>((resolve) => clock.at(atMs, resolve));
  }

  return {
    wait,
    get isIdle() {
      return waiters.length === 0 && unused.length === 0 && holding === 0 && !isAsking;
    },
  };
}

function goesBefore(a: Waiter, b: Waiter): boolean {
  return a.round < b.round || (a.round === b.round && a.order < b.order);
}

/** How far ahead of now a reservation may begin, and how long before that it is asked for, ms. */
function aheadOf(kind: Priority, { delayMs }: Margin): { reachMs: number; earlyMs: number } {
  if (kind !== "client") return { reachMs: SYNC_REACH_MS + delayMs, earlyMs: SYNC_EARLY_MS + delayMs };
  // A little later than as early as can be: rounded, the reservation would be beyond reach, and be asked for again and again.
  return { reachMs: CLIENT_REACH_MS, earlyMs: CLIENT_REACH_MS - 1 };
}

/**
 * The line of calls of one kind that wait for one key in this process.
 *
 * Calls of one caller get their places in the order they came, and callers take turns, so that one with many calls
 * does not keep the others waiting (fair queuing). At most one question to the book is on its way at a time, and
 * it asks for all that wait (up to five); the answer says when asking again makes sense.
 *
 * I4. A place is booked only for a call with an established connection in hand, so that no handshake lies between the
 * place and the source. The first five in line have one each while the book is asked; a call that gets no place gives its
 * connection back.
 * I4. A place is good for as long as this process is usually late. One that its caller gets to even later (a stalled
 * process, a slow answer) is given back and another is taken. A process may also be stopped between its last look at the
 * clock and the request: the book is told as soon as that is known, and counts the window from then.
 */
import { BasetideError } from "../errors";
import type { HeldConnection } from "../http/connections";
import type { Book, Booking, CallKind, Margin, Place } from "./backend";
import type { QuotaClock } from "./clock";
import type { Delay } from "./margin";

/** Calls asked for at once: what one window holds. */
const MOST_AT_ONCE = 5;
/**
 * How far ahead a reservation may begin, ms. Clients book ahead to keep their order over all processes; no more than this,
 * since what is booked shuts others out: a live call finds room in the next window, and what a crash of the book forgets is
 * past when it is back.
 */
const CLIENT_REACH_MS = 300;
/**
 * How far ahead sync books, ms, and what the process is late by: it leaves everything ahead to clients, but for what saves
 * it a second question when it asks early.
 */
const SYNC_REACH_MS = 10;
/** How much earlier than `nextAt` sync asks, ms, and what the process is late by: what timers and the way to the book take. */
const SYNC_EARLY_MS = 4;
/** Longest time between two questions while somebody waits, ms: places given back by others come to notice. */
const LONGEST_PAUSE_MS = 1000;
/** A place further ahead than this is looked at again before it is used, ms: a block may have made it void. */
const RECHECK_AFTER_MS = 50;
/** How long before its time, ms. */
const RECHECK_LEAD_MS = 5;
/**
 * Places missed in a row before a call goes out all the same, and the book is told: a process this slow must still get
 * on, and each that is missed costs a question more, which makes a machine without free CPU slower still.
 */
const MOST_MISSED = 5;

/** A connection that is being opened is of use to others, too. */
const NEVER = new AbortController().signal;

interface Waiter {
  /** Its number in the line. */
  order: number;
  /** Whose it is: callers take turns. */
  caller: string;
  /** Calls of lower rounds go first; a caller has one call in each. */
  round: number;
  /** Latest time its place may have, ms on the clock. */
  deadlineAt: number;
  missed: number;
  /** Held until its time comes. */
  place: Place | undefined;
  /** Where its connection is from; absent: it needs none. */
  connections: Connections | undefined;
  held: HeldConnection | undefined;
  isConnecting: boolean;
  isDone: boolean;
  resolve(): void;
  reject(error: unknown): void;
}

/** What a lane needs of a pool of connections (core/http/connections). */
export interface Connections {
  /** By how much longer one request may be on its way than another, ms. */
  readonly spreadMs: number;
  /** Requests are going to be sent. */
  keepWarm(): void;
  tryTake(): HeldConnection | undefined;
  take(signal: AbortSignal): Promise<HeldConnection>;
}

export interface Waiting {
  /** Those with the same name go in the order they came; callers take turns. */
  caller?: string | undefined;
  /** Where the call's connection is from; absent: it needs none. */
  connections?: Connections | undefined;
}

export interface Lane {
  /**
   * Resolves when the request may be sent, which must then happen at once, on the connection that it resolves with.
   *
   * @throws BasetideError `quota_timeout` (with `retryAfterSeconds`) once it is known that it would be later than
   *   `deadlineAt`; the book's error; what opening a connection failed with; the signal's reason
   */
  wait(deadlineAt: number, signal: AbortSignal, options?: Waiting): Promise<HeldConnection | undefined>;
  readonly isIdle: boolean;
}

export function createLane(
  kind: CallKind,
  book: Book,
  clock: QuotaClock,
  delay: Delay,
  onMissed: () => void,
): Lane {
  const line: Waiter[] = [];
  let unused: number[] = [];
  let holding = 0;
  let lastOrder = 0;
  /** The latest round that a call has had its place in. */
  let lastRound = 0;
  let isAsking = false;
  let askFrom = 0;
  /** When one call more could go, as the book last said. */
  let nextAt = -Infinity;
  let cancelAlarm = () => {};

  function wait(
    deadlineAt: number,
    signal: AbortSignal,
    { caller = "", connections }: Waiting = {},
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
        missed: 0,
        place: undefined,
        connections,
        held: undefined,
        isConnecting: false,
        isDone: false,
        resolve: () => end(() => resolve(waiter.held)),
        reject: (error) =>
          end(() => {
            leaveConnection(waiter);
            reject(error);
          }),
      };
      const leave = () => {
        waiter.reject(signal.reason);
        drop(waiter);
      };
      const giveUp = () => {
        // A place that is held lies before the deadline; its timer is only a moment behind this one.
        if (waiter.place) return;
        waiter.reject(timedOut());
        drop(waiter);
      };
      const cancelDeadline = deadlineAt === Infinity ? () => {} : clock.at(deadlineAt, giveUp);
      signal.addEventListener("abort", leave, { once: true });
      insert(waiter);
      ask();
    });
  }

  /** One after the last of the caller's that wait, and not before those whose round it is. */
  function nextRound(caller: string): number {
    const last = line.findLast((other) => other.caller === caller);
    return Math.max(lastRound, (last?.round ?? -1) + 1);
  }

  function insert(waiter: Waiter): void {
    const behind = line.findIndex((other) => goesBefore(waiter, other));
    line.splice(behind < 0 ? line.length : behind, 0, waiter);
  }

  /** Asks the book for those who wait, if nobody is asking and it is time. */
  async function ask(): Promise<void> {
    if (isAsking) return;
    cancelAlarm();
    const now = clock.now();
    const isTime = askFrom <= now;
    if (line.length > 0 && !isTime) {
      cancelAlarm = clock.at(Math.min(askFrom, now + LONGEST_PAUSE_MS), () => {
        askFrom = 0;
        ask();
      });
    }
    const asked = isTime ? line.slice(0, MOST_AT_ONCE).filter(isConnected) : [];
    const back = unused;
    if (asked.length === 0 && back.length === 0) return;
    unused = [];
    isAsking = true;
    try {
      const margin = marginOf(asked);
      const { reachMs } = aheadOf(kind, margin);
      const within = asked.map((waiter) => Math.min(reachMs, waiter.deadlineAt - now));
      settle(asked, await book.take(within, back, margin));
    } catch (error) {
      for (const waiter of line.splice(0)) waiter.reject(error);
    } finally {
      isAsking = false;
    }
    ask();
  }

  /** Has it a connection, or needs none? If not one is opened for it, and the book is asked when that is there. */
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

  function leaveConnection(waiter: Waiter): void {
    waiter.held?.[Symbol.dispose]();
    waiter.held = undefined;
  }

  function marginOf(asked: Waiter[]) {
    const spreadMs = Math.max(0, ...asked.map(({ connections }) => connections?.spreadMs ?? 0));
    return { delayMs: delay.ms, spreadMs };
  }

  function settle(asked: Waiter[], booking: Booking): void {
    nextAt = booking.nextAt;
    askFrom = nextAt - aheadOf(kind, marginOf(asked)).earlyMs;
    asked.forEach((waiter, index) => {
      const place = booking.places[index];
      if (waiter.isDone) {
        if (place) unused.push(place.slot);
      } else if (place) {
        lastRound = Math.max(lastRound, waiter.round);
        drop(waiter);
        hold(waiter, place);
      } else {
        leaveConnection(waiter);
        if (nextAt <= waiter.deadlineAt) return;
        waiter.reject(timedOut());
        drop(waiter);
      }
    });
  }

  /** Keeps a place until its time, and lets its call go then. */
  async function hold(waiter: Waiter, place: Place): Promise<void> {
    waiter.place = place;
    holding++;
    try {
      if (place.at - clock.now() > RECHECK_AFTER_MS) {
        await until(place.at - RECHECK_LEAD_MS);
        if (waiter.isDone) return;
        if (await book.isVoid(place)) {
          // The book may have taken it for one that was used before the block.
          unused.push(place.slot);
          return lineUpAgain(waiter);
        }
      }
      await until(place.at);
      if (waiter.isDone) return;
      const now = clock.now();
      delay.learn(now - place.at);
      const isMissed = now > place.until && waiter.missed < MOST_MISSED;
      // The source may have closed the connection meanwhile; any other that is open will do.
      if (isMissed || !isConnected(waiter)) {
        if (isMissed) {
          waiter.missed++;
          onMissed();
        }
        unused.push(place.slot);
        return lineUpAgain(waiter);
      }
      waiter.resolve();
      const sentAt = await whenSent();
      if (sentAt > place.until) {
        delay.learn(sentAt - place.at);
        await book.wentLate(place);
      }
    } catch (error) {
      waiter.reject(error);
    } finally {
      holding--;
    }
  }

  function lineUpAgain(waiter: Waiter): void {
    waiter.place = undefined;
    if (waiter.isDone) return;
    insert(waiter);
    askFrom = 0;
    ask();
  }

  /** Takes a waiter out of the line; a place that it holds and has no use for goes back. */
  function drop(waiter: Waiter): void {
    const index = line.indexOf(waiter);
    if (index >= 0) line.splice(index, 1);
    if (!waiter.place) return;
    unused.push(waiter.place.slot);
    waiter.place = undefined;
    ask();
  }

  /**
   * When whoever waited for a place has sent its request. In a busy process the next turn of the event loop would be
   * long after that, and the book told of calls that went in time.
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
      return line.length === 0 && unused.length === 0 && holding === 0 && !isAsking;
    },
  };
}

function goesBefore(a: Waiter, b: Waiter): boolean {
  return a.round < b.round || (a.round === b.round && a.order < b.order);
}

/** How far ahead of now a place may begin, and how long before that it is asked for, ms. */
function aheadOf(kind: CallKind, { delayMs }: Margin): { reachMs: number; earlyMs: number } {
  if (kind !== "client") return { reachMs: SYNC_REACH_MS + delayMs, earlyMs: SYNC_EARLY_MS + delayMs };
  // A little later than as early as can be: rounded, the place would be beyond reach, and be asked for again and again.
  return { reachMs: CLIENT_REACH_MS, earlyMs: CLIENT_REACH_MS - 1 };
}

/**
 * The line of calls of one kind that wait for one key in this process.
 *
 * Calls get their places in the order they came. At most one question to the book is on its way at a time, and
 * it asks for all that wait (up to five); the answer says when asking again makes sense.
 *
 * I4. A place is good for a span of time, as long as this process is usually late. One that its caller gets to even
 * later (a stalled process, a slow answer) is given back and another is taken, since the window after it was counted from
 * the end of that span. A process may also be stopped between its last look at the clock and the request: the book is told
 * as soon as that is known, and counts the window from then.
 */
import { BasetideError } from "../errors";
import { type Book, type Booking, type CallKind, type Place, SPARE_MS } from "./book";
import type { QuotaClock } from "./clock";
import type { Lateness } from "./lateness";

/** Calls asked for at once: what one window holds. */
const MOST_AT_ONCE = 5;
/**
 * How far ahead of its end a place may be booked, ms. Clients book ahead to keep their order; no more than a second,
 * since what is booked shuts others out, and what a crash of the book forgets must be past when it is back.
 */
const CLIENT_REACH_MS = 1000;
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

interface Waiter {
  /** Its number in the line. */
  order: number;
  /** Latest time its place may have, ms on the clock. */
  deadlineAt: number;
  missed: number;
  /** Held until its time comes. */
  place: Place | undefined;
  isDone: boolean;
  resolve(): void;
  reject(error: unknown): void;
}

export interface Lane {
  /**
   * Resolves when the request may be sent, which must then happen at once.
   *
   * @throws BasetideError `quota_timeout` once it is known that it would be later than `deadlineAt`; the book's
   *   error; the signal's reason
   */
  wait(deadlineAt: number, signal: AbortSignal): Promise<void>;
  readonly isIdle: boolean;
}

export function createLane(
  kind: CallKind,
  book: Book,
  clock: QuotaClock,
  lateness: Lateness,
  onMissed: () => void,
): Lane {
  const line: Waiter[] = [];
  let unused: number[] = [];
  let holding = 0;
  let lastOrder = 0;
  let isAsking = false;
  let askFrom = 0;
  let cancelAlarm = () => {};

  function wait(deadlineAt: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.reject(signal.reason);
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
        deadlineAt,
        missed: 0,
        place: undefined,
        isDone: false,
        resolve: () => end(resolve),
        reject: (error) => end(() => reject(error)),
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
      line.push(waiter);
      ask();
    });
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
    const asked = isTime ? line.slice(0, MOST_AT_ONCE) : [];
    const back = unused;
    if (asked.length === 0 && back.length === 0) return;
    unused = [];
    isAsking = true;
    try {
      const lateMs = lateness.ms;
      const { reachMs } = aheadOf(kind, lateMs);
      const within = asked.map((waiter) => Math.min(reachMs, waiter.deadlineAt - now));
      settle(asked, await book.take(within, back, lateMs));
    } catch (error) {
      for (const waiter of line.splice(0)) waiter.reject(error);
    } finally {
      isAsking = false;
    }
    ask();
  }

  function settle(asked: Waiter[], booking: Booking): void {
    askFrom = booking.nextAt - aheadOf(kind, lateness.ms).earlyMs;
    asked.forEach((waiter, index) => {
      const place = booking.places[index];
      if (waiter.isDone) {
        if (place) unused.push(place.slot);
      } else if (place) {
        drop(waiter);
        hold(waiter, place);
      } else if (booking.nextAt > waiter.deadlineAt) {
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
        if (await book.isVoid(place)) return lineUpAgain(waiter);
      }
      await until(place.at);
      if (waiter.isDone) return;
      const now = clock.now();
      lateness.learn(now - place.at);
      if (now - place.until > SPARE_MS && waiter.missed < MOST_MISSED) {
        waiter.missed++;
        onMissed();
        unused.push(place.slot);
        return lineUpAgain(waiter);
      }
      waiter.resolve();
      const sentAt = await whenSent();
      if (sentAt - place.until > SPARE_MS) await book.wentLate(place);
    } catch (error) {
      waiter.reject(error);
    } finally {
      holding--;
    }
  }

  function lineUpAgain(waiter: Waiter): void {
    waiter.place = undefined;
    if (waiter.isDone) return;
    const behind = line.findIndex((other) => other.order > waiter.order);
    line.splice(behind < 0 ? line.length : behind, 0, waiter);
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

/** How far ahead of now a place may begin, and how long before that it is asked for, ms. */
function aheadOf(kind: CallKind, lateMs: number): { reachMs: number; earlyMs: number } {
  if (kind === "sync") return { reachMs: SYNC_REACH_MS + lateMs, earlyMs: SYNC_EARLY_MS + lateMs };
  const reachMs = CLIENT_REACH_MS - lateMs;
  return { reachMs, earlyMs: reachMs };
}

function timedOut(): BasetideError {
  return new BasetideError("quota_timeout");
}

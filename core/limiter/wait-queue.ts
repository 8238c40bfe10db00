/**
 * FIFO queue of this process's pending requests for one key and priority.
 *
 * Requests of one caller get their reservations in the order they came. Callers take turns, so that one with many
 * requests does not delay the others (fair queuing). At most one call to the backend runs at a time; it asks for
 * all waiting requests (up to five), and the answer says when the next call makes sense.
 *
 * I4. Only a request that already has an established connection gets a reservation, so that no handshake lies
 * between the reservation and the source. The first five requests hold one each while the backend is called; a
 * request that gets no reservation returns its connection.
 *
 * A sync's request may find a reservation that was made in advance (advance-reservations.ts). It needs no place in the
 * queue then, and no connection before its time. A client's request may find a standing reservation
 * (standing-reservation.ts).
 *
 * I4. A reservation is valid for the process's usual scheduling delay. One that is reached later (stalled process,
 * slow answer) is returned, and the request waits for another, which is valid for longer. A process that is late by more
 * than MOST_DELAY_MS each time sends nothing: its requests would arrive together with others. A request that was sent
 * late nevertheless is reported (late-sends.ts).
 */
import { offAbort, onAbort } from "../async";
import { BasetideError } from "../errors";
import type { HeldConnection } from "../http/connections";
import { type AdvanceReservation, AdvanceReservations } from "./advance-reservations";
import {
  type Grant,
  type LimiterBackend,
  type Margin,
  MOST_DELAY_MS,
  type Priority,
  type Reservation,
  SHARED_MS,
  SYNC_EARLY_MS,
  SYNC_REACH_MS,
} from "./backend";
import type { QuotaClock } from "./clock";
import { createLateSends } from "./late-sends";
import type { SchedulingDelay } from "./scheduling-delay";
import { StandingReservation } from "./standing-reservation";
import { type Connections, goesBefore, type Waiter, type WaitOptions } from "./waiter";

/** Reservations requested in one call: the content of one window. */
const MOST_AT_ONCE = 5;
/**
 * How far ahead a reservation may begin, ms. Clients reserve ahead to keep their order over all processes. They
 * reserve no further, because a reservation blocks others: a live request finds room in the next window, and the
 * reservations that a crash of the backend loses are past when it is back.
 */
const CLIENT_REACH_MS = 300;
/** Longest time between two calls while requests wait, ms, so that reservations returned by others are noticed. */
const LONGEST_PAUSE_MS = 1000;
/** A reservation further ahead than this is checked again before use, ms: a block may have voided it. */
const RECHECK_AFTER_MS = 50;
/** How long before its time it is checked, ms. */
const RECHECK_LEAD_MS = 5;
/**
 * After a reservation has expired, the request's next one is valid for this many times the delay that it met. Each
 * expired one costs another call, which slows down a machine without free CPU further.
 */
const DELAY_FACTOR = 2;

/** Never aborted: a connection that is being opened is useful to other requests, too. */
const NEVER = new AbortController().signal;

export interface WaitQueue {
  /**
   * Resolves when the request may be sent. It must then be sent at once, on the returned connection.
   *
   * @throws BasetideError `quota_timeout` (with `retryAfterSeconds`) once it is known that it would be later than
   *   `deadlineAt`; the backend's error; the error of opening a connection; the signal's reason
   */
  wait(deadlineAt: number, signal: AbortSignal, options?: WaitOptions): Promise<HeldConnection | undefined>;
  /**
   * Resolves when all unused reservations have been returned. Requests may still be waiting. Never rejects.
   */
  settled(): Promise<void>;
  /** Records that the source has asked for a pause, which voids what is reserved for later. */
  pause(): void;
  readonly isIdle: boolean;
}

export interface QueueEvents {
  /** A request may be sent, which has waited this long, ms. */
  onGranted?: (waitedMs: number) => void;
  /** A reservation expired before its request could be sent. */
  onExpired: () => void;
}

export function createWaitQueue(
  kind: Priority,
  backend: LimiterBackend,
  clock: QuotaClock,
  delay: SchedulingDelay,
  { onGranted = () => {}, onExpired }: QueueEvents,
): WaitQueue {
  const waiters: Waiter[] = [];
  let unused: number[] = [];
  let holding = 0;
  let lastOrder = 0;
  /** The latest round in which a request got its reservation. */
  let lastRound = 0;
  let isAsking = false;
  /** Called when no call to the backend is running or due, and no report. */
  const onSettled: (() => void)[] = [];
  let askFrom = 0;
  /** The earliest time for one more request, by the backend's last answer. */
  let nextAt = -Infinity;
  let cancelAlarm = () => {};
  const advance =
    kind === "sync" && backend.advance
      ? new AdvanceReservations(backend.advance, clock, giveBack)
      : undefined;
  const standing =
    kind === "client" && backend.standing
      ? new StandingReservation(backend.standing, clock, { onUnused: giveBack, onSettled: askOrSettle })
      : undefined;
  // I4. The next reservations are made once the backend knows of a late request. Those that were made in advance may begin
  // less than a window after it.
  const lateSends = createLateSends(backend, clock, delay, {
    onLate: () => void unused.push(...(advance?.void() ?? [])),
    onReported() {
      askFrom = 0;
      askOrSettle();
    },
  });

  function wait(
    deadlineAt: number,
    signal: AbortSignal,
    options: WaitOptions = {},
  ): Promise<HeldConnection | undefined> {
    if (signal.aborted) return Promise.reject(signal.reason);
    options.connections?.keepWarm();
    const since = clock.now();
    advance?.arrived(since);
    standing?.arrived(since);
    const reservation = waiters.length === 0 ? advance?.take(since) : undefined;
    if (!reservation) return waitInLine(deadlineAt, signal, options, since);
    return new Promise((resolve, reject) => {
      const cancel = clock.at(reservation.at, () => {
        offAbort(signal, leave);
        const now = clock.now();
        const use = useInAdvance(reservation, options.connections, now);
        if (!use) return void waitInLine(deadlineAt, signal, options, since).then(resolve, reject);
        granted(since, now);
        resolve(use.held);
        void lateSends.checkOnceSent(reservation);
      });
      const leave = () => {
        cancel();
        giveBack([reservation.arrivesBy]);
        reject(signal.reason);
      };
      onAbort(signal, leave);
    });
  }

  function granted(since: number, now: number): void {
    advance?.granted(now);
    onGranted(now - since);
  }

  function waitInLine(
    deadlineAt: number,
    signal: AbortSignal,
    { caller = "", connections, complete }: WaitOptions,
    since: number,
  ): Promise<HeldConnection | undefined> {
    return new Promise((resolve, reject) => {
      const end = (settle: () => void) => {
        if (waiter.isDone) return;
        waiter.isDone = true;
        offAbort(signal, leave);
        cancelDeadline();
        settle();
      };
      const waiter: Waiter = {
        order: ++lastOrder,
        since,
        caller,
        round: nextRound(caller),
        deadlineAt,
        delayMs: 0,
        reservation: undefined,
        connections,
        held: undefined,
        isConnecting: false,
        isComplete: complete === undefined,
        complete,
        isDone: false,
        resolve: () =>
          end(() => {
            granted(waiter.since, clock.now());
            resolve(waiter.held);
          }),
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
        // A reservation that is held begins before the deadline; its timer fires only a moment after this one.
        if (waiter.reservation) return;
        waiter.reject(timedOut());
        drop(waiter);
      };
      const cancelDeadline = deadlineAt === Infinity ? () => {} : clock.at(deadlineAt, timeOut);
      onAbort(signal, leave);
      complete?.then(
        () => {
          waiter.isComplete = true;
          if (standing) ask();
        },
        (error) => {
          waiter.reject(error);
          drop(waiter);
        },
      );
      insert(waiter);
      ask();
    });
  }

  /** Sends the first request with the standing reservation, unless others hold reservations that were made before it. */
  function useStanding(): void {
    const waiter = waiters[0];
    if (!standing || holding > 0 || !waiter?.isComplete || !isConnected(waiter)) return;
    const reservation = standing.take(clock.now(), waiter.connections);
    if (!reservation) return;
    lastRound = Math.max(lastRound, waiter.round);
    waiters.shift();
    void hold(waiter, reservation, { isStanding: true });
  }

  /** Returns whether the only request will find the standing reservation, once it is complete and has a connection. */
  function willUseStanding(now: number): boolean {
    return waiters.length === 1 && holding === 0 && standing!.isReady(now);
  }

  /** Returns the round after the caller's last waiting request, and at least the current one. */
  function nextRound(caller: string): number {
    const last = waiters.findLast((other) => other.caller === caller);
    return Math.max(lastRound, (last?.round ?? -1) + 1);
  }

  function insert(waiter: Waiter): void {
    const behind = waiters.findIndex((other) => goesBefore(waiter, other));
    waiters.splice(behind < 0 ? waiters.length : behind, 0, waiter);
  }

  /** Calls the backend for the waiting requests, if no call is running and it is time. */
  function ask(): void {
    if (isAsking || lateSends.isReporting) return;
    cancelAlarm();
    const now = clock.now();
    if (standing) {
      // It may take the place that a request would get otherwise.
      if (standing.isBeingMade) return;
      useStanding();
      if (willUseStanding(now)) return;
    }
    const isTime = askFrom <= now;
    if (waiters.length > 0 && !isTime) {
      cancelAlarm = clock.at(Math.min(askFrom, now + LONGEST_PAUSE_MS), () => {
        askFrom = 0;
        ask();
      });
    }
    // The others get those that are made in advance.
    const ahead = advance?.wanted ?? 0;
    const most = ahead > 0 ? 1 : MOST_AT_ONCE;
    const requested = isTime ? waiters.slice(0, most).filter(isConnected) : [];
    if (requested.length > 0) void acquire(requested, ahead);
    else if (unused.length > 0) void acquire([], 0);
  }

  async function acquire(requested: Waiter[], ahead: number): Promise<void> {
    const back = unused;
    unused = [];
    isAsking = true;
    const now = clock.now();
    const generation = advance?.generation ?? 0;
    try {
      const margin = marginOf(requested);
      const { reachMs } = aheadOf(kind, margin);
      const within = requested.map((waiter) => Math.min(reachMs, waiter.deadlineAt - now));
      const dueAt = nextAt - SYNC_EARLY_MS - margin.delayMs;
      const latestAt = kind === "client" || kind === "unproven" ? now : Math.min(dueAt, now + SHARED_MS);
      const isWanted = () => back.length > 0 || requested.some((waiter) => !waiter.isDone);
      const grant = await backend.acquire(within, back, margin, { latestAt, isWanted, ahead });
      assign(requested, grant, margin);
      advance?.add(grant.reservations.slice(requested.length), margin, generation);
      useForWaiting();
    } catch (error) {
      for (const waiter of waiters.splice(0)) waiter.reject(error);
    } finally {
      isAsking = false;
    }
    askOrSettle();
  }

  function askOrSettle(): void {
    ask();
    if (isSettled()) for (const resolve of onSettled.splice(0)) resolve();
  }

  function isSettled(): boolean {
    return !isAsking && !lateSends.isReporting && (standing?.isSettled ?? true);
  }

  /**
   * Returns whether the request has, or needs no, connection. If not, opens one, and `ask` runs again when it is
   * open.
   */
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
      // It may have left the queue, or found another connection.
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

  function marginOf(requested: Waiter[]): Margin {
    const margin = { delayMs: delay.ms, spreadMs: 0, dropMs: 0 };
    for (const { delayMs, connections } of requested) {
      margin.delayMs = Math.max(margin.delayMs, delayMs);
      if (!connections) continue;
      margin.spreadMs = Math.max(margin.spreadMs, connections.spreadMs);
      margin.dropMs = Math.max(margin.dropMs, connections.dropMs);
    }
    return margin;
  }

  function assign(requested: Waiter[], grant: Grant, margin: Margin): void {
    nextAt = grant.nextAt;
    askFrom = nextAt - aheadOf(kind, margin).earlyMs;
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

  /** Gives what was made in advance to requests that wait already. */
  function useForWaiting(): void {
    while (advance && waiters.length > 0) {
      const reservation = advance.take(clock.now());
      if (!reservation) break;
      holdInAdvance(waiters[0]!, reservation);
    }
  }

  /** Holds a reservation that was made in advance, for a request that is already in the queue. */
  function holdInAdvance(waiter: Waiter, reservation: AdvanceReservation): void {
    drop(waiter);
    releaseConnection(waiter);
    waiter.reservation = reservation;
    clock.at(reservation.at, () => {
      if (waiter.isDone) return;
      const use = useInAdvance(reservation, waiter.connections, clock.now());
      if (!use) return requeue(waiter);
      waiter.held = use.held;
      waiter.resolve();
      void lateSends.checkOnceSent(reservation);
    });
  }

  /**
   * Uses a reservation that was made in advance, at its time.
   *
   * @returns the connection, if one is needed; or undefined if the reservation cannot be used: the request must wait in
   *   line
   */
  function useInAdvance(
    reservation: AdvanceReservation,
    connections: Connections | undefined,
    now: number,
  ): { held: HeldConnection | undefined } | undefined {
    delay.learn(now - reservation.at);
    const isExpired = now > reservation.until;
    if (isExpired) onExpired();
    if (!isExpired && advance!.isUsable(reservation, connections)) {
      const held = connections?.tryTake();
      if (held || !connections) return { held };
    }
    // With all of them returned, the next one may begin at once.
    giveBack([reservation.arrivesBy, ...advance!.clear()]);
    return undefined;
  }

  /**
   * Returns reservations that were made in advance; a request may have its own sooner then. One that is about to wait is
   * part of the same call.
   */
  function giveBack(arrivesBy: number[]): void {
    unused.push(...arrivesBy);
    askFrom = 0;
    queueMicrotask(ask);
  }

  /** Holds a reservation until its time, then releases its request. */
  async function hold(
    waiter: Waiter,
    reservation: Reservation,
    { isStanding } = { isStanding: false },
  ): Promise<void> {
    waiter.reservation = reservation;
    holding++;
    try {
      if (reservation.at - clock.now() > RECHECK_AFTER_MS) {
        await until(reservation.at - RECHECK_LEAD_MS);
        if (waiter.isDone) return;
        if (await backend.isVoid(reservation)) {
          // The backend may have counted it as used before the block.
          unused.push(reservation.arrivesBy);
          return requeue(waiter);
        }
      }
      await until(reservation.at);
      if (waiter.isDone) return;
      if (!waiter.isComplete) {
        await untilComplete(waiter, reservation.until);
        if (waiter.isDone) return;
        if (!waiter.isComplete) return await requeueComplete(waiter);
        // That time says nothing about this process, and neither does that of one that has no time of its own.
      } else if (!isStanding) delay.learn(clock.now() - reservation.at);
      const now = clock.now();
      const isExpired = now > reservation.until;
      // The connection may have closed meanwhile. Another one may be over a new path, which the reservation excludes.
      if (isExpired || (waiter.connections && !waiter.held?.isOpen)) {
        if (isExpired) {
          waiter.delayMs = Math.min(MOST_DELAY_MS, DELAY_FACTOR * (now - reservation.at));
          onExpired();
        }
        unused.push(reservation.arrivesBy);
        return requeue(waiter);
      }
      waiter.resolve();
      await lateSends.checkOnceSent(reservation);
      standing?.sent(reservation, waiters.length === 0 && holding === 1, marginOf([waiter]));
    } catch (error) {
      waiter.reject(error);
    } finally {
      holding--;
    }
  }

  /** Resolves when the request is complete, and at `latestAt` at the latest. */
  function untilComplete(waiter: Waiter, latestAt: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = clock.at(latestAt, resolve);
      const end = () => {
        cancel();
        resolve();
      };
      waiter.complete!.then(end, end);
    });
  }

  /** Returns a reservation that ended before its request was complete; the request gets another when it is. */
  async function requeueComplete(waiter: Waiter): Promise<void> {
    drop(waiter);
    releaseConnection(waiter);
    // If it rejects, the request has left.
    await waiter.complete;
    requeue(waiter);
  }

  function requeue(waiter: Waiter): void {
    waiter.reservation = undefined;
    if (waiter.isDone) return;
    insert(waiter);
    askFrom = 0;
    ask();
  }

  /** Removes a waiter from the queue, and returns the reservation that it holds unused. */
  function drop(waiter: Waiter): void {
    const index = waiters.indexOf(waiter);
    if (index >= 0) waiters.splice(index, 1);
    if (!waiter.reservation) return;
    unused.push(waiter.reservation.arrivesBy);
    waiter.reservation = undefined;
    ask();
  }

  function timedOut(): BasetideError {
    const retryAfterSeconds = Math.max(1, Math.ceil((nextAt - clock.now()) / 1000));
    return new BasetideError("quota_timeout", undefined, { details: { retryAfterSeconds } });
  }

  /** Resolves at a time; if it is past, at once, without waiting for a turn of the event loop. */
  async function until(atMs: number): Promise<void> {
    if (atMs > clock.now()) await new Promise<void>((resolve) => clock.at(atMs, resolve));
  }

  return {
    wait,
    async settled() {
      unused.push(...(advance?.close() ?? []), ...(standing?.close() ?? []));
      ask();
      if (!isSettled()) await new Promise<void>((resolve) => onSettled.push(resolve));
    },
    pause() {
      const unused = standing?.void() ?? [];
      if (unused.length > 0) giveBack(unused);
    },
    get isIdle() {
      return (
        waiters.length === 0 &&
        (advance?.isEmpty ?? true) &&
        (standing?.isIdle ?? true) &&
        unused.length === 0 &&
        holding === 0 &&
        isSettled()
      );
    },
  };
}

/** How far ahead of now a reservation may begin, and how long before that time the backend is called, ms. */
function aheadOf(kind: Priority, { delayMs }: Margin): { reachMs: number; earlyMs: number } {
  if (kind !== "client")
    return { reachMs: SYNC_REACH_MS + delayMs, earlyMs: SYNC_EARLY_MS + SHARED_MS + delayMs };
  // One ms later than the earliest useful time: rounded, the reservation would be out of reach, and the call would
  // be repeated over and over.
  return { reachMs: CLIENT_REACH_MS, earlyMs: CLIENT_REACH_MS - 1 };
}

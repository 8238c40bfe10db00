/** A request that waits for its reservation, and its place among others. */
import type { HeldConnection } from "../http/connections";
import type { Margin, Reservation } from "./backend";

/** How much smaller than now the network's variation may have been when a reservation was made, ms. */
const SPREAD_TOLERANCE_MS = 5;

/** The part of a connection pool (core/http/connections) that a wait queue uses. */
export interface Connections {
  /** How much the travel times of two requests may differ, ms. */
  readonly spreadMs: number;
  /** How much longer requests may have taken that were sent before the path changed, ms. */
  readonly dropMs: number;
  /** Announces that requests are about to be sent. */
  keepWarm(): void;
  tryTake(): HeldConnection | undefined;
  take(signal: AbortSignal): Promise<HeldConnection>;
}

export interface WaitOptions {
  /** Requests with the same name go in order of arrival; callers take turns. */
  caller?: string | undefined;
  /** The pool that the request's connection comes from; absent if it needs none. */
  connections?: Connections | undefined;
  /**
   * Resolves when the request may be sent as far as the caller is concerned; it waits for its reservation meanwhile. If
   * it rejects, so does the wait.
   */
  complete?: Promise<void> | undefined;
}

export interface Waiter {
  /** Position in order of arrival. */
  order: number;
  /** When it arrived, ms on the clock. */
  since: number;
  /** Callers take turns. */
  caller: string;
  /** Requests of lower rounds go first; a caller has one request in each. */
  round: number;
  /** Latest start of its reservation, ms on the clock. */
  deadlineAt: number;
  /** How long its next reservation is valid at least, ms: its last one expired. */
  delayMs: number;
  /** Held until its time comes. */
  reservation: Reservation | undefined;
  /** The pool that its connection comes from; absent if it needs none. */
  connections: Connections | undefined;
  held: HeldConnection | undefined;
  isConnecting: boolean;
  /** Until then it gets a reservation, and holds it as long as it is valid. */
  isComplete: boolean;
  /** Resolves when it is complete. */
  complete: Promise<void> | undefined;
  isDone: boolean;
  resolve(): void;
  reject(error: unknown): void;
}

/** Returns whether `a` gets its reservation before `b`. */
export function goesBefore(a: Waiter, b: Waiter): boolean {
  return a.round < b.round || (a.round === b.round && a.order < b.order);
}

/** Returns whether a reservation that was made earlier, with `margin`, is long enough for a request over such connections. */
export function isCovered(margin: Margin, connections: Connections | undefined): boolean {
  if (!connections) return true;
  return connections.dropMs <= margin.dropMs && connections.spreadMs <= margin.spreadMs + SPREAD_TOLERANCE_MS;
}

/**
 * Sends a proxy's heartbeat to the control plane, twice a second while it can.
 *
 * I4. When it cannot, the proxy may serve clients by itself, and the control plane leaves reservations free for a
 * proxy that it no longer hears from. Neither sees the other then, so each allows for what the other may still do:
 * the proxy grants nothing before its silence must have been noticed, and sends heartbeats again only when its own
 * grants are past.
 */
import { MOST_DROP_MS } from "../http/connections";
import { MOST_DELAY_MS, MOST_MARGIN_MS, SYNC_REACH_MS } from "./backend";
import type { QuotaClock } from "./clock";

const EVERY_MS = 500;
/** Time without a heartbeat after which a proxy counts as silent, ms; `quota_acquire_all` has the same. */
const SILENT_MS = 1500;

export interface Heartbeat {
  /**
   * Reservations per window and key that this process may grant by itself; 0 until the control plane has registered
   * it.
   */
  readonly share: number;
  /** The time from which it may grant them, ms on the clock. */
  readonly freeFrom: number;
  /** Records that a reservation was granted for `at`, ms on the clock. */
  recordGrant(at: number): void;
  /**
   * Stops the heartbeat and, if the control plane can be reached, removes the process there: it may then grant nothing
   * by itself. While its own grants count, it stays registered, and keeps its share.
   */
  leave(): Promise<void>;
}

/** A proxy's calls to the control plane about itself. */
export interface Membership {
  /**
   * Resolves when the control plane answers and its clock is known; changes nothing there.
   *
   * @throws BasetideError `control_unavailable`
   */
  reach(): Promise<void>;
  /**
   * Sends one heartbeat. If it fails, the outcome is unknown: it may still arrive, late.
   *
   * @returns the process's share
   * @throws BasetideError `control_unavailable`
   */
  heartbeat(id: string): Promise<number>;
  /** @throws BasetideError `control_unavailable` */
  leave(id: string): Promise<void>;
}

/**
 * @param id identifies the process; a restarted process in its place has the same
 * @param windowMs the longest window of any key, for a process whose path to the source is not new
 */
export function startHeartbeat(
  membership: Membership,
  clock: QuotaClock,
  id: string,
  windowMs: number,
): Heartbeat {
  const longestMs = windowMs + MOST_DROP_MS;
  /**
   * How far ahead other processes may have reserved: an overdue sync two windows and its early request; clients
   * less.
   */
  const bookedAheadMs = 2 * longestMs + SYNC_REACH_MS + MOST_DELAY_MS + MOST_MARGIN_MS;
  /** From a proxy's last heartbeat to the first reservation that it grants by itself. */
  const noticedMs = SILENT_MS + bookedAheadMs + longestMs;
  let share = 0;
  let sentAt = -Infinity;
  let lastGrantAt = -Infinity;
  let hasLeft = false;
  let cancelAlarm = () => {};

  const isPast = () => clock.now() >= lastGrantAt + longestMs;

  async function beat(): Promise<void> {
    try {
      await membership.reach();
      if (isPast()) {
        sentAt = clock.now();
        share = await membership.heartbeat(id);
      }
    } catch {
      // Callers that take reservations meet the same error and report it.
    }
    if (!hasLeft) cancelAlarm = clock.at(clock.now() + EVERY_MS, () => (beating = beat()));
  }
  let beating = beat();

  return {
    get share() {
      return share;
    },
    get freeFrom() {
      return sentAt + noticedMs;
    },
    recordGrant(at) {
      lastGrantAt = Math.max(lastGrantAt, at);
    },
    async leave() {
      hasLeft = true;
      cancelAlarm();
      await beating;
      if (!isPast()) return;
      // Requests may still be answered, without the control plane: from now on, nothing is left to this process there.
      share = 0;
      await membership.leave(id).catch(() => {});
    },
  };
}

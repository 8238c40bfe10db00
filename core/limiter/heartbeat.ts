/**
 * A proxy's standing with the ledger: while it can, it says twice a second that it is there.
 *
 * I4. Once it cannot, it may serve clients by itself, and the ledger leaves reservations free for one that it no longer hears
 * of. Neither sees the other then, so each waits for what the other may still do: the proxy gives nothing out before its
 * silence must have been noticed, and is heard of again only when what it granted is past.
 */
import { MOST_DELAY_MS, MOST_MARGIN_MS } from "./backend";
import type { QuotaClock } from "./clock";

const EVERY_MS = 500;
/** A proxy counts as silent when nothing was heard of it for so long, ms; `quota_acquire` has the same. */
const SILENT_MS = 1500;

export interface Heartbeat {
  /** Reservations per window and key that this process may grant by itself; 0 while the ledger does not know it. */
  readonly share: number;
  /** From when on it may, ms on the clock. */
  readonly freeFrom: number;
  /** A reservation was granted for `at`, ms on the clock. */
  recordGrant(at: number): void;
  /** Ends it; the ledger forgets the process where it can be told so. */
  leave(): Promise<void>;
}

/** How a proxy speaks to the ledger. */
export interface Membership {
  /**
   * Resolves when the control plane answers and its clock is known; changes nothing there.
   *
   * @throws BasetideError `control_unavailable`
   */
  reach(): Promise<void>;
  /**
   * Says that a process is there. What comes of it is not known where it fails: the message may arrive, and late.
   *
   * @returns the process's share
   * @throws BasetideError `control_unavailable`
   */
  heartbeat(id: string): Promise<number>;
  /** @throws BasetideError `control_unavailable` */
  leave(id: string): Promise<void>;
}

/**
 * @param id of the process; one that is started again in its place has the same
 * @param windowMs the longest window of any key
 */
export function startHeartbeat(
  membership: Membership,
  clock: QuotaClock,
  id: string,
  windowMs: number,
): Heartbeat {
  /** How far ahead others may have reserved by then: an overdue sync two windows, and what it asks early; clients less. */
  const bookedAheadMs = 2 * windowMs + 10 + MOST_DELAY_MS + MOST_MARGIN_MS;
  /** From the last word of a proxy to the first reservation that it grants by itself. */
  const noticedMs = SILENT_MS + bookedAheadMs + windowMs;
  let share = 0;
  let sentAt = -Infinity;
  let lastGrantAt = -Infinity;
  let hasLeft = false;
  let cancelAlarm = () => {};

  const isPast = () => clock.now() >= lastGrantAt + windowMs;

  async function beat(): Promise<void> {
    try {
      await membership.reach();
      if (isPast()) {
        sentAt = clock.now();
        share = await membership.heartbeat(id);
      }
    } catch {
      // Who takes reservations meets the same, and says so.
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
      if (isPast()) await membership.leave(id).catch(() => {});
    },
  };
}

/**
 * Checks each request once it has been sent. A process may stand still between its last look at the clock and the request:
 * the backend is told, so that the window counts from then.
 */
import type { LimiterBackend, Reservation } from "./backend";
import type { QuotaClock } from "./clock";
import type { SchedulingDelay } from "./scheduling-delay";

export interface LateSends {
  /**
   * To be called when a request has just been released. Resolves when it was sent in time, or when the backend knows that
   * it was late. Never rejects.
   */
  checkOnceSent(reservation: Reservation): Promise<void>;
  /** Whether the backend does not know of a late request yet. */
  readonly isReporting: boolean;
}

/**
 * @param onLate called when a request was sent late, before it is reported
 * @param onReported called when the backend knows of all late requests
 */
export function createLateSends(
  backend: Pick<LimiterBackend, "reportLateSend">,
  clock: QuotaClock,
  delay: SchedulingDelay,
  { onLate, onReported }: { onLate: () => void; onReported: () => void },
): LateSends {
  let reports = 0;

  async function report(reservation: Reservation, lateMs: number): Promise<void> {
    delay.learn(lateMs);
    onLate();
    reports++;
    await backend.reportLateSend(reservation);
    reports--;
    if (reports === 0) onReported();
  }

  return {
    checkOnceSent: (reservation) =>
      new Promise((resolve) =>
        onceSent(() => {
          const sentAt = clock.now();
          const isLate = sentAt > reservation.until;
          resolve(isLate ? report(reservation, sentAt - reservation.at) : undefined);
        }),
      ),
    get isReporting() {
      return reports > 0;
    },
  };
}

/**
 * Calls `check` when a request that has just been released has been sent, or will not be. The callbacks of its promise send
 * it, and a tick that a later one of them requests comes after all of them. The next turn of the event loop would come too
 * late: in a busy process, requests that were sent in time would be reported.
 */
function onceSent(check: () => void): void {
  queueMicrotask(() => process.nextTick(check));
}

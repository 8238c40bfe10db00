/** Wakes the current waiter, or the next one. */
import { BasetideError } from "../errors";

/** A timer cannot wait for longer. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** A lease waits on it for its next work. */
export class Notifier {
  #isNotified = false;
  #notified = Promise.withResolvers<void>();
  /** When the last notification arrived, performance.now(). */
  notifiedAt = Number.NEGATIVE_INFINITY;

  notifyFromWebhook(): void {
    this.notifiedAt = performance.now();
    this.notify();
  }

  /** Wakes the current waiter, or the next one. */
  notify(): void {
    this.#isNotified = true;
    this.#notified.resolve();
  }

  /** Clears the notification after its work is done. Must not be called while something waits. */
  clear(): void {
    this.#isNotified = false;
    this.#notified = Promise.withResolvers();
  }

  /**
   * Waits until a notification arrives, or `ms`, which may be Infinity; returns at once if one has arrived since the last wait.
   *
   * @returns whether a notification arrived
   * @throws BasetideError `sync_stopped`
   */
  async wait(ms: number, signal: AbortSignal): Promise<boolean> {
    if (!this.#isNotified) await this.#rest(ms, signal);
    const isNotified = this.#isNotified;
    this.clear();
    return isNotified;
  }

  #rest(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(new BasetideError("sync_stopped"));
      const end = () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", stop);
        resolve();
      };
      const stop = () => {
        clearTimeout(timer);
        reject(new BasetideError("sync_stopped"));
      };
      const timer = ms <= LONGEST_TIMER_MS ? setTimeout(end, ms) : undefined;
      signal.addEventListener("abort", stop, { once: true });
      void this.#notified.promise.then(end);
    });
  }
}

/** Wakes the current waiter, or the next one. */
import { linkedAbort, wait } from "./abort";

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
   * Waits until a notification arrives, or `ms`; returns at once if one has arrived since the last wait.
   *
   * @returns whether a notification arrived
   * @throws BasetideError `sync_stopped`
   */
  async wait(ms: number, signal: AbortSignal): Promise<boolean> {
    if (!this.#isNotified) {
      using rest = linkedAbort(signal);
      const waiting = wait(ms, rest.signal);
      waiting.catch(() => {});
      await Promise.race([waiting, this.#notified.promise]);
      rest.abort();
    }
    const isNotified = this.#isNotified;
    this.clear();
    return isNotified;
  }
}

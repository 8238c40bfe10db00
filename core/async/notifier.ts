/** Wakes the one that waits, or the one that will wait next. */
import { linkedAbort, wait } from "./abort";

/** What a lease waits at. */
export class Notifier {
  #isNotified = false;
  #notified = Promise.withResolvers<void>();
  /** When the last notification came, performance.now(). */
  notifiedAt = Number.NEGATIVE_INFINITY;

  notifyFromWebhook(): void {
    this.notifiedAt = performance.now();
    this.notify();
  }

  /** Wakes whoever waits, or will wait next. */
  notify(): void {
    this.#isNotified = true;
    this.#notified.resolve();
  }

  /** What it has rung for is done. Not to be called while somebody waits. */
  clear(): void {
    this.#isNotified = false;
    this.#notified = Promise.withResolvers();
  }

  /**
   * Waits until it rings, or `ms`; not at all if it has rung since it was last waited at.
   *
   * @returns whether it has rung
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

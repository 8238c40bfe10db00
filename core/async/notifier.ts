/** Wakes the one that waits, or the one that will wait next. */
import { linkedAbort, wait } from "./abort";

/** What a lease waits at. */
export class Bell {
  #isRung = false;
  #rung = Promise.withResolvers<void>();
  /** When the last ping came, performance.now(). */
  pingedAt = Number.NEGATIVE_INFINITY;

  ping(): void {
    this.pingedAt = performance.now();
    this.ring();
  }

  /** Wakes whoever waits, or will wait next. */
  ring(): void {
    this.#isRung = true;
    this.#rung.resolve();
  }

  /** What it has rung for is done. Not to be called while somebody waits. */
  clear(): void {
    this.#isRung = false;
    this.#rung = Promise.withResolvers();
  }

  /**
   * Waits until it rings, or `ms`; not at all if it has rung since it was last waited at.
   *
   * @returns whether it has rung
   * @throws BasetideError `sync_stopped`
   */
  async wait(ms: number, signal: AbortSignal): Promise<boolean> {
    if (!this.#isRung) {
      using rest = linkedAbort(signal);
      const waiting = wait(ms, rest.signal);
      waiting.catch(() => {});
      await Promise.race([waiting, this.#rung.promise]);
      rest.abort();
    }
    const isRung = this.#isRung;
    this.clear();
    return isRung;
  }
}

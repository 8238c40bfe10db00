/**
 * Pings on their way to the leases: the console notes one and notifies, and whoever reads that base's feed wakes up.
 *
 * A notification may get lost with its connection: when there is a new one everybody is woken, and a lease that begins
 * looks whether its base was pinged since it was last read.
 */

import { linkedAbort, wait } from "../../../async";
import type { Context } from "../../../context";
import { PING_CHANNEL } from "../../../control/feeds";

/** One connection that listens, for all bases of a process. */
export class PingWatch {
  #ctx: Pick<Context, "db" | "log">;
  #bells = new Map<string, Bell>();
  #listening: Promise<unknown> | undefined;

  constructor(ctx: Pick<Context, "db" | "log">) {
    this.#ctx = ctx;
  }

  /** The bell that pings of the base ring; the same one for as long as the process lives. */
  bell(baseId: string): Bell {
    this.#listen();
    let bell = this.#bells.get(baseId);
    if (!bell) {
      bell = new Bell();
      this.#bells.set(baseId, bell);
    }
    return bell;
  }

  /** What cannot be listened to now is tried again by the next lease. */
  #listen(): void {
    const { db, log } = this.#ctx;
    let isFirst = true;
    this.#listening ??= db
      .listen(
        PING_CHANNEL,
        (baseId) => this.#bells.get(baseId)?.ping(),
        () => {
          if (!isFirst) for (const bell of this.#bells.values()) bell.ring();
          isFirst = false;
        },
      )
      .catch((error: unknown) => {
        log.warn({ error }, "pings not listened to");
        this.#listening = undefined;
      });
  }
}

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

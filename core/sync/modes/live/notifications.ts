/**
 * Pings on their way to the leases: the console notes one and notifies, and whoever reads that base's feed wakes up.
 *
 * A notification may get lost with its connection: when there is a new one everybody is woken, and a lease that begins
 * looks whether its base was pinged since it was last read.
 */

import { Bell } from "../../../async";
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

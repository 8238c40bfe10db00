/**
 * Notifications on their way to the leases: the console notes one and notifies, and whoever reads that base's feed wakes up.
 *
 * A notification may get lost with its connection: when there is a new one everybody is woken, and a lease that begins
 * looks whether its base was notified since it was last read.
 */

import { Notifier } from "../../../async";
import type { Context } from "../../../context";
import { NOTIFICATION_CHANNEL } from "../../../control/feeds";

/** One connection that listens, for all bases of a process. */
export class NotificationListener {
  #ctx: Pick<Context, "db" | "log">;
  #notifiers = new Map<string, Notifier>();
  #listening: Promise<unknown> | undefined;

  constructor(ctx: Pick<Context, "db" | "log">) {
    this.#ctx = ctx;
  }

  /** The bell that notifications of the base ring; the same one for as long as the process lives. */
  notifier(baseId: string): Notifier {
    this.#listen();
    let notifier = this.#notifiers.get(baseId);
    if (!notifier) {
      notifier = new Notifier();
      this.#notifiers.set(baseId, notifier);
    }
    return notifier;
  }

  /** What cannot be listened to now is tried again by the next lease. */
  #listen(): void {
    const { db, log } = this.#ctx;
    let isFirst = true;
    this.#listening ??= db
      .listen(
        NOTIFICATION_CHANNEL,
        (baseId) => this.#notifiers.get(baseId)?.notifyFromWebhook(),
        () => {
          if (!isFirst) for (const notifier of this.#notifiers.values()) notifier.notify();
          isFirst = false;
        },
      )
      .catch((error: unknown) => {
        log.warn({ error }, "pings not listened to");
        this.#listening = undefined;
      });
  }
}

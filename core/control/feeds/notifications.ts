/**
 * Delivers notifications to leases: the console records a notification and notifies the workers, and the lease that
 * reads that base's feed wakes up.
 *
 * A notification may get lost with its connection: when a new connection is established, all leases are woken, and a
 * new lease checks whether its base was notified since it was last read.
 */

import { Notifier } from "../../async";
import type { Context } from "../../context";
import { NOTIFICATION_CHANNEL } from "./live-feeds";

/** One listening connection for all bases of a process. */
export class NotificationListener {
  #ctx: Pick<Context, "db" | "log">;
  #notifiers = new Map<string, Notifier>();
  #listening: Promise<unknown> | undefined;

  constructor(ctx: Pick<Context, "db" | "log">) {
    this.#ctx = ctx;
  }

  /** Returns the notifier of the base; the same one as long as the process lives. */
  notifier(baseId: string): Notifier {
    this.#listen();
    let notifier = this.#notifiers.get(baseId);
    if (!notifier) {
      notifier = new Notifier();
      this.#notifiers.set(baseId, notifier);
    }
    return notifier;
  }

  /** Listens once per process. If that fails, the next lease tries again. */
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
        log.warn({ error }, "listening for notifications failed");
        this.#listening = undefined;
      });
  }
}

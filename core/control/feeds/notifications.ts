/**
 * Delivers notifications to leases: the console records a notification and notifies the workers, and the lease that
 * reads that base's feed wakes up.
 *
 * A notification may get lost with its connection: when a new connection is established, all leases are woken, and a
 * new lease checks whether its base was notified since it was last read.
 *
 * It also has what is known of the installation's address. One notification, of any base, proves that the source can
 * reach it. If a change was found without one before that, all leases are woken: they may have missed one, too.
 */

import { Notifier } from "../../async";
import type { Context } from "../../context";
import type { NotificationState } from "../../sync/host";
import { ADDRESS_CHANGED, loadAddressState, NOTIFICATION_CHANNEL } from "./live-feeds";

/** One listening connection for all bases of a process. */
export class NotificationListener {
  #ctx: Pick<Context, "config" | "db" | "log">;
  #notifiers = new Map<string, Notifier>();
  #listening: Promise<unknown> | undefined;
  #addressState: NotificationState = "expected";
  #readings: Promise<void> = Promise.resolve();

  constructor(ctx: Pick<Context, "config" | "db" | "log">) {
    this.#ctx = ctx;
  }

  /** What is known of the address of all bases, as far as this process has heard. */
  get addressState(): NotificationState {
    return this.#addressState;
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
        (payload) => {
          if (payload === ADDRESS_CHANGED) this.#readAddressState();
          else this.#notifiers.get(payload)?.notifyFromWebhook();
        },
        () => {
          if (!isFirst) this.#wakeAll();
          isFirst = false;
          this.#readAddressState();
        },
      )
      .catch((error: unknown) => {
        log.warn({ error }, "listening for notifications failed");
        this.#listening = undefined;
      });
  }

  #wakeAll(): void {
    for (const notifier of this.#notifiers.values()) notifier.notify();
  }

  /** One after another: an earlier state must not overwrite a later one. */
  #readAddressState(): void {
    const { config, db, log } = this.#ctx;
    const read = async () => {
      const before = this.#addressState;
      this.#addressState = await loadAddressState(db, config.consoleUrl);
      if (this.#addressState === "none" && before !== "none") this.#wakeAll();
    };
    this.#readings = this.#readings
      .then(read)
      .catch((error: unknown) => log.warn({ error }, "reading whether notifications arrive failed"));
  }
}

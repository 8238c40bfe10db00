/**
 * Keeps what a replica has besides its rows (views over links, history, notifications) in line with the base's
 * settings, while a lease holds the base. The functions that write rows go by it, whoever calls them.
 */
import type { BaseSettings } from "../../control/bases";
import { isBasetideError } from "../../errors";
import type { Logger } from "../../log";
import { applyLinkViews, applySettings, type Replica, settleDependents, trimHistory } from "../../replica";

export type OptionalFeatureSettings = Pick<BaseSettings, "linkViews" | "history" | "historyDays" | "notify">;

export class OptionalFeatureApplier {
  /** What the replica goes by, as far as is known. */
  #done: OptionalFeatureSettings | undefined;
  #work: Promise<void> | undefined;

  constructor(
    private readonly replica: Replica,
    private readonly epoch: number,
    private readonly log: Logger,
  ) {}

  /**
   * To be told over and over: what cannot be done now (a query holds a view that is to go) is done later.
   *
   * @throws BasetideError `lease_lost`, `replica_unavailable`
   */
  apply(wanted: OptionalFeatureSettings): Promise<void> {
    if (this.#done && isSame(this.#done, wanted)) return Promise.resolve();
    this.#work ??= this.#bring(wanted).finally(() => {
      this.#work = undefined;
    });
    return this.#work;
  }

  async #bring(wanted: OptionalFeatureSettings): Promise<void> {
    const { replica, epoch, log } = this;
    if (!(await applySettings(replica, epoch, wanted))) log.warn("no history: its table's name is taken");
    try {
      await applyLinkViews(replica, epoch, wanted.linkViews);
      await trimHistory(replica, epoch, wanted.historyDays);
      this.#done = wanted;
      // Nothing waits for them. Those that could not be filled before are tried with every lease.
      settleDependents(replica).catch((error: unknown) => log.debug({ error }, "views not filled yet"));
    } catch (error) {
      if (!isBasetideError(error, "replica_busy")) throw error;
      log.debug({ error }, "views over links not changed yet");
    }
  }
}

function isSame(one: OptionalFeatureSettings, other: OptionalFeatureSettings): boolean {
  return (
    one.linkViews === other.linkViews &&
    one.history === other.history &&
    one.historyDays === other.historyDays &&
    one.notify === other.notify
  );
}

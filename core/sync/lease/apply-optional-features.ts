/**
 * Applies the optional features of a base (views over links, history, notifications, old names) to its replica while a
 * worker holds the lease. The SQL functions that write rows follow these settings, no matter which process calls them.
 */

import { isBasetideError } from "../../errors";
import type { Logger } from "../../log";
import {
  applyLinkViews,
  applySettings,
  asRefusal,
  expireAliases,
  type Replica,
  settleDependents,
  trimHistory,
} from "../../replica";
import type { SyncSettings } from "../host";

export type OptionalFeatureSettings = Pick<
  SyncSettings,
  "linkViews" | "history" | "historyDays" | "notify" | "aliasDays"
>;

export class OptionalFeatureApplier {
  /** The settings that the replica is known to have. */
  #done: OptionalFeatureSettings | undefined;
  #isSettled = false;

  constructor(
    private readonly replica: Replica,
    private readonly epoch: number,
    private readonly log: Logger,
  ) {}

  /** False while something must be applied again: a view waits to be filled, a reference to be checked, or a name to be free. */
  get isSettled(): boolean {
    return this.#isSettled;
  }

  /** Returns whether the replica has these settings. */
  isApplied(wanted: OptionalFeatureSettings): boolean {
    return Bun.deepEquals(this.#done, wanted);
  }

  /** To be called when something must be applied again. */
  changed(): void {
    this.#done = undefined;
  }

  /**
   * @returns whether the settings are applied: now, a query may hold a view that must be dropped
   * @throws BasetideError `lease_lost`, `replica_unavailable`
   */
  async apply(wanted: OptionalFeatureSettings): Promise<boolean> {
    const { replica, epoch, log } = this;
    this.#isSettled = false;
    try {
      const isHistoryRefused = !(await applySettings(replica, epoch, wanted));
      if (isHistoryRefused) log.warn("history not enabled: the name of its table is in use");
      const areExpired = await expireAliases(replica, epoch);
      if (!areExpired)
        log.info("old names of columns wait for sessions that lock their tables; retrying later");
      await applyLinkViews(replica, epoch, wanted.linkViews);
      await trimHistory(replica, epoch, wanted.historyDays);
      if (!areExpired) return false;
      this.#done = wanted;
      if (!isHistoryRefused) void this.#settle();
      return true;
    } catch (error) {
      // What a customer's object or a table's owner refuses is no reason to stop the rows.
      const isPassing = isBasetideError(error, "replica_busy") || isBasetideError(error, "shape_changed");
      if (!isPassing && !asRefusal(error)) throw error;
      log.info({ error }, "applying settings failed; retrying later");
      return false;
    }
  }

  /** No work waits for the views. */
  async #settle(): Promise<void> {
    try {
      this.#isSettled = await settleDependents(this.replica);
    } catch (error) {
      this.log.debug({ error }, "filling views failed; retrying later");
    }
  }
}

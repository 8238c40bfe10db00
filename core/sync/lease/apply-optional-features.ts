/**
 * Applies the optional features of a base (views over links, history, notifications, old names) to its replica while a
 * worker holds the lease. The SQL functions that write rows follow these settings, no matter which process calls them.
 */

import { isBasetideError } from "../../errors";
import type { Logger } from "../../log";
import {
  applyLinkViews,
  applySettings,
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

/**
 * Pause before settings that could not be applied are tried again, ms: an attempt may make queries wait. It doubles with
 * each attempt.
 */
const RETRY_MS = 5000;
const MAX_RETRY_MS = 30_000;

export class OptionalFeatureApplier {
  /** The settings that the replica is known to have. */
  #done: OptionalFeatureSettings | undefined;
  /** The settings that could not be applied, when they are tried again (performance.now()), and the pause before. */
  #failed: { wanted: OptionalFeatureSettings; retryAt: number; pauseMs: number } | undefined;
  #isSettled = false;
  #work: Promise<void> | undefined;

  constructor(
    private readonly replica: Replica,
    private readonly epoch: number,
    private readonly log: Logger,
  ) {}

  /** False while another lease must apply something: a view waits to be filled, a reference to be checked, or a name to be free. */
  get isSettled(): boolean {
    return this.#isSettled;
  }

  /** Returns whether the replica has these settings. */
  isApplied(wanted: OptionalFeatureSettings): boolean {
    return this.#done !== undefined && isSame(this.#done, wanted);
  }

  /**
   * Called repeatedly. A change that is blocked now (a query holds a view that must be dropped) is retried by a later
   * call; a call that comes too soon after the attempt does nothing.
   *
   * @throws BasetideError `lease_lost`, `replica_unavailable`
   */
  apply(wanted: OptionalFeatureSettings): Promise<void> {
    if (this.isApplied(wanted) || this.#isTooSoon(wanted)) return Promise.resolve();
    this.#work ??= this.#applyNow(wanted).finally(() => {
      this.#work = undefined;
      if (!this.isApplied(wanted)) this.#defer(wanted);
    });
    return this.#work;
  }

  #defer(wanted: OptionalFeatureSettings): void {
    const failed = this.#failed;
    const isRepeated = failed !== undefined && isSame(failed.wanted, wanted);
    const pauseMs = isRepeated ? Math.min(MAX_RETRY_MS, failed.pauseMs * 2) : RETRY_MS;
    this.#failed = { wanted, retryAt: performance.now() + pauseMs, pauseMs };
  }

  #isTooSoon(wanted: OptionalFeatureSettings): boolean {
    const failed = this.#failed;
    return failed !== undefined && isSame(failed.wanted, wanted) && performance.now() < failed.retryAt;
  }

  async #applyNow(wanted: OptionalFeatureSettings): Promise<void> {
    const { replica, epoch, log } = this;
    this.#isSettled = false;
    const isHistoryRefused = !(await applySettings(replica, epoch, wanted));
    if (isHistoryRefused) log.warn("history not enabled: the name of its table is in use");
    try {
      const areExpired = await expireAliases(replica, epoch);
      if (!areExpired)
        log.info("old names of columns wait for sessions that lock their tables; retrying later");
      await applyLinkViews(replica, epoch, wanted.linkViews);
      await trimHistory(replica, epoch, wanted.historyDays);
      if (!areExpired) return;
      this.#done = wanted;
      if (!isHistoryRefused) void this.#settle();
    } catch (error) {
      const isPassing = isBasetideError(error, "replica_busy") || isBasetideError(error, "shape_changed");
      // What a customer's object refuses is no reason to stop the rows.
      if (!isPassing && !isBasetideError(error, "replica_refused")) throw error;
      log.info({ error }, "updating views over links or old names failed; retrying later");
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

function isSame(one: OptionalFeatureSettings, other: OptionalFeatureSettings): boolean {
  return (
    one.linkViews === other.linkViews &&
    one.history === other.history &&
    one.historyDays === other.historyDays &&
    one.notify === other.notify &&
    one.aliasDays === other.aliasDays
  );
}

/**
 * Records facts about a feed in the control plane, for the console. Delays nothing while the control plane is
 * unreachable.
 */
import type { Context } from "../../../context";
import type { FeedStore } from "../../host";
import { MOST_PATIENCE_MS } from "../../pacing";
import type { FeedFacts } from "./feed-types";

interface RecorderContext extends Pick<Context, "log"> {
  host: { readonly feeds: FeedStore };
}

export class FeedRecorder {
  #ctx: RecorderContext;
  #baseId: string;
  #recorded = { at: Number.NEGATIVE_INFINITY, dueAt: Number.NEGATIVE_INFINITY, waiting: 0 };

  constructor(ctx: RecorderContext, baseId: string) {
    this.#ctx = ctx;
    this.#baseId = baseId;
  }

  /** @param readAt when the last successful read began, performance.now(). @returns whether the facts were recorded */
  async due(readAt: number, at: Date, { waiting, changedAt, missed }: FeedFacts): Promise<boolean> {
    const now = performance.now();
    const dueInMs = at.getTime() - Date.now();
    const dueAt = now + dueInMs;
    // A due time that is off by seconds does no harm; a count of waiting records that is outdated would.
    const isNews =
      missed > 0 ||
      waiting > 0 !== this.#recorded.waiting > 0 ||
      Math.abs(dueAt - this.#recorded.dueAt) > MOST_PATIENCE_MS;
    if (!isNews && now - this.#recorded.at < MOST_PATIENCE_MS) return false;
    const facts = { readMsAgo: now - readAt, dueInMs, waiting, changedAt: changedAt ?? null, missed };
    const isRecorded = await this.record("a read of the feed", (feeds, id) => feeds.recordRead(id, facts));
    if (isRecorded) this.#recorded = { at: now, dueAt, waiting };
    return isRecorded;
  }

  /** Runs `work`, which records something. @returns whether that has succeeded */
  async record(what: string, work: (feeds: FeedStore, baseId: string) => Promise<void>): Promise<boolean> {
    try {
      await work(this.#ctx.host.feeds, this.#baseId);
      return true;
    } catch (error) {
      this.#ctx.log.debug({ error }, `recording ${what} failed`);
      return false;
    }
  }
}

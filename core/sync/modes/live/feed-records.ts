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
  #missed = 0;

  constructor(ctx: RecorderContext, baseId: string) {
    this.#ctx = ctx;
    this.#baseId = baseId;
  }

  /** @param readAt when the last successful read began, performance.now() */
  async due(readAt: number, at: Date, { waiting, changedAt }: FeedFacts): Promise<void> {
    const now = performance.now();
    const dueInMs = at.getTime() - Date.now();
    const dueAt = now + dueInMs;
    // A due time that is off by seconds misleads no one; a count of waiting records that is outdated would.
    const isNews =
      waiting > 0 !== this.#recorded.waiting > 0 || Math.abs(dueAt - this.#recorded.dueAt) > MOST_PATIENCE_MS;
    if (!isNews && now - this.#recorded.at < MOST_PATIENCE_MS) return;
    await this.record("recording a read of the feed failed", async () => {
      const facts = { readMsAgo: now - readAt, dueInMs, waiting, changedAt: changedAt ?? null };
      await this.#ctx.host.feeds.recordRead(this.#baseId, facts);
      this.#recorded = { at: now, dueAt, waiting };
      await this.#countMissedChanges();
    });
  }

  /** If the count cannot be recorded now, it is included in the next record. */
  async missed(count: number): Promise<void> {
    this.#missed += count;
    await this.record("counting missed changes failed; retrying later", () => this.#countMissedChanges());
  }

  async record(what: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#ctx.log.debug({ error }, what);
    }
  }

  async #countMissedChanges(): Promise<void> {
    const count = this.#missed;
    if (count === 0) return;
    this.#missed = 0;
    try {
      await this.#ctx.host.feeds.addMissedChanges(this.#baseId, count);
    } catch (error) {
      this.#missed += count;
      throw error;
    }
  }
}

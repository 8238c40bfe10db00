/**
 * What of a feed is told to the control plane for people to see. It holds nothing up while the control plane is away.
 */
import type { Context } from "../../../context";
import { addMissedChanges, recordRead } from "../../../control/feeds";
import type { FeedFacts } from "./feed-types";

/** Not more often than this, unless there is news. */
const INTERVAL_MS = 5000;

export class FeedRecorder {
  #ctx: Pick<Context, "db" | "log">;
  #baseId: string;
  #noted = { at: Number.NEGATIVE_INFINITY, dueAt: Number.NEGATIVE_INFINITY, waiting: 0 };
  #missed = 0;

  constructor(ctx: Pick<Context, "db" | "log">, baseId: string) {
    this.#ctx = ctx;
    this.#baseId = baseId;
  }

  /** @param readAt when the last read that succeeded began, performance.now() */
  async due(readAt: number, at: Date, { waiting, changedAt }: FeedFacts): Promise<void> {
    const now = performance.now();
    const dueInMs = at.getTime() - Date.now();
    const dueAt = now + dueInMs;
    // A due time that is off by seconds deceives nobody; a wait that is over must not stand there.
    const isNews =
      waiting > 0 !== this.#noted.waiting > 0 || Math.abs(dueAt - this.#noted.dueAt) > INTERVAL_MS;
    if (!isNews && now - this.#noted.at < INTERVAL_MS) return;
    await this.record("read not noted", async () => {
      const facts = { readMsAgo: now - readAt, dueInMs, waiting, changedAt: changedAt ?? null };
      await recordRead(this.#ctx.db, this.#baseId, facts);
      this.#noted = { at: now, dueAt, waiting };
      await this.#countMissedChanges();
    });
  }

  /** What cannot be counted now is with the next note. */
  async missed(count: number): Promise<void> {
    this.#missed += count;
    await this.record("missed records not counted yet", () => this.#countMissedChanges());
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
      await addMissedChanges(this.#ctx.db, this.#baseId, count);
    } catch (error) {
      this.#missed += count;
      throw error;
    }
  }
}

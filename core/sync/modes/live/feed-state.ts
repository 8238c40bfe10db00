/** The state of a base's feed that a worker caches from lease to lease. */
import { RECENT_MS, TRIES } from "../../pacing";
import type { BaseCache } from "../../state";
import { Comparisons } from "./comparisons";

/** Times are performance.now() unless stated otherwise. */
export class FeedState {
  /** The webhook that was read last, and the offset that is added to its numbers. */
  webhookId: string | undefined;
  offset = 0;
  /** The greatest number that was given to the engine. */
  position = 1;
  /** When the last successful read of the feed began. */
  readAt: number | undefined;
  /** When a change was found without a notification that may still arrive: a lease may end before that is judged. */
  foundAt: number | undefined;
  /** Until then the base is swept: the source's feeds are out of order. */
  outUntil = Number.NEGATIVE_INFINITY;
  readonly comparisons = new Comparisons();
  #replacedAt: number[] = [];

  /** Makes the numbers of this webhook continue from those of the previous one. */
  continueFrom(webhookId: string, cursor: number): void {
    if (this.webhookId !== webhookId) {
      this.offset = this.webhookId === undefined ? 0 : this.position - cursor;
      this.webhookId = webhookId;
    }
    this.reach(cursor);
  }

  reach(cursor: number): void {
    this.position = Math.max(this.position, cursor + this.offset);
  }

  recordReplacement(): void {
    this.#replacedAt.push(performance.now());
  }

  /** Number of webhooks that were recently replaced because they delivered nothing. */
  get replacements(): number {
    const since = performance.now() - RECENT_MS;
    this.#replacedAt = this.#replacedAt.filter((at) => at > since);
    return this.#replacedAt.length;
  }

  get isReplacedTooOften(): boolean {
    return this.replacements >= TRIES;
  }
}

const known = new WeakMap<BaseCache, FeedState>();

export function feedStateOf(cache: BaseCache): FeedState {
  const feedState = known.get(cache) ?? new FeedState();
  known.set(cache, feedState);
  return feedState;
}

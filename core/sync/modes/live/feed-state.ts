/** What the feeds of one base carry from lease to lease, for as long as the worker remembers the base. */
import type { BaseCache } from "../../state";
import { Comparisons } from "./comparisons";

/** So many webhooks may be made anew within this time because the ones before gave nothing. */
const MAX_REMAKES = 5;
const REMAKES_MS = 10 * 60_000;

/** Times are performance.now() unless they say otherwise. */
export class FeedState {
  /** The webhook that was read last, and what is added to its numbers. */
  webhookId: string | undefined;
  offset = 0;
  /** The greatest number that was given to the engine. */
  position = 1;
  /** When the last read of the feed that succeeded began. */
  readAt: number | undefined;
  /** Until then the base is swept: the source's feeds are out of order. */
  outUntil = Number.NEGATIVE_INFINITY;
  readonly comparisons = new Comparisons();
  #remadeAt: number[] = [];

  /** Makes the numbers of this webhook go on from those of the one before. */
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

  recordRemake(): void {
    this.#remadeAt.push(performance.now());
  }

  /** Webhooks that were lately made anew because the ones before gave nothing. */
  get remakes(): number {
    const since = performance.now() - REMAKES_MS;
    this.#remadeAt = this.#remadeAt.filter((at) => at > since);
    return this.#remadeAt.length;
  }

  get isRemakingTooOften(): boolean {
    return this.remakes >= MAX_REMAKES;
  }
}

const known = new WeakMap<BaseCache, FeedState>();

export function feedStateOf(cache: BaseCache): FeedState {
  const feedState = known.get(cache) ?? new FeedState();
  known.set(cache, feedState);
  return feedState;
}

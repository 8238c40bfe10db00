/** The readers of live mode: one split of the base's quota, with a reader for each kind of work. */

import { QuotaSplit, SHORTEST_MS, URGENT_PACE } from "../../pacing";
import { readerWithPriority } from "../shared";
import type { LiveInput } from "./live";

/**
 * While the foreground uses all permits, one in this many goes to the scan. If clients leave one permit a
 * second, a larger part would delay too many changes by another second.
 */
const SWEEP_EVERY = 60;
/**
 * How long a request may wait behind later ones, ms: records that the feed has named go before the next read of the
 * feed, and that goes before their dependents, which wait for up to a second.
 */
export const FEED_PATIENCE_MS = 300;
/** The next call of a batch follows this soon after the previous one: the source's response time and a margin, ms. */
const HOLD_MS = 700;

/**
 * Creates the readers; those of the foreground are counted together. During a feed gap, and while the feed cannot be read,
 * the background is urgent.
 *
 * @param sweepCallMs returns the interval between requests of the scan
 */
export function liveReaders(
  input: Pick<LiveInput, "reader" | "feed">,
  sweepCallMs: () => number,
  stop: AbortSignal,
) {
  const pace = () =>
    input.feed.gapSince || input.feed.isFailing
      ? URGENT_PACE
      : { every: SWEEP_EVERY, gapMs: sweepCallMs(), holdMs: HOLD_MS };
  const split = new QuotaSplit(input.reader.limiter, pace, stop, { isLive: true });
  const named = readerWithPriority(input, split, "foreground", stop, "records");
  return {
    split,
    /** For the records that the feed names. */
    named,
    /** For reads of the feed. */
    feed: { ...named, limiter: split.limiterFor("foreground", FEED_PATIENCE_MS) },
    /** For the consequences of both, and for tables that are read completely because of them. */
    foreground: { ...named, limiter: split.limiterFor("foreground", SHORTEST_MS) },
    background: readerWithPriority(input, split, "background", stop),
  };
}

/**
 * A live base at rest: no change waits, no table is being read, and nothing is due soon.
 *
 * The loops of live mode have ended then, and the replica has no connection. What is left is one wait: for a
 * notification, or until the feed is read again. A read without changes is written to `_sync_meta` in one statement.
 * Anything else starts live mode again, which goes on from that read.
 *
 * R1. A read that reports something is not written here: live mode writes it when its changes are in SQL.
 */
import { asBasetideError } from "../../../errors";
import { markAtRest } from "../../../replica";
import { type Reader, withPatience } from "../../engine";
import { ACTIVE_FOR_MS, type Cadence, isWholeBases, TURN_MS, UNPROMPTED_MS } from "../../pacing";
import { type LiveCache, packCache } from "../../state";
import { sweptAgoMs } from "../shared";
import type { LiveInput } from "./live";
import { dueInMs, type FeedRead, isOfLease, readOnce, recordDue, turnOf } from "./read-feed";

/** What the cadence of a base depends on, besides its cache and its budget. */
type Sizes = Pick<Parameters<LiveInput["cadence"]>[0], "sweepCalls" | "tables" | "changesByItself">;

export interface Rest {
  cadence(): Cadence;
  /** Time until the feed is read without a notification, ms. */
  readInMs(): number;
  /** Time until anything else is due, ms. */
  dueInMs(): number;
}

/** How a rest ended: the lease is over, or live mode starts again, with a read of the feed if there was one. */
export type RestEnd = { isOver: boolean; first?: FeedRead };

/** Returns the intervals of all activities. */
export function liveCadence(input: Pick<LiveInput, "feed" | "cadence">, cache: LiveCache, sizes: Sizes) {
  const { changedAt, startedAt, readAt, batchCalls } = cache;
  const { isFailing, notifications } = input.feed;
  const agoMs = (at: number) => Date.now() - at;
  const readAgoMs = performance.now() - readAt;
  return input.cadence({
    mode: "live",
    notifications: isFailing ? "none" : notifications,
    isActive: isFailing || (changedAt !== undefined && agoMs(changedAt.getTime()) < ACTIVE_FOR_MS),
    quietMs: agoMs(changedAt?.getTime() ?? startedAt) - readAgoMs,
    ...sizes,
    batchCalls,
  });
}

/** Returns whether nothing waits to be done. */
export function isSettled({ cache, feed }: Pick<LiveInput, "cache" | "feed">): boolean {
  const { live, scan, builds, schemaCheckRequestedAt, failing } = cache;
  if (!live || scan || builds.size > 0 || schemaCheckRequestedAt || failing.size > 0) return false;
  return live.dirty.size === 0 && live.missedChanges.isSettled && feed.gapSince === null && feed.isSettled;
}

/** Returns when a base that is at rest now has something to do. It refers only to what outlives the loops. */
export function liveRestOf(input: LiveInput, sizes: Sizes): Rest {
  const { base, cache } = input;
  const live = cache.live!;
  const cadence = () => liveCadence(input, live, sizes);
  return {
    cadence,
    readInMs: () => dueInMs({ cache: live, cadence }),
    dueInMs() {
      const now = performance.now();
      const { freshnessMs, schemaMs, sweepEveryMs } = cadence();
      const sweptMs = cache.scanStartedAt === null ? sweptAgoMs(base) : now - cache.scanStartedAt;
      const trimmedAt = cache.trimPoints.at(-1)?.at ?? Number.NEGATIVE_INFINITY;
      return Math.min(
        input.compare ? live.comparedAt + freshnessMs - now : Number.POSITIVE_INFINITY,
        Math.min(cache.schemaSeenAt + schemaMs, cache.schemaLookAt) - now,
        sweepEveryMs - sweptMs,
        trimmedAt + UNPROMPTED_MS - now,
      );
    },
  };
}

/**
 * Waits until the base has something to do.
 *
 * @throws BasetideError an error that ends the sync of the whole base, such as `sync_stopped` or `lease_lost`
 */
export async function restUntilDue(input: LiveInput, rest: Rest): Promise<RestEnd> {
  const { feed, cache, replica, epoch } = input;
  const live = cache.live!;
  const reader: Reader = {
    ...input.reader,
    counts: { requests: 0, waitMs: 0 },
    kind: "payloads",
  };
  const reading = { feed, reader, cache: live, cadence: rest.cadence, stop: reader.stop };
  await replica.rest();
  packCache(cache);
  for (;;) {
    live.missedChanges.forgetOld(performance.now());
    if (input.isOver() || input.isGivenUp?.()) return { isOver: true };
    if (!isSettled(input) || rest.dueInMs() <= 0) return { isOver: false };
    const readInMs = rest.readInMs();
    if (readInMs > 0) {
      if (!(await feed.wakeUp(Math.min(readInMs, rest.dueInMs(), TURN_MS), reader.stop))) continue;
      await turnOf(reading);
    }
    const read = (one: Reader) => readOnce({ feed, reader: one });
    const first = await withPatience(reader, feed.patienceMs, read).catch((caught: unknown) => {
      const error = asBasetideError(caught);
      if (isOfLease(error)) throw error;
      reader.log.debug({ error }, "reading the feed failed; live mode tries again");
    });
    if (!first || isNews(first)) {
      // A read that failed is repeated at once; so is this one, if live mode cannot start with it.
      live.readAt = Number.NEGATIVE_INFINITY;
      return { isOver: false, ...(first && { first }) };
    }
    live.readAt = first.asked.at;
    if (!feed.gapSince && !(await markRead())) return { isOver: true };
    await recordDue(reading);
  }

  /** @returns false if another lease must find out what is wrong with the replica */
  async function markRead(): Promise<boolean> {
    try {
      return await markAtRest(replica, epoch, performance.now() - live.readAt);
    } catch (caught) {
      const error = asBasetideError(caught);
      if (isWholeBases(error)) throw error;
      reader.log.debug({ error }, "writing _sync_meta failed; another lease tries again");
      return false;
    }
  }
}

function isNews({ batch }: FeedRead): boolean {
  return batch.payloads > 0 || batch.mightHaveMore || batch.hasGap;
}

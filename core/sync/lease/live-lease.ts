/** Starts live mode for a lease: opens the base's feed, and sets the pace that its budget allows. */

import type { Platform } from "../../source";
import type { Reader } from "../engine";
import type { SyncedBase } from "../host";
import {
  compareTable,
  type FeedContext,
  type LiveFeed,
  type LiveInput,
  liveBase,
  openFeed,
  restUntilDue,
} from "../modes/live";
import type { SyncSessionInput } from "../modes/shared";
import type { LeasedBudget } from "../pacing";
import { cadenceOf } from "../pacing";
import type { BaseCache } from "../state";
import type { LeasedBase } from "./leased-base";
import type { SyncMetrics } from "./metrics";

interface LiveLease {
  ctx: FeedContext & { syncMetrics: SyncMetrics };
  platform: Platform;
  cache: BaseCache;
  budget: LeasedBudget;
  leased: Pick<LeasedBase, "onSchemaCheck">;
  isOverdue: boolean;
}

/** Opens the feed of a base that is set to live mode; null if it is not, or if there is no feed at the moment. */
export async function feedOf(
  { ctx, cache }: Pick<LiveLease, "ctx" | "cache">,
  base: SyncedBase,
  reader: SyncSessionInput["reader"],
): Promise<LiveFeed | null> {
  const { live, rapid } = base.settings;
  if (!live || rapid) return null;
  const asking: Reader = {
    ...reader,
    counts: { requests: 0, waitMs: 0 },
    kind: "webhooks",
  };
  return openFeed(ctx, base, asking, cache);
}

/** Runs live mode until the lease is over; it pauses while the base is at rest. See `liveBase` and `restUntilDue`. */
export async function goLive(lease: LiveLease, feed: LiveFeed, input: SyncSessionInput): Promise<void> {
  const { ctx, platform, budget, leased } = lease;
  const { modifiedSince } = platform;
  const liveInput: LiveInput = {
    ...input,
    feed,
    cadence: (facts) => cadenceOf({ ...facts, ratePerSecond: budget.ratePerSecond }),
    onMissed: (foundBy, count) => ctx.syncMetrics.unreported(foundBy, count),
    modifiedSince,
    compare: modifiedSince && ((replica) => compareTable({ ...replica, feed, modifiedSince })),
    endsAtRest: true,
  };
  for (let first: LiveInput["first"]; ; ) {
    const rest = await liveBase({ ...liveInput, first });
    if (!rest) return;
    leased.onSchemaCheck = () => feed.notify();
    const end = await restUntilDue(liveInput, rest);
    leased.onSchemaCheck = () => {};
    // Otherwise, it must be found out what is wrong with the replica.
    if (end.isOver) lease.isOverdue = !liveInput.isOver() && !liveInput.isGivenUp?.();
    if (end.isOver) return;
    first = end.first;
  }
}

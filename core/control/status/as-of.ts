/** As of when a base's data is complete: no change before then is missing from the database. */
import type { Base } from "../bases";
import { lastCompared } from "./live-indicator";

type Facts = Pick<Base, "sync" | "sweep" | "live" | "createdAt"> & {
  settings: Pick<Base["settings"], "rapid">;
};

/**
 * Returns the time, or null before the first sync. A sync reads the state of Airtable from its start on; a feed is
 * complete up to its last read, except for records that wait, and for what it is known to lack.
 */
export function asOf(base: Facts): Date | null {
  const { sync, live } = base;
  if (!sync) return null;
  // Without the feed, or before it was read for the first time, only syncs count.
  if (sync.kind !== "live" && (base.settings.rapid || !live?.readAt)) return sync.startedAt;
  if (!live?.readAt) return sync.startedAt;
  const doubt = doubtSince({ ...base, live });
  const complete = Math.min(live.readAt.getTime(), live.waitingSince?.getTime() ?? Infinity, doubt);
  // A feed that was given up is older than the syncs since.
  return new Date(Math.max(complete, sync.kind === "live" ? -Infinity : sync.startedAt.getTime()));
}

/** After drift or a feed gap, only what was compared before counts. Returns ms since 1970; Infinity: no doubt. */
function doubtSince(base: Facts & { live: NonNullable<Base["live"]> }): number {
  const { driftedSince, gapSince } = base.live;
  if (!driftedSince && !gapSince) return Infinity;
  const foundMs = Math.min(driftedSince?.getTime() ?? Infinity, gapSince?.getTime() ?? Infinity);
  const comparedMs = lastCompared(base)?.getTime() ?? base.sync!.startedAt.getTime();
  return Math.min(foundMs, driftedSince ? (base.sweep ?? base.sync!).startedAt.getTime() : comparedMs);
}

/**
 * The age of a base's data over time, in buckets; without a clock and without SQL.
 *
 * L1. Where nothing was synced, a base that was current shows nothing. One that was not shows how
 *     its data grew older, from the last sync on, or from when the period said that the data was complete.
 */
import type { Period } from "./periods";

/** What a sync, or several similar ones, found: the age of the data since the sync before. */
export interface LagSample {
  from: Date;
  to: Date;
  syncs: number;
  /** Null: a failure, or a sweep in the background. */
  lagMs: number | null;
  maxLagMs: number | null;
  changed: number;
}

export interface LagBucket {
  at: Date;
  /** Null: nothing was synced, because nothing changed or because there was no base yet. */
  p50Ms: number | null;
  maxMs: number | null;
  changed: number;
}

/** @param buckets times of their beginnings, evenly spaced, the oldest first; the last one contains `now` */
export function lagOver(
  buckets: Date[],
  bucketMs: number,
  samples: LagSample[],
  periods: Period[],
  now: Date,
): LagBucket[] {
  // Since when the data has been aging.
  let freshMs = Number.NEGATIVE_INFINITY;
  const samplesIn = inBuckets(buckets, bucketMs, samples);
  return buckets.map((at, index) => {
    const endMs = Math.min(at.getTime() + bucketMs, now.getTime());
    const inside = samplesIn[index]!;
    const changed = inside.filter(({ from }) => from >= at).reduce((sum, one) => sum + one.changed, 0);
    const lags = inside.flatMap(({ lagMs, syncs }) => (lagMs === null ? [] : [{ lagMs, syncs }]));
    const aging = agedIn(at.getTime(), endMs, periods, freshMs);
    if (lags.length > 0) {
      freshMs = Math.max(...inside.map(({ to }) => Math.min(to.getTime(), endMs)));
      const maxMs = Math.max(
        ...inside.map(({ maxLagMs }) => maxLagMs ?? 0),
        aging && freshMs < at.getTime() ? aging.maxMs : 0,
      );
      return { at, p50Ms: weightedMedian(lags), maxMs, changed };
    }
    return { at, p50Ms: aging?.p50Ms ?? null, maxMs: aging?.maxMs ?? null, changed };
  });
}

/** Returns the samples that overlap each bucket, in their order. There may be thousands, and a hundred buckets. */
function inBuckets(buckets: Date[], bucketMs: number, samples: LagSample[]): LagSample[][] {
  const found = buckets.map((): LagSample[] => []);
  const [first] = buckets;
  if (!first) return found;
  const indexOf = (at: Date) => Math.floor((at.getTime() - first.getTime()) / bucketMs);
  for (const sample of samples) {
    const last = Math.min(indexOf(sample.to), buckets.length - 1);
    for (let index = Math.max(0, indexOf(sample.from)); index <= last; index++) found[index]!.push(sample);
  }
  return found;
}

/** The age within a bucket without a sync. */
function agedIn(
  fromMs: number,
  toMs: number,
  periods: Period[],
  freshMs: number,
): { p50Ms: number; maxMs: number } | null {
  const covering = periods.filter(
    ({ beganAt, endedAt }) => beganAt.getTime() < toMs && (endedAt?.getTime() ?? Infinity) > fromMs,
  );
  const last = covering.at(-1);
  if (!last) return null;
  const sinceMs = Math.max(freshMs, (covering[0]!.asOf ?? covering[0]!.beganAt).getTime());
  const untilMs = Math.min(toMs, last.endedAt?.getTime() ?? Infinity);
  const maxMs = Math.max(0, untilMs - sinceMs);
  const minMs = Math.max(0, Math.max(fromMs, covering[0]!.beganAt.getTime()) - sinceMs);
  return { p50Ms: (minMs + maxMs) / 2, maxMs };
}

function weightedMedian(values: { lagMs: number; syncs: number }[]): number {
  const sorted = values.toSorted((a, b) => a.lagMs - b.lagMs);
  const half = values.reduce((sum, { syncs }) => sum + syncs, 0) / 2;
  let seen = 0;
  for (const { lagMs, syncs } of sorted) {
    seen += syncs;
    if (seen >= half) return lagMs;
  }
  return sorted.at(-1)!.lagMs;
}

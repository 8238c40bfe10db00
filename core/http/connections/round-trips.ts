/**
 * Estimates how much the latency to a host varies: the spread of one direction, derived from the round trips of
 * handshakes.
 *
 * Uses handshakes and not answers, since the source's processing time varies more than any network, and does not delay
 * a request on its way in.
 */

/** Maximum number of remembered round trips. */
const MOST_SAMPLES = 64;
/** Of this many round trips the longest is ignored: this process may have been busy. */
const PER_OUTLIER = 16;
/** Before any measurement, the standard deviation is assumed to be this fraction of the usual round trip ... */
const PRIOR_PART = 1 / 4;
/** ... with the weight of this many measurements. */
const PRIOR_WEIGHT = 4;
/**
 * Factor from the standard deviation of round trips to the spread of one direction. Two equal directions with uniform
 * jitter give √12/√2 = 2.45, which is 2.65 of the deviation that remains without the outliers. Each permit's
 * minimum margin (core/limiter/base-queue.ts) covers measurements that are too low.
 */
const SPREAD_PER_DEVIATION = 2.65;

interface Sample {
  roundTripMs: number;
  /** The mean of all round trips that were measured with it, ms. */
  usualMs: number;
}

export class RoundTrips {
  readonly #samples: Sample[] = [];
  #spreadMs = 0;

  /** The maximum difference in network latency between two requests, ms; 0 while nothing has been measured. */
  get spreadMs(): number {
    return this.#spreadMs;
  }

  /** @param usualMs the mean of all round trips that were measured with it, ms */
  add(roundTripMs: number, usualMs = roundTripMs): void {
    this.#samples.push({ roundTripMs, usualMs });
    if (this.#samples.length > MOST_SAMPLES) this.#samples.shift();
    this.#spreadMs = SPREAD_PER_DEVIATION * this.#deviationMs();
  }

  #deviationMs(): number {
    const sorted = this.#samples.toSorted((a, b) => a.roundTripMs - b.roundTripMs);
    const kept = sorted.slice(0, sorted.length - Math.floor(sorted.length / PER_OUTLIER));
    const meanMs = meanOf(kept.map(({ roundTripMs }) => roundTripMs));
    const squares = kept.reduce((sum, { roundTripMs }) => sum + (roundTripMs - meanMs) ** 2, 0);
    const prior = PRIOR_WEIGHT * (meanOf(kept.map(({ usualMs }) => usualMs)) * PRIOR_PART) ** 2;
    return Math.sqrt((prior + squares) / (PRIOR_WEIGHT + kept.length - 1));
  }
}

function meanOf(numbers: number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0) / numbers.length;
}

/**
 * How much the way to a host varies: the spread of one direction, estimated from round trips of handshakes.
 *
 * Handshakes and not answers, since what a source takes to answer varies more than any network, and holds no request
 * back on its way in.
 */

/** Round trips that are remembered. */
const MOST_SAMPLES = 64;
/** Of so many round trips the longest is left out: this process may have been busy. */
const PER_OUTLIER = 16;
/** Before anything was measured the standard deviation is taken for this part of the usual round trip ... */
const PRIOR_PART = 1 / 4;
/** ... and that counts as so many measurements. */
const PRIOR_WEIGHT = 4;
/**
 * From the standard deviation of round trips to the spread of one direction. Two like directions of even jitter give
 * √12/√2 = 2.45, which is 2.65 of the deviation that is left without the outliers. Each reservation's least margin
 * (core/limiter/backend.ts) covers what is measured too low.
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

  /** By how much longer one request may be on its way than another, ms; 0 while nothing is known. */
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

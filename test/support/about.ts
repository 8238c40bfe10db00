/** Compares times that were taken from different clocks. */

/** The largest difference that the duration of a statement explains, ms. */
const NEAR_MS = 1000;

/** Matches a Date near `time`, or its JSON form, in `toEqual` and the like. */
export function about(time: Date | null, nearMs = NEAR_MS): unknown {
  return {
    asymmetricMatch: (other: unknown) =>
      time !== null && Math.abs(new Date(other as Date | string).getTime() - time.getTime()) < nearMs,
    toAsymmetricMatcher: () => `about ${time?.toISOString()}`,
    toString: () => "about",
  };
}

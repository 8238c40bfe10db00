/** Times that went from one clock to another. */

/** Further apart than this are two times that a statement on its way does not account for, ms. */
const NEAR_MS = 1000;

/** Matches a Date near `time`, or what JSON makes of one, in `toEqual` and the like. */
export function about(time: Date | null, nearMs = NEAR_MS): unknown {
  return {
    asymmetricMatch: (other: unknown) =>
      time !== null && Math.abs(new Date(other as Date | string).getTime() - time.getTime()) < nearMs,
    toAsymmetricMatcher: () => `about ${time?.toISOString()}`,
    toString: () => "about",
  };
}

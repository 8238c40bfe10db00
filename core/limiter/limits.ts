/** The rate limits of a key's platform, as the SQL functions take them, and the part of them that a sync may use. */

import { limitsOfKey, platformFacts, strictest } from "../source";
import type { QuotaKey } from "./rate-limiter";

export { limitsOfKey, strictest };

const UNCAPPED_PLANS = platformFacts
  .flatMap(({ plans }) => plans)
  .filter(({ beyond }) => beyond === "unlimited")
  .map(({ id }) => id)
  .join(",");

/** Returns a value of the SQL type `source_limits`. */
export function sqlLimitsOf(key: string): string {
  const { windowMs, requestsPerWindow, slowedPerWindow, userRequestsPerWindow } = limitsOfKey(key);
  return `(${windowMs},${requestsPerWindow},${slowedPerWindow},${userRequestsPerWindow},"{${UNCAPPED_PLANS}}")`;
}

/** Without Turbo: three of five. */
const USUAL_PART = 0.6;

/** Returns how many requests per window a sync may use; the rest stays free for clients, even when they send none. */
export function syncShare(key: QuotaKey, isTurbo: boolean): number {
  const { requestsPerWindow } = limitsOfKey(key);
  return isTurbo ? requestsPerWindow : Math.max(1, Math.floor(requestsPerWindow * USUAL_PART));
}

/** The rate limits of a key's platform, as the SQL functions take them. */
import { limitsOfKey, platformFacts, strictest } from "../source";

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

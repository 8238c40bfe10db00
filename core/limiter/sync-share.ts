/** How many requests per window a sync may make: the rest is left to clients while they ask for nothing. */
import type { QuotaKey } from "./backend";
import { limitsOfKey } from "./limits";

/** Without turbo, of all: three of five. */
const USUAL_PART = 0.6;

export function syncShare(key: QuotaKey, isTurbo: boolean): number {
  const { requestsPerWindow } = limitsOfKey(key);
  return isTurbo ? requestsPerWindow : Math.max(1, Math.floor(requestsPerWindow * USUAL_PART));
}

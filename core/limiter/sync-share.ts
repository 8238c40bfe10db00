/** Returns how many requests per window a sync may use; the rest stays free for clients, even when they send none. */
import type { QuotaKey } from "./backend";
import { limitsOfKey } from "./limits";

/** Without Turbo: three of five. */
const USUAL_PART = 0.6;

export function syncShare(key: QuotaKey, isTurbo: boolean): number {
  const { requestsPerWindow } = limitsOfKey(key);
  return isTurbo ? requestsPerWindow : Math.max(1, Math.floor(requestsPerWindow * USUAL_PART));
}

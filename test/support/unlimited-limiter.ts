/** A rate limiter that grants everything at once. */
import type { RateLimiter } from "../../core/limiter";

export function unlimitedLimiter(over: Partial<RateLimiter> = {}): RateLimiter {
  return {
    acquireSync: async () => undefined,
    acquireClient: async () => undefined,
    acquireUnproven: async () => undefined,
    countServed: () => {},
    block: async () => {},
    close: async () => {},
    ...over,
  };
}

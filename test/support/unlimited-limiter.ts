/** A rate limiter that grants everything at once. */
import type { RateLimiter } from "../../core/limiter";

export function unlimitedLimiter(over: Partial<RateLimiter> = {}): RateLimiter {
  return {
    acquireSync: async () => undefined,
    acquireClient: async (_, { prepare }) => void (await prepare?.()),
    acquireUnproven: async (_, { prepare }) => void (await prepare?.()),
    countServed: () => {},
    block: async () => {},
    close: async () => {},
    ...over,
  };
}

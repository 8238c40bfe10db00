/** A rate limiter that grants everything at once. */
import type { RateLimiter } from "../../core/limiter";

export function unlimitedLimiter(over: Partial<RateLimiter> = {}): RateLimiter {
  return {
    acquireSync: async () => undefined,
    acquireClient: async () => undefined,
    acquireUnproven: async () => undefined,
    countServed: async () => {},
    block: async () => {},
    usage: async () => ({ month: "2026-01", sync: 0, client: 0 }),
    forget: async () => {},
    close: async () => {},
    ...over,
  };
}

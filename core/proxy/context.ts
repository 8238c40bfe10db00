/** The dependencies for applying proxied writes, in addition to the plain context. */
import type { Context } from "../context";
import type { RateLimiter } from "../limiter";
import type { Platform } from "../source";

export interface WritesContext extends Context {
  limiter: RateLimiter;
  platforms: Platform[];
  queue: { requestSync(baseId: string): Promise<void> };
}

/**
 * The rate limiter of a process that serves many bases: on connections of its own.
 *
 * On the process's common pool, a statement may wait for longer than it may take, for example while a thousand leases
 * start. It would count as an outage of the control plane, which stops every base for a while, and they would all start
 * again. The statements of all bases follow each other on few connections, whose caches stay warm.
 */
import type { Context } from "../context";
import { connectControl } from "../postgres";
import { createRateLimiter, type RateLimiter, type RateLimiterOptions } from "./rate-limiter";

/** Sync's statement and that of clients run at the same time. */
const CONNECTIONS = 2;
/** Longest wait for statements that are running when the limiter closes, s. */
const CLOSE_SECONDS = 5;

/** Like `createRateLimiter`; `close` also closes the connections. */
export function createProcessLimiter(
  ctx: Pick<Context, "config" | "log" | "metrics">,
  options?: RateLimiterOptions,
): RateLimiter {
  const db = connectControl(ctx.config.databaseUrl!, { max: CONNECTIONS });
  const limiter = createRateLimiter({ ...ctx, db }, options);
  return {
    ...limiter,
    async close() {
      await limiter.close();
      await db.end({ timeout: CLOSE_SECONDS });
    },
  };
}

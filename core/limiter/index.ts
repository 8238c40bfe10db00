/** The rate limiter: no request is sent to a source without a permit. */
export { CallCounter } from "./call-counter";
export { processClock, type QuotaClock } from "./clock";
export { sqlLimitsOf, syncShare } from "./limits";
export { MeteredSource, neverRetry } from "./metered-source";
export {
  type ClientCall,
  createProcessLimiter,
  createRateLimiter,
  type RateLimiter,
  rateLimiterOf,
  type SyncCall,
} from "./rate-limiter";

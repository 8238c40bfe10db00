/** The dependencies of every step that forwards a request. */
import type { Context } from "../../core/context";
import type { RateWindow } from "../../core/http";
import type { AcceptedKeys, IsOwnKey, UnprovenQueue } from "../../core/keys";
import type { RateLimiter } from "../../core/limiter";
import type { WriteThrough } from "../../core/proxy";
import type { Budgets } from "./budgets";
import type { WriteCoalescer } from "./coalesce";
import type { ProxyMetrics } from "./metrics";

export interface ProxyContext extends Context {
  limiter: RateLimiter;
  writes: WriteThrough;
  proxyMetrics: ProxyMetrics;
  /** Keys that the source has accepted, by base. */
  keys: AcceptedKeys;
  isOwnKey: IsOwnKey;
  /** Requests with all other keys wait here. */
  unproven: UnprovenQueue;
  coalescer: WriteCoalescer;
  bodies: Budgets;
  connections: Budgets;
  /** Hosts and ports at which clients reach the proxy: `PROXY_URL`'s, and the loopback names of its port. */
  ownHosts: ReadonlySet<string>;
  /** Preflights by network: they have no key. */
  preflights: RateWindow;
  /** Writes under way: they are completed even if their clients disconnect. */
  underWay: Set<Promise<unknown>>;
}

/** Time of a request that is not spent in the proxy itself: by the source and in the wait for the quota. */
export interface Elsewhere {
  ms: number;
}

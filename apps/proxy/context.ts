/** What every step of forwarding a request needs. */
import type { Context } from "../../core/context";
import type { Ledger } from "../../core/quota";
import type { WriteThrough } from "../../core/writes";
import type { ProxyMetrics } from "./metrics";
import type { ProvenKeys } from "./replica-read";

export interface ProxyContext extends Context {
  ledger: Ledger;
  writes: WriteThrough;
  proxyMetrics: ProxyMetrics;
  provenKeys: ProvenKeys;
  /** Writes under way: they are finished though their clients may be gone. */
  underWay: Set<Promise<unknown>>;
}

/** Time of a request that is not the proxy's own: the source's and the quota's. */
export interface Elsewhere {
  ms: number;
}

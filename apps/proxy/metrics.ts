/** The proxy's metrics; labels are the class of call, never a base. */
import { Counter, Histogram, type Registry } from "prom-client";
import { BufferedHistogram } from "../../core/buffered-metrics";
import type { UpstreamFailure } from "./upstream";

export type CallClass = "read" | "write" | "other";

export type ProxyMetrics = ReturnType<typeof proxyMetrics>;

const TOTAL_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const ADDED_SECONDS = [0.0005, 0.001, 0.002, 0.004, 0.008, 0.015, 0.03, 0.06, 0.125, 0.25, 1, 5];

export function proxyMetrics(registry: Registry) {
  const registers = [registry];
  const total = new BufferedHistogram({
    name: "basetide_proxy_request_seconds",
    help: "Time from a request to the start of its response (for a write: until the replicas show it)",
    label: "class",
    buckets: TOTAL_SECONDS,
    registers,
  });
  const added = new BufferedHistogram({
    name: "basetide_proxy_added_seconds",
    help: "The part of that time that was not spent waiting for Airtable or for its rate limit",
    label: "class",
    buckets: ADDED_SECONDS,
    registers,
  });
  const errors = new Counter({
    name: "basetide_proxy_upstream_errors_total",
    help: "Requests that Airtable did not answer",
    labelNames: ["kind"],
    registers,
  });
  const coalesced = new Histogram({
    name: "basetide_proxy_coalesced_writes",
    help: "Writes of single records in each request that carried several of them",
    buckets: [2, 3, 4, 5, 6, 7, 8, 9, 10],
    registers,
  });
  return {
    /**
     * Records an answered request: its total time, and the part spent neither by the source nor waiting for the quota,
     * ms.
     */
    answered(call: CallClass, totalMs: number, addedMs: number) {
      total.add(call, totalMs / 1000);
      added.add(call, addedMs / 1000);
    },
    failed: (failure: UpstreamFailure) => errors.inc({ kind: failure }),
    /** Records a call that carried the writes of several clients. */
    coalesced: (writes: number) => coalesced.observe(writes),
  };
}

/** The limiter's Prometheus metrics; their labels are the kind of request and the reason, never a base. */
import { Counter, Gauge, type Registry } from "prom-client";
import { BufferedCounter, BufferedHistogram } from "../buffered-metrics";
import type { Priority } from "./base-queue";
import type { BlockReason } from "./rate-limiter";

const WAIT_SECONDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** Returns the limiter metrics of a registry; rate limiters in one process (`apps/up`) share them. */
export function quotaMetrics(registry: Registry) {
  const registers = [registry];
  /** Returns the registry's metric, or a new one. */
  function shared<T>(name: string, help: string, create: (of: { name: string; help: string }) => T): T {
    return (registry.getSingleMetric(name) as T | undefined) ?? create({ name, help });
  }
  const label = "kind";
  const grants = shared(
    "basetide_quota_grants_total",
    "Requests granted",
    (of) => new BufferedCounter({ ...of, label, registers }),
  );
  const blocks = shared(
    "basetide_quota_blocks_total",
    "Pauses that Airtable asked for (429)",
    (of) => new Counter({ ...of, labelNames: ["reason"], registers }),
  );
  const wait = shared(
    "basetide_quota_wait_seconds",
    "Wait time for a permit of a base's rate limit",
    (of) => new BufferedHistogram({ ...of, label, buckets: WAIT_SECONDS, registers }),
  );
  const fallback = shared(
    "basetide_quota_fallback",
    "1 while the control plane is unreachable, and a proxy serves clients with the permits that it is owed",
    (of) => new Gauge({ ...of, registers }),
  );
  return {
    granted(kind: Priority, waitedMs: number) {
      grants.count(kind);
      wait.add(kind, waitedMs / 1000);
    },
    blocked: (reason: BlockReason) => blocks.inc({ reason }),
    fallback: (isAway: boolean) => fallback.set(isAway ? 1 : 0),
  };
}

/** The limiter's Prometheus metrics; their labels are the kind of request and the reason, never a base. */
import { Counter, Gauge, type Registry } from "prom-client";
import { BufferedCounter, BufferedHistogram } from "../buffered-metrics";
import type { Priority } from "./base-queue";
import type { BlockReason } from "./rate-limiter";

const WAIT_SECONDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** Returns the limiter metrics of a registry; rate limiters in one process (`apps/up`) share them. */
export function quotaMetrics(registry: Registry) {
  const registers = [registry];
  function counter(name: string, help: string, label: string): Counter {
    const known = registry.getSingleMetric(name);
    return known instanceof Counter ? known : new Counter({ name, help, labelNames: [label], registers });
  }
  function grantCounter(): BufferedCounter {
    const name = "basetide_quota_grants_total";
    const known = registry.getSingleMetric(name);
    if (known instanceof BufferedCounter) return known;
    return new BufferedCounter({ name, help: "Requests granted", label: "kind", registers });
  }
  function waitHistogram(): BufferedHistogram {
    const name = "basetide_quota_wait_seconds";
    const help = "Wait time for a permit of a base's rate limit";
    const known = registry.getSingleMetric(name);
    if (known instanceof BufferedHistogram) return known;
    return new BufferedHistogram({ name, help, label: "kind", buckets: WAIT_SECONDS, registers });
  }
  function fallbackGauge(): Gauge {
    const name = "basetide_quota_fallback";
    const help =
      "1 while the control plane is unreachable, and a proxy serves clients with the permits that it is owed";
    const known = registry.getSingleMetric(name);
    return known instanceof Gauge ? known : new Gauge({ name, help, registers });
  }

  const grants = grantCounter();
  const blocks = counter("basetide_quota_blocks_total", "Pauses that Airtable asked for (429)", "reason");
  const wait = waitHistogram();
  const fallback = fallbackGauge();

  return {
    granted(kind: Priority, waitedMs: number) {
      grants.count(kind);
      wait.add(kind, waitedMs / 1000);
    },
    blocked: (reason: BlockReason) => blocks.inc({ reason }),
    fallback: (isAway: boolean) => fallback.set(isAway ? 1 : 0),
  };
}

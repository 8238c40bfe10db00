/**
 * Orders test files: the longest begin first, so that a run does not end with one of them alone. All others keep
 * vitest's order, which uses the last durations, but on a fresh checkout only file sizes.
 */
import { BaseSequencer, type TestSpecification } from "vitest/node";

/**
 * Most take about a minute, mostly waiting; the longest first. The first one runs a service of five processes with
 * strict timing: the files that begin together with it use the least CPU.
 */
const LONGEST = [
  "chaos/short",
  "integration/fleet/backpressure",
  "security/short",
  "browser/base-page",
  "integration/fleet/quarantine",
  "integration/live/live-rest",
  "integration/proxy/trust",
  "integration/fleet/scaling",
  "browser/live-and-budget",
  "integration/live/live-replicas",
  "integration/limiter/budget",
  "security/isolation-property",
  "integration/sync/catch-up",
  "integration/live/live-killed",
  "integration/proxy/proxy-outages",
  "integration/sync/replicate-bases",
  "integration/live/live-consistency",
  "integration/control/base-lifecycle",
  "integration/replica/replication",
  "integration/replica/fuzz-schemas",
  "integration/postgres/failover",
  "integration/sync/settings-in-a-sync",
  "integration/limiter/rate-limiter",
  "integration/proxy/proxy-writes",
  "integration/proxy/replica-reads-shapes",
  "browser/accounts",
  "integration/alerts/alerts",
  "integration/console/rate-limits",
  "integration/replica/sql-guide",
  "integration/fleet/metrics",
  "integration/live/live",
  "matrix/short",
  "integration/sync/bad-answers",
  "integration/proxy/proxy-limits",
  "integration/sync/hot-record",
];

export default class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const usual = await super.sort(files);
    return usual.toSorted((a, b) => rankOf(a) - rankOf(b));
  }
}

function rankOf({ moduleId }: TestSpecification): number {
  const rank = LONGEST.findIndex((name) => moduleId.endsWith(`/test/${name}.test.ts`));
  return rank < 0 ? LONGEST.length : rank;
}

/**
 * Orders test files: the longest begin first, so that a run does not end with one of them alone. Files that share a
 * worker come last and together: a worker ends before a file of the other kind. All others keep vitest's order, which
 * uses the last durations, but on a fresh checkout only file sizes.
 */
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** The project of files that share a worker. */
export const SHARED_WORKERS = "shared-worker";

/**
 * Files that take 15 seconds and more, the longest first. The first one runs a service of five processes with strict
 * timing: the files that begin together with it mostly wait.
 */
const LONGEST = [
  "chaos/short",
  "integration/fleet/backpressure",
  "security/short",
  "integration/live/live-rest",
  "integration/fleet/quarantine",
  "browser/base-page",
  "integration/proxy/trust",
  "integration/fleet/scaling",
  "integration/live/live-replicas",
  "integration/sync/catch-up",
  "integration/limiter/budget",
  "browser/live-and-budget",
  "integration/live/live-killed",
  "integration/proxy/proxy-outages",
  "integration/postgres/failover",
  "security/isolation-property",
  "integration/live/live-consistency",
  "integration/proxy/proxy-limits",
  "integration/control/base-lifecycle",
  "integration/sync/replicate-bases",
  "matrix/short",
  "integration/limiter/rate-limiter",
  "integration/sync/settings-in-a-sync",
  "integration/live/live",
  "integration/sync/bad-answers",
  "integration/replica/fuzz-schemas",
  "integration/fleet/metrics",
  "integration/console/rate-limits",
  "integration/replica/customer-objects",
  "integration/proxy/replica-reads-shapes",
  "integration/replica/sql-guide",
  "integration/alerts/alerts",
  "integration/sync/hot-record",
  "browser/accounts",
  "integration/control/operator",
  "integration/replica/replication",
  "integration/external/slow-databases",
  "integration/fleet/worker",
  "integration/postgres/poolers",
  "browser/onboarding",
  "integration/replica/distant-replica",
  "integration/proxy/consistency",
  "integration/proxy/proxy-writes",
  "integration/external/hostile-servers",
  "integration/replica/busy-swaps",
  "integration/external/silent-servers",
  "browser/alerts",
  "integration/live/live-schema-history",
  "integration/proxy/proxy-history",
  "integration/fleet/up",
  "integration/postgres/tls",
  "integration/attachments/attachments",
  "integration/fleet/planted-secrets",
  "integration/sync/rapid",
  "integration/proxy/replica-reads",
  "integration/replica/tenant-limits",
  "integration/limiter/rate-limit-network",
  "integration/control/restore",
  "integration/control/failed-start",
  "integration/replica/hostile-defaults",
  "integration/proxy/proxy-sql-header",
  "integration/replica/long-readers",
  "integration/proxy/repairs-of-gone-records",
  "integration/limiter/sent-once",
  "integration/replica/replica-connections",
  "integration/console/onboarding",
  "unit/passwords",
  "integration/control/watchdog",
  "integration/proxy/pyairtable",
  "integration/control/writable-database",
  "integration/sync/schema-history",
  "integration/proxy/proxy-pauses",
  "integration/replica/pg-dump",
  "integration/replica/own-tables",
  "integration/sync/moved-names",
];

export default class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const usual = await super.sort(files);
    return usual.toSorted((a, b) => rankOf(a) - rankOf(b));
  }
}

function rankOf({ moduleId, project }: TestSpecification): number {
  const place = LONGEST.findIndex((name) => moduleId.endsWith(`/test/${name}.test.ts`));
  const rank = place < 0 ? LONGEST.length : place;
  return project.name === SHARED_WORKERS ? LONGEST.length + 1 + rank : rank;
}

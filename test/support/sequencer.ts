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
  "security/short",
  "integration/proxy/trust",
  "browser/base-page",
  "integration/live/live-leases",
  "integration/live/live-replicas",
  "integration/fleet/backpressure",
  "integration/fleet/scaling",
  "integration/fleet/selection",
  "browser/live-and-budget",
  "security/isolation-property",
  "integration/postgres/failover",
  "integration/sync/catch-up",
  "integration/replica/fuzz-schemas",
  "integration/proxy/proxy-outages",
  "integration/sync/replicate-bases",
  "browser/accounts",
  "integration/control/operator",
  "integration/live/live-consistency",
  "integration/fleet/quarantine",
  "integration/alerts/alerts",
  "integration/control/base-lifecycle",
  "integration/sync/settings-in-a-sync",
  "browser/fresh",
  "integration/proxy/proxy-writes",
  "integration/limiter/rate-limiter",
  "integration/live/live",
  "integration/proxy/proxy-limits",
  "browser/onboarding",
  "integration/limiter/limiter-live",
  "matrix/short",
  "browser/data-browser",
  "browser/selection",
  "integration/fleet/metrics",
  "integration/proxy/replica-reads-shapes",
  "integration/console/rate-limits",
  "integration/limiter/budget",
  "integration/replica/replication",
  "integration/replica/busy-swaps",
  "integration/replica/customer-objects",
  "integration/sync/bad-answers",
  "integration/fleet/planted-secrets",
  "integration/fleet/account-move",
  "integration/fleet/up",
  "integration/live/live-schema-history",
  "integration/external/slow-databases",
  "integration/sync/hot-record",
  "integration/limiter/rate-limit-network",
  "integration/attachments/attachments",
  "integration/fleet/worker",
  "integration/fleet/page-weights",
  "browser/public-pages",
  "integration/replica/distant-replica",
  "integration/postgres/poolers",
  "browser/sql-and-schema",
  "browser/names-and-sql-users",
  "integration/proxy/proxy-history",
  "integration/proxy/consistency",
  "integration/replica/tenant-limits",
  "integration/external/hostile-servers",
  "integration/external/silent-servers",
  "integration/sync/rapid",
  "integration/console/onboarding",
  "integration/postgres/tls",
  "integration/replica/customer-views",
  "integration/live/live-history",
  "integration/proxy/replica-reads",
  "integration/console/connect-clients",
  "integration/control/restore",
  "browser/alerts",
  "integration/sync/moved-names",
  "integration/proxy/replica-reads-formulas",
  "integration/control/failed-start",
  "integration/limiter/monthly-cap",
  "integration/sync/schema-history",
  "integration/proxy/proxy-sql-header",
  "integration/sql-editor/run-query",
  "integration/live/live-feed-failures",
  "integration/replica/damage",
  "integration/live/live-feed-notifications",
  "integration/data-browser/data-browser",
  "integration/limiter/limiter-rule",
  "integration/sync/rapid-history",
  "integration/replica/pg-dump",
  "integration/replica/long-readers",
  "integration/replica/replica-connections",
  "integration/limiter/sent-once",
  "integration/proxy/pyairtable",
  "integration/sync/sync-history",
  "integration/control/hot-rows",
  "integration/replica/own-tables",
  "integration/fleet/embedded-postgres",
  "integration/proxy/proxy-pauses",
  "integration/control/watchdog",
  "integration/sync/schema-changes",
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

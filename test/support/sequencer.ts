/**
 * Orders test files. Those that take long mostly wait, and the short ones mostly compute: so the long ones are dealt evenly
 * among the short ones, the longest first. Then both cores are busy during all of a run, few files compete for them, and
 * no long file ends the run alone. Files with a worker of their own come before those that share workers: a worker ends
 * before a file of the other kind.
 */
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** The project of files that share a worker. */
export const SHARED_WORKERS = "shared-worker";

/** Files that take 15 seconds and more in a whole run on two cores, the longest first. */
const LONG = [
  "security/short",
  "integration/sync/one-broken",
  "timelapse/short",
  "integration/live/live-replicas",
  "integration/fleet/refused-changes",
  "integration/live/live-leases",
  "browser/base-page",
  "chaos/short",
  "integration/sync/catch-up",
  "integration/fleet/backpressure",
  "integration/limiter/rate-limiter",
  "integration/fleet/scaling",
  "integration/control/base-lifecycle",
  "integration/sync/fresh-worker",
  "integration/fleet/quarantine",
  "security/isolation-property",
  "chaos/sql-write-kills",
  "browser/onboarding",
  "integration/proxy/trust",
  "browser/data-browser",
  "integration/sync/settings-in-a-sync",
  "integration/proxy/change-sets",
  "integration/proxy/sql-write-outbox",
  "integration/proxy/proxy-limits",
  "integration/replica/replica-connections",
  "integration/sync/bad-answers",
  "integration/proxy/proxy-outages",
  "integration/proxy/sql-write-changes",
  "integration/proxy/sql-write-outbox-servers",
  "integration/proxy/replica-reads-shapes",
  "integration/fleet/selection",
  "integration/proxy/sql-writes",
  "integration/replica/distant-replica",
  "integration/console/mcp",
  "integration/live/notification-address",
  "matrix/short",
  "integration/limiter/budget",
  "integration/live/live-consistency",
  "integration/proxy/proxy-writes",
  "integration/proxy/sql-write-failures",
  "integration/console/onboarding",
  "integration/fleet/metrics",
  "integration/external/silent-servers",
  "browser/analyst",
  "integration/live/live",
  "browser/accounts",
  "unit/process",
  "integration/proxy/sql-write-servers",
  "integration/sync/rapid",
  "integration/control/restore",
  "integration/postgres/poolers",
  "integration/sync/hot-record",
  "integration/external/slow-databases",
  "integration/sync/damaged-answers",
  "browser/names-and-sql-users",
  "integration/sync/keep-up",
  "integration/sync/failing-tables",
  "integration/fleet/worker",
  "integration/fleet/planted-secrets",
  "integration/proxy/proxy-history",
  "browser/palette",
  "integration/replica/busy-swaps",
  "integration/fleet/up",
  "integration/exports/postgraphile",
  "integration/replica/damage",
  "browser/live-and-budget",
  "integration/attachments/attachments",
  "integration/proxy/fuzz-write-answers",
  "integration/fleet/account-move",
  "integration/fleet/embedded-postgres",
  "integration/external/hostile-servers",
  "integration/fleet/upgrade",
  "browser/connect-client",
  "integration/exports/types-in-code",
  "integration/proxy/replica-reads-formulas",
  "integration/postgres/tls",
  "integration/live/live-missed-changes",
  "integration/data-browser/data-browser",
  "integration/control/operator",
  "integration/replica/tenant-limits",
  "integration/replica/bad-shapes",
  "integration/alerts/alerts",
  "browser/sql-and-schema",
  "integration/postgres/failover",
  "integration/limiter/rate-limit-network",
  "integration/limiter/sent-once",
  "integration/sync/renewed-lease",
  "integration/sync/handover",
  "integration/replica/customer-objects",
  "integration/control/failed-start",
  "browser/fresh",
  "integration/proxy/proposal-kills",
  "integration/proxy/replica-reads",
  "integration/sync/first-sync-time",
  "integration/console/rate-limits",
  "browser/public-pages",
  "integration/proxy/consistency",
  "unit/test-runs",
  "integration/fleet/sync-meta",
  "integration/live/broken-dependents",
  "integration/replica/long-readers",
  "integration/proxy/proxy-sql-header",
  "integration/proxy/pyairtable",
  "integration/sync/moved-names",
  "integration/live/fresh-base",
  "browser/agents",
  "integration/sql-editor/run-query",
  "integration/proxy/sql-write-limits",
  "integration/console/agent-questions",
];

export default class DealtEvenly extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const usual = await super.sort(files);
    const [own, shared] = [usual.filter((file) => !isShared(file)), usual.filter(isShared)];
    const [longOwn, long] = [longOf(own), longOf(shared)];
    return [...longOwn, ...without(own, longOwn), ...dealt(long, without(shared, long))];
  }
}

const longOf = (files: TestSpecification[]) => LONG.flatMap((name) => files.filter(isNamed(name)));
const without = <T>(all: T[], some: T[]) => all.filter((one) => !some.includes(one));
const isShared = ({ project }: TestSpecification) => project.name === SHARED_WORKERS;
const isNamed =
  (name: string) =>
  ({ moduleId }: TestSpecification) =>
    moduleId.endsWith(`/test/${name}.test.ts`);

/** Puts each of `some` before an equal part of `others`. */
function dealt<T>(some: T[], others: T[]): T[] {
  const part = (nth: number) => Math.floor((nth * others.length) / some.length);
  if (some.length === 0) return others;
  return some.flatMap((one, nth) => [one, ...others.slice(part(nth), part(nth + 1))]);
}

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
  "integration/fleet/refused-changes",
  "integration/live/live-leases",
  "chaos/short",
  "integration/fleet/backpressure",
  "timelapse/short",
  "integration/fleet/scaling",
  "integration/sync/failing-tables",
  "integration/live/notification-address",
  "integration/sync/catch-up",
  "browser/base-page",
  "browser/sql-and-schema",
  "integration/fleet/quarantine",
  "chaos/sql-write-kills",
  "integration/sync/bad-answers",
  "integration/proxy/proxy-outages",
  "integration/fleet/worker",
  "integration/sync/settings-in-a-sync",
  "integration/proxy/trust",
  "integration/control/base-lifecycle",
  "integration/fleet/selection",
  "integration/limiter/rate-limiter",
  "matrix/short",
  "browser/onboarding",
  "integration/postgres/failover",
  "security/isolation-property",
  "integration/replica/replica-connections",
  "integration/live/live",
  "integration/console/rate-limits",
  "integration/fleet/metrics",
  "integration/proxy/proxy-limits",
  "integration/control/restore",
  "integration/replica/replication",
  "integration/alerts/alerts",
  "integration/proxy/proxy-writes",
  "integration/proxy/replica-reads-shapes",
  "integration/live/live-consistency",
  "integration/sync/hot-record",
  "integration/external/slow-databases",
  "integration/sync/rapid",
  "integration/external/silent-servers",
  "integration/replica/distant-replica",
  "browser/live-and-budget",
  "integration/fleet/up",
  "integration/attachments/attachments",
  "integration/proxy/proxy-history",
  "integration/postgres/poolers",
  "integration/external/hostile-servers",
  "integration/limiter/budget",
  "integration/replica/busy-swaps",
  "integration/sync/first-sync-time",
  "integration/exports/postgraphile",
  "integration/sync/damaged-answers",
  "integration/fleet/planted-secrets",
  "integration/fleet/held-for-days",
  "integration/proxy/fuzz-write-answers",
  "integration/replica/tenant-limits",
  "integration/control/failed-start",
  "integration/limiter/sent-once",
  "integration/sync/renewed-lease",
  "integration/postgres/tls",
  "browser/accounts",
  "integration/limiter/permit-liveness",
  "integration/sync/handover",
  "integration/control/operator",
  "integration/external/external-reading",
  "integration/replica/customer-objects",
  "integration/proxy/consistency",
  "integration/replica/damage",
  "integration/proxy/replica-reads-formulas",
  "integration/limiter/rate-limit-network",
  "integration/proxy/replica-reads",
  "integration/fleet/upgrade",
  "integration/fleet/starting-leases",
  "integration/sync/moved-names",
  "integration/proxy/repairs-of-gone-records",
  "integration/proxy/proxy-sql-header",
  "integration/control/database-roles",
  "browser/palette",
  "integration/live/live-history",
  "integration/replica/long-readers",
  "integration/console/cli",
  "integration/limiter/monthly-cap",
  "browser/public-pages",
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

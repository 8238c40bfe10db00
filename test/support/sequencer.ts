/**
 * Orders test files: the longest begin first, so that a run does not end with one of them alone. Files that share a
 * worker come last and together: a worker ends before a file of the other kind. All others keep vitest's order, which
 * uses the last durations, but on a fresh checkout only file sizes.
 */
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** The project of files that share a worker. */
export const SHARED_WORKERS = "shared-worker";

/** Files that take 45 seconds and more in a whole run on two cores: begun late, one of them would end it alone. */
const LONGEST = [
  "security/short",
  "chaos/short",
  "timelapse/short",
  "security/isolation-property",
  "integration/fleet/backpressure",
  "browser/onboarding",
  "browser/accounts",
  "browser/base-page",
  "integration/fleet/scaling",
  "integration/live/live-leases",
  "browser/live-and-budget",
  "matrix/short",
  "integration/sync/failing-tables",
  "integration/fleet/refused-changes",
  "integration/live/live-replicas",
  "browser/sql-and-schema",
  "integration/sync/catch-up",
  "integration/control/base-lifecycle",
  "integration/fleet/worker",
  "integration/fleet/quarantine",
  "integration/sync/bad-answers",
  "integration/fleet/selection",
  "integration/sync/settings-in-a-sync",
  "integration/postgres/failover",
  "integration/sync/replicate-bases",
  "integration/proxy/proxy-outages",
  "integration/proxy/trust",
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

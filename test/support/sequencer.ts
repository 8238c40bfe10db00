/**
 * The order of test files: those that take longest begin first, so that a run does not end in one of them alone. All
 * others follow as vitest orders them, which knows how long they took last time, but on a fresh checkout only their size.
 */
import { BaseSequencer, type TestSpecification } from "vitest/node";

/**
 * Most of a minute each, mostly of waiting; the longest first. The service of the first is five processes, and nothing
 * that it does may be late: those that begin with it need the least of the machine.
 */
const LONGEST = [
  "chaos/short",
  "integration/backpressure",
  "security/short",
  "browser/base-page",
  "integration/quarantine",
  "integration/live-replicas",
  "integration/trust",
  "integration/scaling",
  "browser/live-and-budget",
  "security/isolation-property",
  "integration/budget",
  "integration/live-killed",
  "integration/proxy-writes",
  "integration/live-consistency",
  "browser/accounts",
  "integration/proxy-outages",
  "integration/replicate-bases",
  "integration/worker",
  "integration/base-lifecycle",
  "integration/bad-answers",
  "integration/metrics",
  "integration/settings-in-a-sync",
  "integration/quota-ledger",
  "integration/proxy-limits",
  "integration/consistency",
  "integration/schema-changes",
  "integration/console-sign-in",
  "integration/proxy-history",
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

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
  "integration/budget",
  "integration/scaling",
  "integration/backpressure",
  "browser/base-page",
  "integration/live-replicas",
  "integration/live-killed",
  "integration/base-lifecycle",
  "integration/live-consistency",
  "integration/replicate-bases",
  "integration/worker",
  "integration/settings-in-a-sync",
  "integration/schema-changes",
  "browser/live-and-budget",
  "integration/console-sign-in",
  "integration/bad-answers",
  "integration/proxy-writes",
  "browser/accounts",
  "integration/consistency",
  "integration/proxy-outages",
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

/** When `_sync_meta` shows a sync as running, in a service that syncs all the time. */
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { type Base, updateSettings } from "../../../core/control/bases";
import { type Fleet, startFleet } from "../../support/fleet";
import { until } from "../../support/poll";

vi.setConfig({ testTimeout: 90_000, maxConcurrency: 2 });

let fleet: Fleet;
beforeAll(async () => {
  fleet = await startFleet({ sandbox: { settings: { rateLimitOff: true } } });
});
afterAll(() => fleet?.[Symbol.asyncDispose]());

async function scene(settings: Partial<Base["settings"]>) {
  const fields = [{ name: "Name", type: "singleLineText" as const }];
  const sourceId = fleet.sandbox.control.createBase({
    tables: [{ name: "Tasks", fields, records: [{ fields: { Name: "one" } }] }],
  });
  const base = await fleet.connect(sourceId, { live: false, ...settings });
  const reader = await fleet.reader(base);
  const meta = async () => {
    const [row] = await reader<
      { isRunning: boolean | null; completedAt: Date | null; isConsistent: boolean }[]
    >`
      select started_at > completed_at as "isRunning", completed_at as "completedAt",
        started_at > completed_at or completed_at - started_at = duration_last as "isConsistent"
      from _sync_meta`;
    return row!;
  };
  await until(async () => (await meta()).completedAt !== null, { what: "the first sync completes" });
  return { base, meta };
}

/** Looks at `_sync_meta` all the time until so many syncs have completed. @returns the part of the looks that saw one running */
async function partRunning(meta: Awaited<ReturnType<typeof scene>>["meta"], syncs: number): Promise<number> {
  const [seen, ends] = [[] as boolean[], new Set<number>()];
  await until(
    async () => {
      const { isRunning, completedAt } = await meta();
      ends.add(completedAt!.getTime());
      seen.push(isRunning!);
      return ends.size > syncs;
    },
    { what: `${syncs} syncs complete`, timeoutMs: 30_000, intervalMs: 5 },
  );
  return seen.filter(Boolean).length / seen.length;
}

test.concurrent.for(["sweep", "rapid"] as const)(
  "while %s syncs follow each other, one is running, and none in a base that is paused",
  async (mode) => {
    const { base, meta } = await scene({ rapid: mode === "rapid" });
    // Until the first sync has handed over to those that follow it.
    await partRunning(meta, 2);
    expect(await partRunning(meta, 4)).toBeGreaterThan(0.9);
    await updateSettings(fleet.ctx, base, { paused: true });
    await until(async () => !(await meta()).isRunning, { what: "no sync is running" });
    const paused = await meta();
    expect(paused.isConsistent).toBe(true);
    await updateSettings(fleet.ctx, base, { paused: false });
    await partRunning(meta, 2);
    expect(await partRunning(meta, 2)).toBeGreaterThan(0.9);
  },
);

test("no sync is running after the worker has stopped", async () => {
  const { meta } = await scene({});
  await partRunning(meta, 2);
  await fleet.workers[0]!.stop();
  expect(await meta()).toMatchObject({ isRunning: false, isConsistent: true });
});

/** How long a first sync takes, as a worker estimates it: the size of each table, from the source's answers. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { getBase, type Progress, recordWatched } from "../../../core/control/bases";
import {
  createDraft,
  finishDraft,
  getDraft,
  setDraftBase,
  setDraftDestination,
  setDraftKey,
} from "../../../core/control/onboarding";
import { type TimeRange, timeLeft } from "../../../core/control/status";
import { type Fleet, startFleet } from "../../support/fleet";
import { until } from "../../support/poll";

const SHARE = 3;
const SIZES = { Projects: 1900, Tasks: 900 };
const LARGE = 2500;

let fleet: Fleet;
beforeAll(async () => {
  fleet = await startFleet();
});
afterAll(() => fleet?.[Symbol.asyncDispose]());

/** A base with a large and a small table, unless other sizes are given; the large one comes first. */
function largeBase(sizes: Record<string, number> = SIZES): string {
  const tables = Object.entries(sizes).map(([name, size]) => ({
    name,
    fields: [{ name: "Name", type: "singleLineText" }],
    records: Array.from({ length: size }, (_, at) => ({ fields: { Name: `${name} ${at}` } })),
  }));
  return fleet.sandbox.control.createBase({ name: "Large", tables });
}

/** Follows the first sync of a base: its progress, the first range for the time left, and the tables as they are ready. */
async function follow(baseId: string) {
  const ready: string[] = [];
  let first: { atMs: number; range: TimeRange; progress: Progress } | undefined;
  let last: Progress | undefined;
  const isDone = async () => {
    const { progress, sync } = await getBase(fleet.ctx.db, baseId);
    if (progress) {
      last = progress;
      const now = new Date();
      const range = timeLeft(progress, SHARE, now);
      if (range && range.most > 0)
        first ??= { atMs: now.getTime() - Date.parse(progress.started_at), range, progress };
      for (const { source_name: name, done } of progress.tables)
        if (done && !ready.includes(name)) ready.push(name);
    }
    return sync !== null;
  };
  await until(isDone, { what: "the first sync is complete", timeoutMs: 120_000, intervalMs: 100 });
  const { sync } = await getBase(fleet.ctx.db, baseId);
  return { ready, first, last, endMs: sync!.durationMs };
}

function expectEstimated({ first, ready, endMs }: Awaited<ReturnType<typeof follow>>): void {
  const { atMs, range, progress } = first!;
  console.log(
    `after ${(atMs / 1000).toFixed(1)} s: ${range.least / 1000} to ${range.most / 1000} s left; it took ${(endMs / 1000).toFixed(1)} s`,
  );
  for (const { source_name: name, records_estimate: estimate, records_error: error = 0 } of progress.tables) {
    const size = SIZES[name as keyof typeof SIZES];
    expect(Math.abs(estimate! - size), `${name}: ${estimate} ± ${error}`).toBeLessThan(5 * error);
  }
  // The small one is last in the base.
  expect(ready[0]).toBe("Tasks");
}

test.concurrent("a base that was connected by the API is measured while it is read", async () => {
  const { id } = await fleet.connect(largeBase());
  expectEstimated(await follow(id));
}, 180_000);

test.concurrent("a base that was measured by the onboarding is not measured again", async () => {
  const { ctx, sandbox } = fleet;
  const source = largeBase();
  const account = (await ctx.db<{ id: string }[]>`select id from accounts limit 1`)[0]!.id;
  const draft = async () => getDraft(ctx.db, id, account);
  const { id } = await createDraft(ctx, account, "airtable");
  await setDraftKey(ctx, await draft(), sandbox.key);
  await setDraftBase(ctx, await draft(), source);
  expect((await draft()).size).toMatchObject({ tables: 2, isKnown: true });
  await setDraftDestination(ctx, await draft(), { kind: "new" });
  const listsBefore = filtered(source);
  expect(listsBefore).toBeGreaterThan(1);
  expectEstimated(await follow(await finishDraft(ctx, await draft())));
  expect(filtered(source)).toBe(listsBefore);
}, 180_000);

test.concurrent("a base with one large table is measured once its progress is shown", async () => {
  const { ctx } = fleet;
  const source = largeBase({ Projects: LARGE, Tasks: 150 });
  const { id } = await fleet.connect(source);
  const projects = async () => {
    const base = await getBase(ctx.db, id);
    return { base, table: base.progress?.tables.find(({ source_name: name }) => name === "Projects") };
  };
  const isFarther = async () => ((await projects()).table?.records_done ?? 0) >= 500;
  await until(isFarther, { what: "five pages are read", timeoutMs: 60_000 });
  expect(filtered(source)).toBe(0);
  expect((await projects()).table!.records_estimate).toBeNull();
  await recordWatched(ctx, (await projects()).base);
  const isEstimated = async () => (await projects()).table!.records_estimate !== null;
  await until(isEstimated, { what: "its size is estimated" });
  const { records_estimate: estimate, records_error: error } = (await projects()).table!;
  expect(Math.abs(estimate! - LARGE)).toBeLessThan(5 * error!);
}, 180_000);

/** The number of samples that the source was asked for. */
function filtered(baseId: string): number {
  return fleet.sandbox.control.log(baseId).filter((entry) => JSON.stringify(entry).includes("RECORD_ID"))
    .length;
}

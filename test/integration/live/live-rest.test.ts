/** Live mode ends while a base is at rest, and starts again with what a read of the feed reports. */
import { expect, onTestFinished, test, vi } from "vitest";
import { type LiveInput, liveBase, restUntilDue } from "../../../core/sync/modes/live";
import { liveTeams } from "../../support/live-teams";
import { until } from "../../support/poll";
import { teamRecord } from "../../support/teams";

vi.setConfig({ testTimeout: 60_000 });

/** A base in live mode that has nothing to do. */
async function restingTeams() {
  const scene = await liveTeams();
  await scene.running.over();
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const input: LiveInput = {
    ...scene.engine.liveInput(stop.signal, { schemaPollMs: 60_000 }),
    endsAtRest: true,
  };
  const completedAt = async () => {
    const [meta] = await scene.replica.replica.sql<{ at: Date }[]>`
      select completed_at as at from public._sync_meta`;
    return meta!.at;
  };
  return { ...scene, input, completedAt };
}

test("a base rests until the feed reports something, and live mode goes on from that read", async () => {
  const { engine, input, edit, equal, webhook, completedAt } = await restingTeams();
  const rest = (await liveBase(input))!;
  expect(rest.dueInMs()).toBeGreaterThan(60_000);
  const before = await completedAt();
  const resting = restUntilDue(input, rest);
  // A read without changes is in SQL, and the rest goes on.
  webhook.notifier.notify();
  await until(async () => (await completedAt()) > before, { what: "_sync_meta advances" });

  edit.teams.put(teamRecord("recT3", "Green"));
  const end = await resting;
  expect(end).toMatchObject({ isOver: false, first: { batch: { payloads: 1 } } });
  const reads = webhook.reads;
  void liveBase({ ...input, first: end.first }).catch(() => {});
  await engine.settled();
  await equal();
  expect(webhook.reads).toBe(reads);
});

test("a base is not at rest while its feed is being read", async () => {
  const { engine, input, edit, equal, webhook } = await restingTeams();
  const answered = Promise.withResolvers<void>();
  webhook.before = () => answered.promise;
  let hasEnded = false;
  const running = liveBase(input).then((rest) => {
    hasEnded = true;
    return rest;
  });
  webhook.notifier.notify();
  const reads = webhook.reads;
  // Longer than the loops wait until they check whether the base is at rest.
  await Bun.sleep(1500);
  expect(hasEnded).toBe(false);
  edit.teams.put(teamRecord("recT3", "Green"));
  answered.resolve();
  await engine.settled();
  await equal();
  expect(webhook.reads).toBeGreaterThan(reads);
  void running;
});

test("a rest ends when a schema check is requested, and with the lease", async () => {
  const { input, webhook } = await restingTeams();
  const rest = (await liveBase(input))!;
  let isOver = false;
  const resting = restUntilDue({ ...input, isOver: () => isOver }, rest);
  input.cache.schemaCheckRequestedAt = new Date();
  webhook.notifier.notify();
  expect(await resting).toEqual({ isOver: false });
  input.cache.schemaCheckRequestedAt = null;
  isOver = true;
  expect(await restUntilDue({ ...input, isOver: () => isOver }, rest)).toEqual({ isOver: true });
});

test.for([
  "drop view public.__sync_meta__",
  "drop table public._sync_meta cascade",
  "drop table public._sync_issues cascade",
])("a rest ends with the lease after %s, so that the next lease restores it", async (statement) => {
  const { input, replica, webhook } = await restingTeams();
  const rest = (await liveBase(input))!;
  const resting = restUntilDue(input, rest);
  await replica.replica.sql.unsafe(statement);
  webhook.notifier.notify();
  expect(await resting).toEqual({ isOver: true });
});

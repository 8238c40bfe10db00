/**
 * Live mode with any history of a base: whatever happens to its records, fields, tables and settings, between reads of
 * the feed and during its work, the result equals a replica built from scratch, and readers see only consistent states.
 * No sweep helps.
 *
 * HISTORIES=1000 runs more of them; SEED=… those of a run that failed, SEED_PATH=… only the one that did.
 */
import fc from "fast-check";
import { expect, test } from "vitest";
import { snakeCase } from "../../../core/replica";
import { testEngine } from "../../support/engine";
import { watchForHalves } from "../../support/half-tables";
import { type LiveEngine, liveEngine, type Running } from "../../support/live-engine";
import { slowness } from "../../support/machine-speed";
import { until } from "../../support/poll";
import { replicaState } from "../../support/replica-state";
import { ReportedChanges } from "../../support/reported-changes";
import { type History, histories, type Step, World } from "../../support/schema-history";

const HISTORIES = Number(process.env.HISTORIES ?? 12);
const PING_EVERY_MS = 100;
/** After the feed has been read and everything in it is durable: tables that are rebuilt, and grown settings. */
const LAST_MS = 60_000;

/** How the feed reports a step. */
function tell({ webhook }: LiveEngine, told: ReportedChanges, { pick }: Step): void {
  const payload = told.take();
  if (!payload) return;
  // Notifications are lost, and payloads repeated.
  webhook.tell(payload, pick % 3 > 0);
  if (pick % 5 === 0) webhook.tell(structuredClone(payload));
}

/** Runs the history in live mode, and waits until everything reported is durable. */
async function live(engine: LiveEngine, world: World, history: History): Promise<Running> {
  const { source, webhook } = engine;
  const told = new ReportedChanges(source);
  const happen = (step: Step) => {
    world.happen(step);
    tell(engine, told, step);
  };
  let settings = { ...world.settings };
  let running = engine.start({ settings });
  for (const steps of history) {
    webhook.atOnce = 1 + (steps[0]!.pick % 4);
    let request = 0;
    source.before = webhook.before = () => {
      for (const step of steps) if (step.during === request) happen(step);
      request++;
    };
    for (const step of steps) if (step.during === undefined) happen(step);
    if (world.isRestarted || !Bun.deepEquals(settings, world.settings)) {
      await running.stop();
      if (world.isRestarted) await engine.restart();
      world.isRestarted = false;
      settings = { ...world.settings };
      running = engine.start({ settings });
    }
    await settled(engine);
    source.before = webhook.before = () => {};
  }
  if (!Bun.deepEquals(settings, world.settings)) {
    await running.stop();
    running = engine.start({ settings: { ...world.settings } });
  }
  await settled(engine);
  return running;
}

/** Records that are read after their field was deleted, and before its column is dropped, have no value in it. */
function isDoomed({ deleted }: World, column: string): boolean {
  return [...deleted].some((name) => column.startsWith(snakeCase(name) || "field"));
}

/** A lost notification is followed by another one eventually. */
async function settled(engine: LiveEngine): Promise<void> {
  const timer = setInterval(() => engine.webhook.notifier.notify(), PING_EVERY_MS);
  await engine.settled().finally(() => clearInterval(timer));
}

test("after any history of edits, schema changes and settings in live mode, the replica equals one built from scratch, and readers see consistent states", {
  timeout: (60_000 + HISTORIES * 12_000) * slowness(),
  tags: "once",
}, async () => {
  let reads = 0;
  const isLike = fc.asyncProperty(histories, async (history) => {
    await using engine = await liveEngine();
    const world = new World(engine.source);
    await engine.sync();
    const watcher = watchForHalves(engine.replica.readerUrl, (column) => isDoomed(world, column));
    let running: Running;
    try {
      running = await live(engine, world, history);
    } finally {
      await watcher.stop();
    }
    reads += watcher.reads;
    expect(watcher.wrong).toEqual([]);

    await using fresh = await testEngine({ source: engine.source });
    const built = await fresh.sync({ settings: { ...world.settings } });
    expect(built.error).toBeUndefined();
    const { tables } = await replicaState(fresh.replica);
    // A table whose build was given up is dropped soon.
    const isEqual = async () => {
      const state = await replicaState(engine.replica);
      return Bun.deepEquals(state.tables, tables) && state.strays.length === 0;
    };
    // The difference itself says more than its existence.
    await until(isEqual, { what: "both are equal", timeoutMs: LAST_MS, intervalMs: 50 }).catch(() => {});
    const lived = await replicaState(engine.replica);
    expect(lived.tables).toEqual(tables);
    expect(lived.strays).toEqual([]);
    await running.stop();
  });
  const seed = process.env.SEED ? { seed: Number(process.env.SEED) } : {};
  const path = process.env.SEED_PATH ? { path: process.env.SEED_PATH } : {};
  await fc.assert(isLike, { numRuns: HISTORIES, endOnFailure: !process.env.SEED, ...seed, ...path });
  expect(reads).toBeGreaterThan(HISTORIES * 10);
});

/**
 * Any history of a base, synced step by step, ends in the replica that a first sync of the end state creates, and
 * readers see only consistent states.
 *
 * HISTORIES=1000 runs more of them; SEED=… those of a run that failed.
 */
import fc from "fast-check";
import { expect, test } from "vitest";
import { snakeCase } from "../../../core/replica";
import { type Engine, testEngine } from "../../support/engine";
import { watchForHalves } from "../../support/half-tables";
import { slowness } from "../../support/machine-speed";
import { replicaState } from "../../support/replica-state";
import { type History, histories, type Step, World } from "../../support/schema-history";

const HISTORIES = Number(process.env.HISTORIES ?? 12);

const step = (kind: Step["kind"], table = 0, pick = 0, during?: number): Step => ({
  kind,
  table,
  field: 0,
  pick,
  during,
});
/** A field is deleted while its table's records are read, and the table when the source is asked whether the field is gone. */
const FIELD_DELETED_THEN_TABLE: History = [
  [step("create")],
  [step("delete table", 0, 0, 6), step("delete field", 0, 0, 3)],
  [step("create")],
];
/** A table that gets a column is renamed while its records are read, because the schema is read again for another table. */
const RENAMED_WHILE_FILLED: History = [
  [step("rename table", 0, 102, 1), step("delete field", 1), step("add field"), step("create")],
  [step("create")],
  [step("create")],
  [step("create")],
];

async function live(engine: Engine, world: World, history: History): Promise<void> {
  const { source } = engine;
  for (const steps of history) {
    for (const step of steps) if (step.during === undefined) world.happen(step);
    let request = 0;
    source.before = () => {
      for (const step of steps) if (step.during === request) world.happen(step);
      request++;
    };
    if (world.isRestarted) await engine.restart();
    world.isRestarted = false;
    // One that fails (too much has changed meanwhile) is retried, as a worker does.
    await engine.sync({ settings: { ...world.settings } });
    source.before = () => {};
  }
  const last = await engine.sync({ settings: { ...world.settings } });
  expect(last).toMatchObject({ completedAt: expect.any(Date) });
}

test("after any history of edits, schema changes and settings, the replica equals one built from scratch, and readers see consistent states", {
  timeout: (60_000 + HISTORIES * 8000) * slowness(),
  tags: "once",
}, async () => {
  let reads = 0;
  const isLike = fc.asyncProperty(histories, async (history) => {
    await using engine = await testEngine();
    const world = new World(engine.source);
    await engine.sync();
    const watcher = watchForHalves(engine.replica.readerUrl);
    try {
      await live(engine, world, history);
    } finally {
      await watcher.stop();
    }
    // What a reader locked at the last sync is left to the next.
    await engine.sync({ settings: { ...world.settings } });
    reads += watcher.reads;
    expect(watcher.wrong).toEqual([]);

    await using fresh = await testEngine({ source: engine.source });
    await fresh.sync({ settings: { ...world.settings } });
    const [lived, built] = [await replicaState(engine.replica), await replicaState(fresh.replica)];
    expect(lived.tables).toEqual(built.tables);
    expect(lived.strays).toEqual([]);
    // Names are kept: the first owner keeps a name. Except for its number, it is derived from the source's name.
    for (const { table } of engine.source.tables) {
      expect(bare(lived.names[table.id]!)).toBe(bare(snakeCase(table.name) || "table"));
      for (const field of table.fields) {
        expect(bare(lived.names[`${table.id} ${field.id}`]!)).toBe(bare(snakeCase(field.name) || "field"));
      }
    }
  });
  const seed = process.env.SEED ? { seed: Number(process.env.SEED) } : {};
  const examples: [History][] = [[RENAMED_WHILE_FILLED], [FIELD_DELETED_THEN_TABLE]];
  await fc.assert(isLike, { numRuns: HISTORIES, endOnFailure: !process.env.SEED, examples, ...seed });
  expect(reads).toBeGreaterThan(HISTORIES * 10);
});

function bare(name: string): string {
  return name.replace(/(_\d+)*_?(_\d+)*$/, "");
}

/**
 * Readers during a storm of schema changes. The long form: STORM_CHANGES=1000 STORM_READERS=20 STORM_SEED=7.
 */
import { expect, test } from "vitest";
import { loadCatalog } from "../../../core/replica";
import { type Engine, type SyncOptions, testEngine } from "../../support/engine";
import { NameStorm } from "../../support/name-storm";
import { whileReading } from "../../support/storm-readers";

const CHANGES = Number(process.env.STORM_CHANGES ?? 60);
const READERS = Number(process.env.STORM_READERS ?? 5);
const SEED = Number(process.env.STORM_SEED ?? 1);
const TIMEOUT_MS = 60_000 + CHANGES * 1000;

/** SQL names of tables and columns, by the source's ids. */
async function namesOf({ replica }: Engine): Promise<Map<string, { table: string; column?: string }>> {
  const specs = [...(await loadCatalog(replica.replica)).values()].map(({ spec }) => spec);
  return new Map(
    specs.flatMap(({ tableId, name: table, columns }) => [
      [tableId, { table }] as const,
      ...columns.map(({ fieldId, name }) => [fieldId, { table, column: name }] as const),
    ]),
  );
}

async function syncWell(engine: Engine, options: SyncOptions): Promise<void> {
  for (let tries = 0; ; tries++) {
    const { error } = await engine.sync(options);
    if (!error) return;
    // A reader held a table for too long: the next sync changes it.
    if (error.code !== "replica_busy" || tries === 20) throw error;
  }
}

test("pinned names never move, and no reader of them meets an error", {
  timeout: TIMEOUT_MS,
}, async () => {
  const engine = await testEngine({ emptySpellMs: 0 });
  const storm = new NameStorm(engine.source, SEED);
  const options = { settings: { pinnedNames: true } };
  await engine.sync(options);
  const given = await namesOf(engine);
  const queries = [...given].flatMap(([, { table, column }]) => [
    column ? `select id, ${column} from ${table} where ${column} is not null` : `select * from ${table}`,
  ]);
  const answered = await whileReading(
    engine.replica.readerUrl,
    READERS,
    () => queries,
    async (check) => {
      for (let change = 0; change < CHANGES; change++) {
        storm.step();
        if (change % 3 !== 2 && change < CHANGES - 1) continue;
        await syncWell(engine, options);
        for (const [id, name] of await namesOf(engine)) {
          expect([id, given.get(id) ?? name]).toEqual([id, name]);
          given.set(id, name);
        }
        check();
      }
    },
  );
  expect(answered).toBeGreaterThan(CHANGES);
  // Every name that was ever given belongs to one table or field.
  const places = [...given.values()].map(({ table, column = "" }) => `${table}.${column}`);
  expect(new Set(places).size).toBe(places.length);
});

/**
 * Readers during a storm of schema changes. The long form: STORM_CHANGES=1000 STORM_READERS=20 STORM_SEED=7.
 */
import { expect, test } from "vitest";
import { applySettings, loadAliases, loadCatalog } from "../../../core/replica";
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

/** A base with room for all readers: a role has few connections. */
async function stormyEngine(): Promise<Engine> {
  const engine = await testEngine({ emptySpellMs: 0 });
  const { replica, role } = engine.replica;
  await replica.sql.unsafe(`alter role ${role} connection limit ${READERS + 2}`);
  return engine;
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
  const engine = await stormyEngine();
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

test("where names follow, every old name of a field that exists answers, and is there once", {
  timeout: TIMEOUT_MS,
}, async () => {
  const engine = await stormyEngine();
  const { replica } = engine.replica;
  const storm = new NameStorm(engine.source, SEED, { tablesAreUnique: true });
  await applySettings(replica, engine.input().epoch, { history: false, notify: false, aliasDays: 7 });
  /** Who had each name last: by the table's id and the name, or by a table's name. */
  const holders = new Map<string, string>();
  let queries: string[] = [];
  const look = async () => {
    const specs = [...(await loadCatalog(replica)).values()].map(({ spec }) => spec);
    const known = await loadAliases(replica);
    const taken = new Set(
      specs.flatMap(({ tableId, name, columns }) => [
        `/${name}`,
        ...columns.map((column) => `${tableId}/${column.name}`),
      ]),
    );
    const places = known.map(({ tableId, fieldId, name }) => `${fieldId ? tableId : ""}/${name}`);
    expect(new Set(places).size).toBe(places.length);
    expect(places.filter((place) => taken.has(place))).toEqual([]);
    const present = new Set<string>();
    for (const { tableId, name, columns } of specs) {
      present.add(tableId);
      holders.set(`/${name}`, tableId);
      for (const column of columns) {
        present.add(column.fieldId);
        holders.set(`${tableId}/${column.name}`, column.fieldId);
      }
    }
    const found = new Map(
      known.map(({ tableId, fieldId }, index) => [places[index]!, fieldId ?? tableId] as const),
    );
    for (const [place, id] of holders)
      if (present.has(id) && !taken.has(place)) expect([place, found.get(place)]).toEqual([place, id]);
    // Only those that stay: a name ends with its field.
    queries = specs
      .filter(({ tableId }) => storm.kept.has(tableId))
      .flatMap(({ tableId, name: table, columns }) => {
        const old = known.filter((alias) => alias.tableId === tableId);
        const tables = [table, ...old.filter(({ fieldId }) => !fieldId).map(({ name }) => name)];
        const names = [
          ...columns.filter(({ fieldId }) => storm.kept.has(fieldId)),
          ...old.filter(({ fieldId }) => fieldId && storm.kept.has(fieldId)),
        ].map(({ name }) => `"${name}"`);
        return tables.map((from) => `select id, ${names.join(", ")} from "${from}"`);
      });
  };
  await engine.sync();
  await look();
  const answered = await whileReading(
    engine.replica.readerUrl,
    READERS,
    () => queries,
    async (check) => {
      for (let change = 0; change < CHANGES; change++) {
        storm.step();
        if (change % 3 !== 2 && change < CHANGES - 1) continue;
        await syncWell(engine, {});
        await look();
        check();
      }
    },
  );
  expect(answered).toBeGreaterThan(CHANGES);
});

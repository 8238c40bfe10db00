import { expect, test } from "vitest";
import { BaseCache, evictFingerprints, type TableCache, tableCache } from "../../core/sync/state";

const MINUTE_MS = 60_000;

/** A table with this many known records. */
function known(cache: BaseCache, tableId: string, records: number): TableCache {
  const spec = { tableId, name: tableId, sourceName: tableId, columns: [] };
  const table = tableCache(cache, { spec, shape: 1 });
  table.fingerprints.beginScan();
  for (let index = 0; index < records; index++) table.fingerprints.learn(`rec${index}`, BigInt(index + 1));
  table.isComplete = true;
  return table;
}

const bytesOf = (tables: TableCache[]) => tables.reduce((sum, table) => sum + table.fingerprints.bytes, 0);

test("within the limit, nothing is evicted", () => {
  const cache = new BaseCache(1);
  const table = known(cache, "tbl1", 1000);
  const { bytes } = table.fingerprints;
  expect(evictFingerprints([cache], bytes)).toEqual({ bytes, evicted: 0 });
  expect(table.fingerprints.size).toBe(1000);
});

test("beyond the limit, the tables that have not been swept for longest lose theirs, and are compared in SQL next", () => {
  const [resting, busy] = [new BaseCache(1), new BaseCache(1)];
  const old = known(resting, "tblOld", 1000);
  const restedAt = performance.now();
  const recent = known(busy, "tblNew", 1000);
  // Both were swept a moment ago; an hour later, only one has been swept again.
  recent.fingerprints.restMs = () => MINUTE_MS;
  const limit = bytesOf([old, recent]) - 1;
  const { bytes, evicted } = evictFingerprints([resting, busy], limit, restedAt + 60 * MINUTE_MS);
  expect([evicted, old.fingerprints.size, old.isComplete]).toEqual([1, 0, false]);
  expect([recent.fingerprints.size, recent.isComplete]).toEqual([1000, true]);
  expect(bytes).toBe(recent.fingerprints.bytes);
});

test("a table that is being swept keeps its fingerprints, whatever the limit", () => {
  const cache = new BaseCache(1);
  const table = known(cache, "tbl1", 1000);
  {
    using _ = table.fingerprints.hold();
    expect(evictFingerprints([cache], 1).evicted).toBe(0);
  }
  expect(evictFingerprints([cache], 1)).toEqual({ bytes: 0, evicted: 1 });
});

test("if all tables are swept as often, the same ones are evicted each time", () => {
  const cache = new BaseCache(1);
  const ids = Array.from({ length: 10 }, (_, index) => `tbl${index}`);
  for (const id of ids) known(cache, id, 1000).fingerprints.restMs = () => MINUTE_MS;
  const limit = bytesOf([...cache.tables.values()]) * 0.8;
  const victims = new Set<string>();
  for (let round = 0; round < 20; round++) {
    evictFingerprints([cache], limit);
    // The next sweep of each reads all of its records.
    for (const [id, table] of cache.tables) {
      if (table.fingerprints.evictions > 0) victims.add(id);
      known(cache, id, 1000);
    }
  }
  expect(victims.size).toBe(2);
});

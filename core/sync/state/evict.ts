/**
 * Bounds the memory that the fingerprints of all bases of a worker take.
 *
 * An eviction costs one comparison in SQL of each record of the table, by its next sweep. So the tables that are swept
 * least often lose theirs first: bases at rest, which read a table once in hours. If tables that are swept all the time
 * exceed the limit alone, it is always the same ones that lose theirs, not all of them in turn.
 */
import type { BaseCache, TableCache } from "./base-cache";

/**
 * Evicts fingerprints until those of all caches take at most `mostBytes`. Tables that are being swept keep theirs.
 *
 * @returns the bytes that they take afterwards, and the number of tables whose fingerprints were evicted
 */
export function evictFingerprints(
  caches: Iterable<BaseCache>,
  mostBytes: number,
  nowMs = performance.now(),
): { bytes: number; evicted: number } {
  const all: TableCache[] = [];
  let bytes = 0;
  for (const { tables } of caches) {
    for (const table of tables.values()) {
      if (table.fingerprints.bytes === 0) continue;
      bytes += table.fingerprints.bytes;
      all.push(table);
    }
  }
  if (bytes <= mostBytes) return { bytes, evicted: 0 };
  let evicted = 0;
  for (const table of leastUsed(all, nowMs)) {
    if (bytes <= mostBytes) break;
    bytes -= table.fingerprints.bytes;
    table.fingerprints.evict();
    table.isComplete = false;
    evicted++;
  }
  return { bytes, evicted };
}

/** Orders tables that are not being swept by how often they are, and then by how often they were evicted. */
function leastUsed(tables: TableCache[], nowMs: number): TableCache[] {
  const use = (table: TableCache) => Math.floor(Math.log2(Math.max(1, table.fingerprints.restMs(nowMs))));
  return tables
    .filter(({ fingerprints }) => !fingerprints.isHeld)
    .map((table) => ({ table, use: use(table) }))
    .toSorted((a, b) => b.use - a.use || b.table.fingerprints.evictions - a.table.fingerprints.evictions)
    .map(({ table }) => table);
}

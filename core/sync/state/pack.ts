/**
 * Makes the cache of a base small while the base rests. What decides whether rows have changed stays: fingerprints,
 * cursors and times. The schema is compressed; the catalog and the mappings from records to rows are made again from
 * the replica's catalog, which live mode reads when it starts.
 */
import type { SourceSchema } from "../../source";
import type { BaseCache } from "./base-cache";

const packedMap = () => {
  throw new Error("the mapping of a table was used during a rest");
};

/** Every sync calls `unpackCache` when it starts. */
export function packCache(cache: BaseCache): void {
  cache.catalog = null;
  for (const table of cache.tables.values()) {
    const { shape, spec } = table.live;
    const { tableId, name, sourceName } = spec;
    table.live = { shape, spec: { tableId, name, sourceName, columns: [] } };
    table.map = packedMap;
    table.pages = [];
    table.isPacked = true;
  }
  if (!cache.schema) return;
  cache.packedSchema = Bun.zstdCompressSync(JSON.stringify(cache.schema));
  cache.schema = null;
}

export function unpackCache(cache: BaseCache): void {
  const { packedSchema } = cache;
  cache.packedSchema = null;
  // A sync for a client's write may have read it meanwhile.
  if (!packedSchema || cache.schema) return;
  cache.schema = JSON.parse(Bun.zstdDecompressSync(packedSchema).toString()) as SourceSchema;
}

/** Measures a base before its first sync, with a few calls: the source does not report how many records there are. */
import type { Db } from "../../context";
import { isBasetideError } from "../../errors";
import type { MeteredSource } from "../../limiter";
import { estimateSize, type PlatformFacts, type SourceTable, strictest, type TableSize } from "../../source";

/** Tables whose first page is read: a call each, and the user waits. */
const MEASURED_TABLES = 10;
/** How long a person waits for what is optional: that larger tables are sampled, and some checks of a key. */
export const OPTIONAL_PATIENCE_MS = 4000;

export interface BaseSize {
  tables: number;
  /** At least this many, unless `isKnown`; otherwise with this standard error, 0 if they were counted. */
  records: number;
  error: number;
  /** Calls that read all tables once. */
  calls: number;
  /** False if a table was neither counted nor estimated: there may be many more records. */
  isKnown: boolean;
  /** Of the tables that were counted or estimated, by id. */
  sizes: Record<string, TableSize>;
}

/** The base as its key reaches it. */
interface Measured {
  source: MeteredSource;
  sourceBaseId: string;
  sample: PlatformFacts["sample"];
  signal: AbortSignal;
}

/**
 * Reads the first page of the first tables, and estimates the size of those that have more pages.
 *
 * @throws BasetideError the source's error for the first table; if another one cannot be read, it is not counted
 */
export async function measureBase(of: Measured, tables: SourceTable[]): Promise<BaseSize> {
  const sampling = AbortSignal.any([of.signal, AbortSignal.timeout(OPTIONAL_PATIENCE_MS)]);
  const sizes: BaseSize["sizes"] = {};
  let isKnown = tables.length <= MEASURED_TABLES;
  let [records, calls] = [0, Math.max(0, tables.length - MEASURED_TABLES)];
  const measured = tables.slice(0, MEASURED_TABLES).map(async (table, index) => {
    const size = await measureTable(of, table, sampling).catch((error: unknown) => {
      if (index === 0 || !isBasetideError(error)) throw error;
      return { least: 0 };
    });
    if ("least" in size) isKnown = false;
    else sizes[table.id] = size;
    const found = "least" in size ? size.least : size.records;
    records += found;
    calls += callsOf(found);
  });
  await Promise.all(measured);
  const error = Math.sqrt(Object.values(sizes).reduce((sum, one) => sum + one.error ** 2, 0));
  return { tables: tables.length, records, error: Math.round(error), calls, isKnown, sizes };
}

/** Returns what the onboarding found out about the tables of a base, by id; nothing if only a part of it is copied. */
export async function measuredSizes(db: Db, baseId: string): Promise<BaseSize["sizes"]> {
  const [draft] = await db<{ sizes: BaseSize["sizes"] | null }[]>`
    select source_size -> 'sizes' as sizes from base_drafts where base_id = ${baseId} and selection is null limit 1`;
  return draft?.sizes ?? {};
}

async function measureTable(
  { source, sourceBaseId, sample, signal }: Measured,
  table: SourceTable,
  sampling: AbortSignal,
): Promise<TableSize | { least: number }> {
  // Records are only counted, so no other cell is transferred: people have not chosen yet what is copied.
  const part = { fields: [table.primaryFieldId] };
  const list = (filter?: string, offset?: string, within = signal) =>
    source.send((connection) =>
      connection.listPage(sourceBaseId, table, { ...part, filter, offset }, within),
    );
  const page = await list();
  if (page.offset === undefined) return { records: page.size, error: 0 };
  const least = page.size + 1;
  if (!sample) return { least };
  const ids = Array.from({ length: page.size }, (_, index) => page.id(index));
  try {
    const { records, error } = await estimateSize(sample, ids, (...asked) => list(...asked, sampling));
    return { records: Math.max(records, least), error };
  } catch (error) {
    if (!isBasetideError(error) && !sampling.aborted) throw error;
    return { least };
  }
}

function callsOf(records: number): number {
  return Math.max(1, Math.ceil(records / strictest().pageSize));
}

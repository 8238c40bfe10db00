/**
 * Estimates the sizes of tables that have more than two pages, where that is of use: for their order, if several such tables
 * are read, and for the time that is left, once a page has shown the progress.
 */
import { linkedAbort } from "../../async";
import { estimateSize, type PlatformFacts, type SourceTable, type TableSize } from "../../source";
import { metered, type Reader } from "./reader";

interface Estimating {
  /** Undefined: the platform has no sample. */
  sample?: PlatformFacts["sample"];
  /** Returns whether people look at the progress; absent: they do not. */
  isWatched?: () => boolean;
  /** Returns whether the sync has nothing to do for the table any longer. */
  isDone: (tableId: string) => boolean;
  onEstimate: (tableId: string, size: TableSize) => void;
}

/**
 * The requests share the rate limit with those that read the tables; they end when this is disposed of.
 *
 * @param known the tables whose sizes are known, by id
 */
export function sizeEstimates(
  { sample, isWatched = () => false, isDone, onEstimate }: Estimating,
  reader: Reader,
  known: ReadonlyMap<string, TableSize>,
) {
  const over = linkedAbort(reader.stop);
  /** The tables with more than two pages, by id, and those that were not sampled yet, with ids of some of their records. */
  const large = new Set<string>();
  const unknown = new Map<SourceTable, string[]>();
  // A failure is not the base's: the requests that read the table find out.
  const asking = {
    ...reader,
    stop: over.signal,
    kill: over.signal,
    onFailure: undefined,
    mayTryAgain: () => false,
  };
  function estimate(table: SourceTable, ids: string[]): void {
    const list = (filter: string, offset: string | undefined) =>
      metered(asking).send((connection, signal) => {
        const part = { filter, offset, fields: [table.primaryFieldId] };
        return connection.listPage(reader.sourceBaseId, table, part, signal);
      });
    const estimated = estimateSize(sample!, ids, list).then((size) => onEstimate(table.id, size));
    estimated.catch((error: unknown) => {
      reader.log.debug({ error, tableId: table.id }, "estimating a table's size failed");
    });
  }
  return {
    onSecondPage(table: SourceTable, ids: string[]): void {
      if (!large.has(table.id) && !known.has(table.id)) unknown.set(table, ids);
      large.add(table.id);
    },
    /** To be called with each page: asks for the sizes that are of use by now. */
    estimate(): void {
      if (!sample || unknown.size === 0) return;
      const open = [...large].filter((id) => !isDone(id));
      if (open.length < 2 && !isWatched()) return;
      for (const [table, ids] of unknown) {
        unknown.delete(table);
        if (!isDone(table.id)) estimate(table, ids);
      }
    },
    [Symbol.dispose]() {
      over.abort();
      over[Symbol.dispose]();
    },
  };
}

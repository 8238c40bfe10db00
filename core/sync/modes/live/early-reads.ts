/**
 * Reads the records that a notification is probably about while the feed is asked what it is about: an edit is in SQL after one
 * answer of the source instead of two.
 *
 * They are the latest modified records of a table that the feed has named twice in a row. Of them, only those count that the feed
 * names.
 * L5. An image counts as a read after the change if the feed names the record once, and all cells that changed are in the image as
 *     the feed tells them. An image from before the change would have another cell there: the feed names everything in between, too.
 *     All other records are read as if there had been no early read.
 */
import { linkedAbort } from "../../../async";
import type { ChangeFeed } from "../../../source";
import { metered, OVERLAP_MS, type Reader, type SchemaTracker } from "../../engine";
import type {
  BaseCache,
  DirtyBatch,
  DirtyRecord,
  EarlyImage,
  EditedTables,
  VersionedPage,
} from "../../state";

interface EarlySetting {
  /** Its requests go behind those of the feed. */
  reader: Reader;
  schemaTracker: Pick<SchemaTracker, "table">;
  cache: Pick<BaseCache, "failing" | "sourceClock">;
  editedTables: EditedTables;
  /** The platform's filter. */
  modifiedSince: (sinceMs: number) => string;
}

/** An early read that has begun. */
export interface EarlyRead {
  tableId: string;
  answer: EarlyImage["answer"];
  /**
   * The feed has been read, so records wait for this read: for as long again, in which they would be read otherwise. If it still
   * waits for a permit, it is not made: where permits are scarce, it takes none from others.
   */
  feedIsRead(): void;
}

/** @returns undefined if no table can be expected to have the changes that a notification is about */
export function beginEarlyRead(setting: EarlySetting): EarlyRead | undefined {
  const { reader, schemaTracker, cache, editedTables, modifiedSince } = setting;
  const tableId = editedTables.expected;
  const sourceMs = cache.sourceClock.now();
  if (tableId === undefined || sourceMs === undefined) return undefined;
  const { source, live, rebuild } = schemaTracker.table(tableId);
  if (!source || !live || rebuild || cache.failing.has(tableId)) return undefined;
  const begunAt = performance.now();
  const abort = linkedAbort(reader.stop);
  let isSent = false;
  const { promise: answer, resolve } = Promise.withResolvers<VersionedPage | undefined>();
  const asking = { ...reader, stop: abort.signal, mayTryAgain: () => false };
  const filter = modifiedSince(sourceMs - OVERLAP_MS);
  const ask = async () => {
    reader.readVersions.renew();
    const readVersion = await reader.readVersions.current();
    const page = await metered(asking, "records").send((connection, signal) => {
      isSent = true;
      return connection.listPage(reader.sourceBaseId, source, { filter }, signal);
    });
    return { page, readVersion };
  };
  void ask()
    .then(resolve, (error) => {
      // The records are read by id, which finds out what is wrong.
      reader.log.debug({ error, tableId }, "an early read failed");
      resolve(undefined);
    })
    .finally(() => abort[Symbol.dispose]());
  const giveUp = () => {
    editedTables.recordSlow(tableId);
    resolve(undefined);
  };
  return {
    tableId,
    answer,
    feedIsRead() {
      if (!isSent) return abort.abort();
      const timer = setTimeout(giveUp, performance.now() - begunAt);
      void answer.then(() => clearTimeout(timer));
    },
  };
}

/** Some records of a page. */
export interface PageImages extends VersionedPage {
  indices: number[];
}

/** Returns the images of records of the batch that need not be read again (L5). */
export async function earlyImages(
  { entries }: DirtyBatch,
  isAsTold: ChangeFeed["isAsTold"],
): Promise<PageImages[]> {
  const early = [...entries].filter(([, entry]) => entry.early);
  const images: PageImages[] = [];
  for (const [answer, named] of Map.groupBy(early, ([, entry]) => entry.early!.answer)) {
    const versioned = await answer;
    if (!versioned) continue;
    const { page } = versioned;
    const places = new Map(Array.from({ length: page.size }, (_, index) => [page.id(index), index]));
    const indices = named.flatMap(([id, entry]) => {
      const index = places.get(id);
      return index !== undefined && isShown(page.record(index).fields, entry, isAsTold) ? [index] : [];
    });
    if (indices.length > 0) images.push({ ...versioned, indices });
  }
  return images;
}

function isShown(
  cells: Record<string, unknown>,
  { fields, early }: DirtyRecord,
  isAsTold: ChangeFeed["isAsTold"],
): boolean {
  return fields !== null && [...fields].every((id) => isAsTold(cells[id], early!.told[id]));
}

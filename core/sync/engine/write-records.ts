/**
 * Writes records of the source into a live table, under the names and with the shape that it has at that moment, and
 * stores their fingerprints.
 *
 * I6. Records whose cells the schema does not explain are read again before they are written.
 */
import { BasetideError, isBasetideError } from "../../errors";
import {
  type Applied,
  applyRowImages,
  type CellIssue,
  dropFullIndexes,
  mapRecords,
  onlyAddsColumns,
  type RowImageBatch,
} from "../../replica";
import type { SourceRecord } from "../../source";
import { MANY_TRIES } from "../pacing";
import { fingerprintIn, type TableCache, tableCache, type VersionedPage } from "../state";
import { metered } from "./reader";
import { checkSchema, withSecondRead } from "./schema-check";
import type { Sweep } from "./sweep";
import { inWriteTurn } from "./write-turns";

/** What is needed to write records into a live table. */
type Writing = Pick<Sweep, "replica" | "reader" | "epoch" | "schemaTracker" | "cache" | "isWithoutNew">;

/** What became of records that were to be written. */
type Written = Pick<Applied, "inserted" | "updated" | "lost">;

/**
 * Writes these records of a page and stores their fingerprints. A record that lost is compared when it is next seen. If
 * the schema does not explain their cells, the records are read again; those that are gone by then count as lost.
 *
 * @throws BasetideError `source_schema_changed` when the table's schema has changed
 */
export function applyRecords(
  writing: Writing,
  table: TableCache,
  versioned: VersionedPage,
  indices: number[],
): Promise<Written> {
  return withSecondRead(
    () => applyAsRead(writing, table, versioned, indices),
    () =>
      applyAgain(
        writing,
        table,
        indices.map((index) => versioned.page.id(index)),
      ),
  );
}

/** Reads these records again, and writes them. */
async function applyAgain(writing: Writing, table: TableCache, ids: string[]): Promise<Written> {
  const written: Written = { inserted: 0, updated: 0, lost: [] };
  const absent = new Set(ids);
  for (const versioned of await readAgain(writing, table.live.spec.tableId, ids)) {
    const indices = Array.from({ length: versioned.page.size }, (_, index) => index);
    const { inserted, updated, lost } = await applyAsRead(writing, table, versioned, indices, true);
    written.inserted += inserted;
    written.updated += updated;
    written.lost.push(...lost);
    for (const index of indices) absent.delete(versioned.page.id(index));
  }
  for (const id of absent) table.fingerprints.expect(id);
  written.lost.push(...absent);
  return written;
}

/** Requests records by their ids, with a new read version. */
export async function readAgain(
  { reader, schemaTracker }: Pick<Writing, "reader" | "schemaTracker">,
  tableId: string,
  ids: string[],
): Promise<VersionedPage[]> {
  const { source } = schemaTracker.table(tableId);
  if (!source) throw schemaChanged(tableId);
  reader.readVersions.renew();
  const readVersion = await reader.readVersions.current();
  const pages = await metered(reader).listByIds(source, ids);
  return pages.map((page) => ({ page, readVersion }));
}

/**
 * Writes these records as the page has them.
 *
 * @param isReadAgain see `checkSchema`
 * @throws BasetideError `source_schema_changed` when the table's schema has changed
 * @throws UnexplainedCells unless `isReadAgain`
 */
export async function applyAsRead(
  writing: Writing,
  table: TableCache,
  { page, readVersion }: VersionedPage,
  indices: number[],
  isReadAgain = false,
): Promise<Written> {
  if (indices.length === 0) return { inserted: 0, updated: 0, lost: [] };
  const loggedBefore = table.loggedUpTo;
  const { onWrite } = writing.reader;
  const work = async () => {
    const records = indices.map((index) => page.record(index));
    const { inserted, updated, lost } = await writeRecords(writing, table, records, readVersion, isReadAgain);
    const isLost = new Set(lost);
    // The recent-writes log was read meanwhile, and may have shown a later image than this one.
    const isDoubtful = table.loggedUpTo !== loggedBefore;
    for (const index of indices) {
      const id = page.id(index);
      if (isDoubtful || isLost.has(id)) table.fingerprints.expect(id);
      else table.fingerprints.learn(id, fingerprintIn(table, page, index));
    }
    return { inserted, updated, lost };
  };
  const isFailing = writing.cache.failing.has(table.live.spec.tableId);
  // What waits for this table does not wait for its turn.
  if (isFailing) onWrite?.(false);
  return await inWriteTurn(writing.replica, work, isFailing).finally(() => onWrite?.(true));
}

/** Writes records into the table, under the names that it has at that moment. */
function writeRecords(
  writing: Writing,
  known: TableCache,
  records: SourceRecord[],
  readVersion: number,
  isReadAgain: boolean,
): Promise<Applied> {
  return onLiveTable(writing, known, async (table) => {
    const issues: CellIssue[] = [];
    const rows = mapRecords(table.map, records, issues);
    await checkSchema(writing, table.live.spec, records, issues, isReadAgain);
    const images: RowImageBatch = { epoch: writing.epoch, readVersion, rows, gone: [], issues };
    return writing.isWithoutNew ? { ...images, records } : images;
  });
}

/**
 * Removes records that are gone from the source, and enters all of them into the recent-writes log, whether or not
 * they had rows.
 *
 * @returns the number of deleted rows, and the records that lost
 * @throws BasetideError `source_schema_changed` when the table's schema has changed
 */
export async function removeRecords(
  writing: Writing,
  table: TableCache,
  gone: string[],
  readVersion: number,
): Promise<Pick<Applied, "deleted" | "lost">> {
  const { epoch } = writing;
  const images: RowImageBatch = { epoch, readVersion, rows: [], gone, issues: [], records: [] };
  const logging = { ...writing, isWithoutNew: true };
  const { deleted, lost } = await onLiveTable(logging, table, async () => images);
  for (const id of gone) table.fingerprints.expect(id);
  return { deleted, lost };
}

/** Applies images that are created for the table as it is live at that moment. */
export async function onLiveTable(
  writing: Writing,
  known: TableCache,
  imagesFor: (table: TableCache) => Promise<RowImageBatch>,
): Promise<Applied> {
  for (let attempt = 1; ; attempt++) {
    const table = liveTable(writing, known);
    const images = await imagesFor(table);
    if (liveTable(writing, known) !== table && attempt < MANY_TRIES) continue;
    try {
      const { onWrite, writeSignal } = writing.reader;
      onWrite?.(false);
      const applied = await applyRowImages(writing.replica, table.live, images, writeSignal).finally(() =>
        onWrite?.(true),
      );
      if (applied.lost.length > 0) writing.reader.onLost?.(applied.lost.length);
      return applied;
    } catch (error) {
      // A configured index must not prevent a row from being written.
      if (await dropFullIndexes(writing.replica, writing.epoch, table.live.spec.tableId, error)) continue;
      if (!isBasetideError(error, "shape_changed")) throw error;
      await writing.schemaTracker.reload();
      if (attempt >= MANY_TRIES || liveTable(writing, known) === table) throw error;
    }
  }
}

/** Returns the live table. @throws BasetideError `source_schema_changed` when it must be dropped or rebuilt */
export function liveTable(
  { schemaTracker, cache, isWithoutNew }: Pick<Writing, "schemaTracker" | "cache" | "isWithoutNew">,
  known: TableCache,
): TableCache {
  const { tableId } = known.live.spec;
  const { source, live, rebuild } = schemaTracker.table(tableId);
  const isInTheWay = rebuild && !(isWithoutNew && live && onlyAddsColumns(live.spec, rebuild));
  if (!source || !live || isInTheWay) throw schemaChanged(tableId);
  return tableCache(cache, live);
}

function schemaChanged(tableId: string): BasetideError {
  return new BasetideError("source_schema_changed", `The shape of table ${tableId} has changed.`);
}

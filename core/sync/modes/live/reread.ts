/**
 * Applies what the feed has named: reads records again by id and applies them like the records of a sweep.
 *
 * I1, I2. Every image has a read version that was taken before the source was asked, and is entered into the
 * recent-writes log, changed or not: a proxied write that began earlier loses to it, and the proxy reads its record
 * again.
 * L3. Dependents of a change are named before the change is acknowledged, by the links before the change and after it.
 */
import { BasetideError, isBasetideError } from "../../../errors";
import { latestReadVersions } from "../../../replica";
import type { ChangeFeed, RecordPage, SourceRecord } from "../../../source";
import {
  applyAsRead,
  foundIn,
  metered,
  NOT_AMONG_READABLE,
  type Reader,
  removeRecords,
  reportRecords,
  type Sweep,
  withSecondRead,
} from "../../engine";
import { itemPauseMs } from "../../pacing";
import type { DirtyBatch, DirtySet, MassChange, MissedChanges } from "../../state";
import { fingerprintIn, type TableCache, tableCache } from "../../state";
import type { LiveBatches } from "./batches";
import { changedCells, type DependentFinder, type Reached } from "./dependents";
import { earlyImages, type PageImages } from "./early-reads";

/**
 * A named record that does not exist may have been deleted since, which the feed will report, or the source may have
 * answered "no records" for no reason, as sources do. It is read again after these times, ms.
 */
const ABSENT_MS: readonly number[] = [2000, 15_000];

/** The records of a complete read are not kept. */
const NOTHING_READ = new Map<string, SourceRecord>();

/** Where dependents are found, and named. */
interface Naming {
  dirty: DirtySet;
  dependents: Pick<DependentFinder, "of">;
  missedChanges: Pick<MissedChanges, "named">;
}

export interface Rereading extends Naming {
  batches: Pick<LiveBatches, "started" | "tally">;
  /** For records that the feed has named. */
  namedReader: Reader;
  /** For their consequences, and for what is written. */
  foreground: Sweep;
  /** When a named record that was not found is looked for again, ms. */
  absentMs?: readonly number[] | undefined;
}

/** Removes records that the feed reports as destroyed. A record that was written meanwhile is read again. */
export async function removeDestroyed(work: Rereading, batch: DirtyBatch): Promise<void> {
  const { dirty, dependents, batches, foreground } = work;
  const { tableId, entries } = batch;
  const ids = [...entries.keys()];
  const cursor = firstCursor(batch);
  nameAll(work, [await dependents.of(changedCells(tableId, entries))], cursor);
  await batches.started();
  // An older read version than necessary only loses more often.
  const readVersion = Math.min(...[...entries.values()].map((entry) => entry.readVersion!));
  const { table } = tableOf(foreground, tableId);
  const { deleted, lost } = await removeRecords(foreground, table, ids, readVersion);
  const isLost = new Set(lost);
  dirty.ack(
    batch,
    ids.filter((id) => !isLost.has(id)),
  );
  dirty.requeue(batch);
  if (deleted > 0) foreground.cache.changedTables.add(tableId);
  batches.tally({ deleted });
}

/**
 * Reads the records of the batch again, and names their dependents. Starts over once if the schema does not explain the
 * records' cells (I6).
 *
 * @param massChange of the records that were read again in this table
 */
export function reread(work: Rereading, batch: DirtyBatch, massChange: MassChange): Promise<void> {
  return withSecondRead(
    () => rereadOnce(work, batch, massChange, false),
    () => rereadOnce(work, batch, massChange, true),
  );
}

/** @throws UnexplainedCells unless `isReadAgain` */
async function rereadOnce(
  work: Rereading,
  batch: DirtyBatch,
  massChange: MassChange,
  isReadAgain: boolean,
): Promise<void> {
  const { tableId, entries } = batch;
  const { dirty, dependents, batches, foreground } = work;
  const isNamed = [...entries.values()].some(({ why }) => why !== "dependent");
  const reader = isNamed ? work.namedReader : foreground.reader;
  const changed = changedCells(tableId, entries);
  const cursor = firstCursor(batch);
  const early = isReadAgain ? [] : await earlyImages(batch, isAsToldBy(reader));
  const shown = new Set(early.flatMap(({ page, indices }) => indices.map((index) => page.id(index))));
  const asked = [...entries.keys()].filter((id) => !shown.has(id));
  const applied: AppliedImages = { fresh: new Map(), lost: new Set(), isWritten: false };
  const applyAll = async (images: PageImages[]) => {
    await batches.started();
    await apply(work, massChange, tableId, images, isReadAgain, applied);
  };
  // The request does not depend on the previous links, so both are read concurrently.
  const reaching = dependents.of(changed);
  const [{ pages, readVersion }, reached] = await Promise.all([
    readByIds(work, reader, tableId, asked),
    reaching,
    early.length > 0 && reaching.then(() => applyAll(early)),
  ]);
  await applyAll(pages.map((page) => ({ page, readVersion, indices: allOf(page) })));
  const { fresh, lost, isWritten } = applied;
  if (isNamed || isWritten) foreground.cache.changedTables.add(tableId);
  const unreadable = await unreadableIn(work, tableId, asked, pages, fresh);
  for (const id of await shownSince(foreground, tableId, lost.difference(shown), readVersion))
    lost.delete(id);
  // All at once, so that no dependent is read twice.
  nameAll(work, [reached, await dependents.of(changed, fresh)], cursor);
  dirty.ack(
    batch,
    [...fresh.keys()].filter((id) => !lost.has(id)),
  );
  dirty.requeue(batch, lost);
  for (const id of unreadable) {
    const failures = (entries.get(id)?.absences ?? 0) + 1;
    dirty.defer(batch, id, performance.now() + itemPauseMs(failures));
  }
  await judgeAbsent(work, batch, fresh.size > 0, readVersion);
}

async function readByIds({ foreground }: Rereading, reader: Reader, tableId: string, ids: string[]) {
  if (ids.length === 0) return { pages: [], readVersion: 0 };
  reader.readVersions.renew();
  const readVersion = await reader.readVersions.current();
  const { source } = tableOf(foreground, tableId);
  return { pages: await metered(reader, "records").listByIds(source, ids), readVersion };
}

function isAsToldBy({ connection }: Reader): ChangeFeed["isAsTold"] {
  return (cell, told) => connection.changeFeed?.isAsTold(cell, told) ?? false;
}

function allOf({ size }: RecordPage): number[] {
  return Array.from({ length: size }, (_, index) => index);
}

/** What became of the images of a batch. */
interface AppliedImages {
  fresh: Map<string, SourceRecord>;
  lost: Set<string>;
  isWritten: boolean;
}

/** Writes the records that were read, and counts them as seen by a sweep that may be running. */
async function apply(
  { foreground, batches }: Rereading,
  massChange: MassChange,
  tableId: string,
  images: PageImages[],
  isReadAgain: boolean,
  into: AppliedImages,
): Promise<void> {
  const writing = { ...foreground, isWithoutNew: true };
  for (const { page, readVersion, indices } of images) {
    const { table } = tableOf(foreground, tableId);
    if (isMassChange(massChange, table, page, indices)) await foreground.schemaTracker.refresh();
    const applied = await applyAsRead(writing, table, { page, readVersion }, indices, isReadAgain);
    for (const index of indices) {
      table.fingerprints.see(page.id(index), 0n);
      into.fresh.set(page.id(index), page.record(index));
    }
    for (const id of applied.lost) into.lost.add(id);
    into.isWritten ||= applied.inserted + applied.updated > 0;
    batches.tally({ seen: indices.length, inserted: applied.inserted, updated: applied.updated });
  }
}

/**
 * Reports and returns the records of the batch that exist and cannot be read.
 */
async function unreadableIn(
  { foreground }: Rereading,
  tableId: string,
  wanted: string[],
  pages: RecordPage[],
  fresh: ReadonlyMap<string, unknown>,
): Promise<string[]> {
  const { flawed, isUnclear } = foundIn(pages, wanted);
  if (isUnclear) {
    for (const id of wanted) {
      if (fresh.has(id) || flawed.has(id)) continue;
      if (await isThere(foreground.reader, tableId, id)) flawed.set(id, NOT_AMONG_READABLE);
    }
  }
  if (flawed.size === 0) return [];
  const { table } = tableOf(foreground, tableId);
  const issues = [...flawed].map(([id, reason]) => ({ id, reason }));
  await reportRecords(foreground, table, issues, false);
  return [...flawed.keys()].filter((id) => !fresh.has(id));
}

/**
 * Returns the records whose images lost to one that was requested after `since`, and so includes the changes that the
 * feed had reported by then.
 */
async function shownSince(
  { replica }: Sweep,
  tableId: string,
  lost: ReadonlySet<string>,
  since: number,
): Promise<string[]> {
  if (lost.size === 0) return [];
  const { readVersions } = await latestReadVersions(replica, tableId, [...lost]);
  return [...lost].filter((id) => (readVersions.get(id) ?? 0) > since);
}

/**
 * I6. Many records that have changed at once may indicate a change of the schema that the feed has not reported yet.
 */
function isMassChange(
  massChange: MassChange,
  table: TableCache,
  page: RecordPage,
  indices: number[],
): boolean {
  const changed = indices.filter(
    (index) => !table.fingerprints.isKnown(page.id(index), fingerprintIn(table, page, index)),
  );
  return massChange.isNews(page, changed, false);
}

/** Decides what to do with the records of the batch that were not found. */
async function judgeAbsent(
  { dirty, batches, foreground, absentMs = ABSENT_MS }: Rereading,
  batch: DirtyBatch,
  isAnswered: boolean,
  readVersion: number,
): Promise<void> {
  const gone = [];
  const lasting = [];
  for (const [id, { why, absences }] of batch.entries) {
    const waitMs = absentMs[absences];
    if (why === "destroyed") gone.push(id);
    // An answer with other records is trusted if no client has changed this record.
    else if (why === "dependent" && (isAnswered || waitMs === undefined)) dirty.ack(batch, [id]);
    else if (waitMs === undefined) lasting.push(id);
    else dirty.defer(batch, id, performance.now() + waitMs);
  }
  for (const id of lasting) {
    if (await isThere(foreground.reader, batch.tableId, id))
      dirty.defer(batch, id, performance.now() + absentMs.at(-1)!);
    else gone.push(id);
  }
  if (gone.length === 0) return;
  const { table } = tableOf(foreground, batch.tableId);
  const { deleted, lost } = await removeRecords(foreground, table, gone, readVersion);
  dirty.requeue(batch, lost);
  dirty.ack(batch, gone);
  if (deleted > 0) foreground.cache.changedTables.add(batch.tableId);
  batches.tally({ deleted });
}

/**
 * Requests one record by its id. A record that no list has contained for a while and that cannot be read by id is
 * gone, even if the feed never reported it.
 */
async function isThere(reader: Reader, tableId: string, id: string): Promise<boolean> {
  return await metered(reader, "records").hasRecord(tableId, id);
}

/**
 * Prepares a complete read of a table. The returned function acknowledges the entries that were named before the read,
 * after it has named their dependents.
 */
export async function settledByReading(naming: Naming, tableId: string) {
  const { dirty, dependents } = naming;
  const { sequence } = dirty;
  const named = dirty.direct(tableId);
  const changed = changedCells(tableId, named);
  const cursor = Math.min(...named.map(([, entry]) => entry.cursor));
  const before = await dependents.of(changed);
  return async ({ lost }: { lost: string[] }): Promise<void> => {
    nameAll(naming, [before, await dependents.of(changed, NOTHING_READ)], cursor);
    dirty.ackTable(tableId, sequence, new Set(lost));
  };
}

/** Names dependents, with the cursor of the changes that they depend on. */
function nameAll({ dirty, missedChanges }: Naming, reached: Reached[], cursor: number): void {
  for (const [tableId, ids] of reached.flatMap(({ records }) => [...records])) {
    missedChanges.named(tableId, ids, performance.now());
    for (const id of ids) dirty.add(tableId, id, { cursor, why: "dependent", fields: null });
  }
  for (const tableId of new Set(reached.flatMap(({ tables }) => [...tables])))
    dirty.addTable(tableId, cursor);
}

/** @throws BasetideError `source_schema_changed` when the table has gone since the batch was taken */
function tableOf({ cache, schemaTracker }: Sweep, tableId: string) {
  const { source, live } = schemaTracker.table(tableId);
  if (source && live) return { source, table: tableCache(cache, live) };
  throw new BasetideError("source_schema_changed", `Table ${tableId} no longer exists in Airtable.`);
}

function firstCursor({ entries }: DirtyBatch): number {
  return Math.min(...[...entries.values()].map((entry) => entry.cursor));
}

/** Returns whether the source's adapter rejects the ids themselves: a retry would not help. */
export function isStrangeId(error: unknown): boolean {
  return isBasetideError(error, "invalid_request");
}

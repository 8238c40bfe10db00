/**
 * Sweeps one table: reads all its records, writes those that changed, and deletes those that are gone.
 *
 * I1, I2. Every page carries a read version, and so loses to every image that was applied to a record after the page
 * was requested. A row that no page contains is requested by id before it is deleted.
 * I3. A sweep that starts when the source is quiet leaves the table equal to the source.
 */
import {
  type Applied,
  type RecentWrite,
  type Replica,
  type RowImageBatch,
  recentWritesSince,
  type ShapeChange,
} from "../../replica";
import type { RecordPage, SourceTable, UnreadableRecord } from "../../source";
import {
  type BaseCache,
  fingerprintIn,
  isUrlRefresh,
  type TableCache,
  type VersionedPage,
  validUntil,
} from "../state";
import { inComparisonTurn } from "./comparison-turns";
import { evidenceOf } from "./evidence";
import { liveIds } from "./live-ids";
import { readAsNow, rememberRead } from "./read-as";
import { type Reader, readTable, restarting } from "./reader";
import type { SchemaTracker } from "./schema-tracker";
import { NOT_AMONG_READABLE, reportRecords, seeUnreadable } from "./unreadable";
import { applyRecords, liveTable, onLiveTable } from "./write-records";

export interface TableOutcome {
  /** Records that the source has. */
  seen: number;
  inserted: number;
  updated: number;
  deleted: number;
  /** Records that the sweep could not bring up to date or judge, because another process wrote them meanwhile. */
  lost: string[];
}

export interface Sweep {
  replica: Replica;
  reader: Reader;
  epoch: number;
  schemaTracker: SchemaTracker;
  cache: BaseCache;
  /** Called after every schema change that was carried out. */
  onShapeChange?: ((changes: ShapeChange[]) => void) | undefined;
  /** Called after each page with the number of records read so far. */
  onProgress: (recordsDone: number) => void;
  /** Called with the ids of the second page of a table that is built, if there are more pages. */
  onSecondPage?: ((ids: string[]) => void) | undefined;
  /**
   * Set when the table is about to get new columns and its existing ones are kept up to date meanwhile. Every write
   * then enters the recent-writes log, for the build that waits.
   */
  isWithoutNew?: boolean;
  /**
   * The tables whose recent-writes log has just been found to have no entries beyond this applied version, by id. A
   * sweep that relies on that removes its table.
   */
  unwritten?: Map<string, number>;
  /** Called with the rows that differed, except those that differed only in attachment URLs. */
  onChanges?: ((tableId: string, recordIds: string[]) => void) | undefined;
}

/**
 * Sweeps `source` into its live table.
 *
 * @throws BasetideError `destination_invalid` if that belongs to another role
 */
export async function sweepTable(
  sweep: Sweep,
  source: SourceTable,
  table: TableCache,
): Promise<TableOutcome> {
  await sweep.schemaTracker.ownTable(source.id);
  using _ = table.fingerprints.hold();
  const isComparing = !table.isComplete || performance.now() - table.comparedAt >= sweep.cache.compareEveryMs;
  const read = () => restarting(() => sweepOnce(sweep, source, table, isComparing));
  return await (isComparing ? inComparisonTurn(sweep.replica, sweep.reader.stop, read) : read());
}

/**
 * Requests the records of the table that other processes have written since its recent-writes log was last read. The rows
 * may be older than what a sweep has seen meanwhile, and not have been compared with it.
 */
export async function sweepWritten(
  sweep: Sweep,
  source: SourceTable,
  table: TableCache,
): Promise<TableOutcome> {
  using _ = table.fingerprints.hold();
  const outcome = noOutcome();
  const entries = await expectOthersWrites(sweep, table);
  const written = entries.filter(({ record, isGone, isWritten }) => isWritten && (record || isGone));
  const ids = written.map(({ recordId }) => recordId);
  await judge(sweep, source, table, { ids, witness: table.witness }, outcome);
  for (const id of outcome.lost) table.fingerprints.expect(id);
  return outcome;
}

/** As `expectLogged`; without a feed, which reports them, writes of clients through the proxy are changes of the table. */
async function expectOthersWrites(sweep: Sweep, table: TableCache): Promise<RecentWrite[]> {
  const entries = await expectLogged(sweep.replica, table);
  const isChange = !sweep.onChanges && entries.some(({ isWritten }) => isWritten);
  if (isChange) sweep.cache.changedTables.add(table.live.spec.tableId);
  return entries;
}

/** @param isComparing compares every record with its row in SQL */
async function sweepOnce(
  sweep: Sweep,
  source: SourceTable,
  first: TableCache,
  isComparing: boolean,
): Promise<TableOutcome> {
  const { reader } = sweep;
  // A schema change in place replaces this object; the fingerprints stay the same.
  let table = first;
  const { fingerprints } = table;
  const readAs = readAsNow(sweep.cache, reader.connection).get(source.id);
  const outcome = noOutcome();
  if (sweep.unwritten?.get(source.id) !== table.loggedUpTo) {
    await expectOthersWrites(sweep, table);
    // I3. The end of the sync does not look at these writes: the pages, which are later, must not lose to them.
    reader.readVersions.renewIfBefore(table.loggedUpTo);
  }
  sweep.unwritten?.delete(source.id);
  const startedAt = performance.now();
  if (isComparing) fingerprints.expectAll();
  fingerprints.beginScan();
  let position = 0;
  let witness: string | undefined;
  const unreadable: UnreadableRecord[] = [];
  const isKnown = (at: number, digest: number) => fingerprints.knowsPage(at, digest, performance.now());
  const { pages } = table;
  const remembered = (at: number) => pages[at];
  for await (const versioned of readTable(reader, source, { isKnown, remembered })) {
    const { page } = versioned;
    await sweep.schemaTracker.refreshIfDue();
    table = liveTable(sweep, table);
    const isPart = position > 0 || page.offset !== undefined;
    pages[position] = page.remembered;
    const changed = changedRecords(page, table, position++);
    if (table.massChange.isNews(page, changed.indices, isPart)) {
      await sweep.schemaTracker.refresh();
      table = liveTable(sweep, table);
    }
    if (changed.indices.length > 0) await takePage(sweep, table, versioned, changed, outcome);
    unreadable.push(...seeUnreadable(table, page));
    witness = page.firstId ?? witness;
    sweep.onProgress(fingerprints.seen);
  }
  pages.length = position;
  table = liveTable(sweep, table);
  table.witness = witness;
  if (isComparing || fingerprints.size > fingerprints.seen) {
    const missing = { ids: await liveIds(sweep, source.id, (id) => !fingerprints.hasSeen(id)), witness };
    unreadable.push(...(await judge(sweep, source, table, missing, outcome)));
    table = liveTable(sweep, table);
  }
  outcome.seen = fingerprints.seen;
  fingerprints.forgetUnseen();
  // Their log entries have been read already: if they were forgotten now, a deletion would never be noticed.
  for (const id of outcome.lost) fingerprints.expect(id);
  await reportRecords(sweep, table, unreadable, true);
  table.isComplete = true;
  if (isComparing) table.comparedAt = startedAt;
  await rememberRead(sweep, source.id, readAs);
  return outcome;
}

/** Writes the changed records of a page, and reports the rows that were written. */
async function takePage(
  sweep: Sweep,
  table: TableCache,
  { page, readVersion }: VersionedPage,
  { indices, refreshed }: Changed,
  outcome: TableOutcome,
): Promise<void> {
  const applied = await applyRecords(sweep, table, { page, readVersion }, indices);
  outcome.inserted += applied.inserted;
  outcome.updated += applied.updated;
  outcome.lost.push(...applied.lost);
  const { tableId } = table.live.spec;
  if (applied.inserted + applied.updated === 0) return;
  if (indices.length > refreshed.size) sweep.cache.changedTables.add(tableId);
  if (!sweep.onChanges) return;
  const asked = indices.map((index) => page.id(index));
  const ids = await writtenIds(sweep.replica, table, readVersion, asked, applied);
  sweep.onChanges(
    tableId,
    ids.filter((id) => !refreshed.has(id)),
  );
}

/**
 * Marks records that other processes wrote since the last sweep: they are compared in SQL, and requested by id if the
 * source's list does not contain them.
 */
export async function expectLogged(replica: Replica, table: TableCache): Promise<RecentWrite[]> {
  const entries = await recentWritesSince(replica, table.live.spec.tableId, table.loggedUpTo);
  for (const entry of entries) {
    table.fingerprints.expect(entry.recordId);
    table.loggedUpTo = Math.max(table.loggedUpTo, entry.appliedVersion);
  }
  return entries;
}

interface Changed {
  /** Indices of the page's records that are not known to equal their rows. */
  indices: number[];
  /** Ids of those records that differ only in their URLs. */
  refreshed: ReadonlySet<string>;
}

/** @param position of the page in the table's list; absent for other pages */
function changedRecords(page: RecordPage, table: TableCache, position?: number): Changed {
  const { fingerprints } = table;
  const now = performance.now();
  const indices = fingerprints.seePage(page, (index) => fingerprintIn(table, page, index, now), position, {
    now,
    validUntil: () => validUntil(table, page, now),
  });
  const refreshed = new Set<string>();
  for (const index of indices) {
    const id = page.id(index);
    if (isUrlRefresh(table, page, index, fingerprints.get(id))) refreshed.add(id);
  }
  return { indices, refreshed };
}

/** Returns the records whose rows were written. If not all of them were, reads that from the recent-writes log. */
async function writtenIds(
  replica: Replica,
  { live }: TableCache,
  readVersion: number,
  ids: string[],
  { inserted, updated, lost }: Pick<Applied, "inserted" | "updated" | "lost">,
): Promise<string[]> {
  const kept = ids.filter((id) => !lost.includes(id));
  if (inserted + updated === kept.length) return kept;
  const entries = await recentWritesSince(replica, live.spec.tableId, readVersion);
  const written = new Set(entries.filter(({ record }) => !record).map(({ recordId }) => recordId));
  return kept.filter((id) => written.has(id));
}

/**
 * Requests rows by id: writes those that exist, and deletes those that do not.
 *
 * @returns the records that exist and cannot be read
 */
async function judge(
  sweep: Sweep,
  source: SourceTable,
  first: TableCache,
  { ids, witness }: { ids: string[]; witness: string | undefined },
  outcome: TableOutcome,
): Promise<UnreadableRecord[]> {
  const { reader, onChanges, cache } = sweep;
  const missing = { ids, witness, emptySpellMs: cache.emptySpellMs };
  const flawed: UnreadableRecord[] = [];
  for await (const { found, gone, unreadable, readVersion } of evidenceOf(reader, source, missing)) {
    let table = liveTable(sweep, first);
    // They are looked for again.
    outcome.lost.push(...unreadable);
    for (const id of unreadable) flawed.push({ id, reason: NOT_AMONG_READABLE });
    for (const versioned of found) {
      const changed = changedRecords(versioned.page, table);
      // I6. These are later than the pages of the list: a field may have been deleted in between.
      if (changed.indices.length > 0) {
        await sweep.schemaTracker.refresh();
        table = liveTable(sweep, table);
      }
      await takePage(sweep, table, versioned, changed, outcome);
    }
    if (gone.length === 0) continue;
    // If another process wrote a record after it was requested, this answer cannot judge it.
    const images: RowImageBatch = { epoch: sweep.epoch, readVersion, rows: [], gone, issues: [] };
    const { deleted, lost } = await onLiveTable(sweep, table, async () => images);
    outcome.deleted += deleted;
    outcome.lost.push(...lost);
    const isLost = new Set(lost);
    if (deleted > 0) {
      sweep.cache.changedTables.add(source.id);
      onChanges?.(
        source.id,
        gone.filter((id) => !isLost.has(id)),
      );
    }
  }
  return flawed;
}

function noOutcome(): TableOutcome {
  return { seen: 0, inserted: 0, updated: 0, deleted: 0, lost: [] };
}

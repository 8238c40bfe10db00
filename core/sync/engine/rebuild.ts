/**
 * Rebuilds one table: reads it completely into a new table and puts that live. Used for a table's first sync, for its
 * first sync after a schema change, and on request. A live table stays, and gets the columns and rows of the new one.
 *
 * I6. Readers see the complete old columns until they see the complete new ones. A table that was read in several pages
 * is put live only when a schema check after the last page finds it as it was before the first; otherwise a column
 * could be only partly filled. A single page shows one moment.
 * I1, I2. Writes that were applied while the table was read are applied again to the new one, in the order of applied
 * versions per record, against the read version of the page that contained the record. No write can fall between the
 * last read of the log and the change. A record is read again if its last image was requested from the source before the
 * rebuild began, since it may lack a new field; or if the log has no image of it, as of one that a poll has written:
 * catch-ups go on while a table is rebuilt, and may not know of it.
 *
 * Queries that hold the live table delay its change, but no other table: after a few seconds other work continues, and
 * the built table is stored.
 */

import { jittered, wait } from "../../async";
import { asBasetideError, BasetideError, isBasetideError } from "../../errors";
import {
  type Build,
  type CellIssue,
  checkChange,
  hasSameColumns,
  mapRecords,
  nameConflict,
  type RecentWrite,
  recentWritesSince,
  type ShapeChange,
  settleDependents,
  shapeChanges,
  startBuild,
  type TableSpec,
  withHolders,
} from "../../replica";
import { limitsOfKey, type SourceRecord, type SourceTable, type UnreadableRecord } from "../../source";
import { FIRST_FAILURE_PAUSE_MS, MOST_PATIENCE_MS, TICK_MS, TRIES } from "../pacing";
import type { FilledBuild, VersionByScan, VersionedPage } from "../state";
import { Fingerprints, fingerprintIn, MassChange, mappingOf, type TableCache } from "../state";
import { evidenceOf } from "./evidence";
import { liveIds } from "./live-ids";
import { type Put, putLive } from "./put-live";
import { readAsNow } from "./read-as";
import { metered, type Reader, readTable, restarting } from "./reader";
import { checkSchema, confirmSchema, withSecondRead } from "./schema-check";
import type { Sweep, TableOutcome } from "./sweep";
import { NOT_AMONG_READABLE, reportRecords } from "./unreadable";
import { readAgain } from "./write-records";
import { inWriteTurn } from "./write-turns";

/**
 * Issues that a build keeps until it goes live: at most 44 MB. Those of further records are found by the next sweep,
 * which compares these records in SQL.
 */
const MOST_ISSUES = 20_000;

/**
 * Builds `spec`'s table from the source and puts it live; `cache` then contains it with its fingerprints.
 *
 * @param onWaiting called once queries have held the live table for some seconds; the attempts then continue until one
 *   succeeds. Without it the build is left in `cache.builds`, and the next call continues from there
 * @throws BasetideError `replica_busy` if the build was left there; `replica_refused` if an object of the customer's refuses
 *   the change, `needs_attention` if the table cannot get it: the live table stays as it is
 */
export function rebuildTable(
  sweep: Sweep,
  source: SourceTable,
  spec: TableSpec,
  onWaiting?: () => void,
): Promise<TableOutcome> {
  return restarting(async () => {
    await sweep.schemaTracker.ownTable(spec.tableId);
    const stored = onWaiting ? undefined : takeBuild(sweep, spec);
    const { live } = sweep.schemaTracker.table(spec.tableId);
    try {
      if (live && !live.spec.isDamaged) await checkChange(sweep.replica, live, spec);
      const filled = stored ?? (await fillBuild(sweep, source, spec));
      const { inserted, updated, deleted } = await goLive(sweep, filled, onWaiting);
      sweep.cache.problems.buildSucceeded(spec.tableId);
      return { seen: filled.table.fingerprints.size, inserted, updated, deleted, lost: [] };
    } catch (error) {
      if (!isRefusedChange(error)) throw error;
      throw refused(live?.spec, spec, error);
    }
  });
}

/** Returns whether the change cannot be carried out until a person acts. The live table can be synced as it is. */
export function isRefusedChange(error: unknown): error is BasetideError {
  return isBasetideError(error, "replica_refused") || isBasetideError(error, "needs_attention");
}

/** Adds to the error what is not changed because of it. */
function refused(live: TableSpec | undefined, wanted: TableSpec, cause: BasetideError): BasetideError {
  const known = new Set(live?.columns.map(({ fieldId }) => fieldId));
  const added = wanted.columns.filter(({ fieldId }) => live && !known.has(fieldId)).map(({ name }) => name);
  const what =
    added.length > 0
      ? `New columns (${added.join(", ")}) of the table ${live!.name} cannot be added.`
      : `The table ${wanted.name} cannot be ${live ? "changed" : "created"}.`;
  const text = live ? `${what} Its rows stay up to date as it is.` : what;
  return new BasetideError(cause.code, `${text} ${cause.message}`, { cause, details: cause.details });
}

/** Returns the waiting build of this table, if it still has the required columns. */
function takeBuild({ cache }: Sweep, spec: TableSpec): FilledBuild | undefined {
  const filled = cache.builds.get(spec.tableId);
  cache.builds.delete(spec.tableId);
  return filled && hasSameColumns(filled.build.spec, spec) ? filled : undefined;
}

/**
 * Puts the build live. If the table is busy, stores the build for the next attempt; after any other error, discards
 * it.
 */
async function goLive(sweep: Sweep, filled: FilledBuild, onWaiting?: () => void): Promise<Put> {
  const { replica, reader, cache, schemaTracker, onShapeChange } = sweep;
  const { build, table } = filled;
  const { tableId } = build.spec;
  let done: { before: TableSpec | undefined; put: Put };
  try {
    done = await goLiveWhenFree(sweep, filled, onWaiting);
  } catch (error) {
    if (isBasetideError(error, "replica_busy")) cache.builds.set(tableId, filled);
    else await discard(build);
    throw error;
  }
  cache.tables.set(tableId, table);
  // Records that were requested before the change lose to it.
  reader.readVersions.renew();
  const { before, put } = done;
  const isNewTable = before !== undefined && put.how === "moved";
  onShapeChange?.([...shapeChanges(before, build.spec), ...(isNewTable ? [rebuilt(build.spec)] : [])]);
  await schemaTracker.reload();
  const live = schemaTracker.catalog.get(tableId);
  // The names may have changed in place since then: records are mapped by the current catalog.
  if (live) Object.assign(table, { live, ...mappingOf(cache, live.spec) });
  await reportRecords(sweep, table, filled.unreadable, true);
  if (put.how === "merged") await discard(build);
  await settleDependents(replica);
  return put;
}

/** A build that cannot be discarded now is discarded by the next lease. */
async function discard(build: Build): Promise<void> {
  await build.discard().catch(() => {});
}

/** Reads the table into a new one. */
async function fillBuild(sweep: Sweep, source: SourceTable, spec: TableSpec): Promise<FilledBuild> {
  const { replica, reader, epoch, cache, schemaTracker } = sweep;
  reader.readVersions.renew();
  const table: TableCache = {
    live: { spec, shape: 0 },
    ...mappingOf(cache, spec),
    fingerprints: new Fingerprints(),
    pages: [],
    isComplete: true,
    massChange: new MassChange(),
    comparedAt: performance.now(),
    loggedUpTo: await reader.readVersions.current(),
  };
  const beganAt = table.loggedUpTo;
  const readAs = readAsNow(cache, reader.connection).get(spec.tableId);
  const build = await startBuild(replica, epoch, spec);
  try {
    const reading = readInto(build, sweep, source, table);
    const { readVersions, issues, pages, unreadable } = await schemaTracker.reading(reading);
    if (pages > 1) await schemaTracker.refreshTogether();
    confirmSchema(schemaTracker, spec);
    return { build, table, beganAt, readVersions, issues, readAs, unreadable };
  } catch (error) {
    await discard(build);
    throw error;
  }
}

/**
 * Fills the build with all records of the source: the pages of the list, and rows of the live table that the list left
 * out.
 */
async function readInto(build: Build, sweep: Sweep, source: SourceTable, table: TableCache) {
  const { reader, schemaTracker, cache } = sweep;
  const { fingerprints } = table;
  const filled = {
    readVersions: new Map() as VersionByScan,
    issues: new Map<string, CellIssue[]>(),
    issueCount: 0,
    pages: 0,
    unreadable: [] as UnreadableRecord[],
  };
  let witness: string | undefined;
  let position = 0;
  for await (const versioned of readTable(reader, source)) {
    const { page } = versioned;
    // A table of two pages is read before its size would be known.
    if (++position === 2 && page.offset !== undefined)
      sweep.onSecondPage?.(Array.from({ length: page.size }, (_, index) => page.id(index)));
    await append(build, sweep, table, versioned, filled);
    witness = page.firstId ?? witness;
  }
  const { live } = schemaTracker.table(build.spec.tableId);
  if (!live) return filled;
  const { isDamaged, isReplaced } = live.spec;
  const isLeftOut = (id: string) => fingerprints.scanOf(id) === undefined;
  const ids = await liveIds(sweep, build.spec.tableId, isLeftOut).catch((error: unknown) => {
    // The damage may be that the table, or its column of ids, is gone.
    if (!isDamaged || !isBasetideError(error, "shape_changed")) throw error;
    return [];
  });
  const missing = { ids, witness, emptySpellMs: cache.emptySpellMs };
  const kept = filled.unreadable.flatMap(({ id }) => id ?? []);
  for await (const { found, unreadable } of evidenceOf(reader, source, missing)) {
    for (const versioned of found) await append(build, sweep, table, versioned, filled);
    for (const id of unreadable) filled.unreadable.push({ id, reason: NOT_AMONG_READABLE });
    kept.push(...unreadable);
  }
  // Their rows may lack what is damaged.
  if (isDamaged && !isReplaced) return filled;
  // I2. They exist: their rows stay as they are.
  if (kept.length > 0) await build.keep(live, kept);
  for (const id of kept) fingerprints.see(id, 0n);
  return filled;
}

interface Filled extends Pick<FilledBuild, "readVersions" | "issues" | "unreadable"> {
  issueCount: number;
  pages: number;
}

/** Adds the page's records to the build. If the schema does not explain their cells, they are read again before. */
function append(
  build: Build,
  sweep: Sweep,
  table: TableCache,
  versioned: VersionedPage,
  filled: Filled,
): Promise<void> {
  const { page } = versioned;
  return withSecondRead(
    () => appendAsRead(build, sweep, table, versioned, filled, false),
    async () => {
      const ids = Array.from({ length: page.size }, (_, index) => page.id(index));
      for (const again of await readAgain(sweep, build.spec.tableId, ids)) {
        await appendAsRead(build, sweep, table, again, filled, true);
      }
    },
  );
}

/** @throws UnexplainedCells unless `isReadAgain`; see `checkSchema` */
async function appendAsRead(
  build: Build,
  sweep: Sweep,
  table: TableCache,
  { page, readVersion }: VersionedPage,
  filled: Filled,
  isReadAgain: boolean,
): Promise<void> {
  const { fingerprints } = table;
  const { readVersions, issues } = filled;
  filled.pages++;
  filled.unreadable.push(...(page.unreadable ?? []));
  await sweep.schemaTracker.refreshIfDue();
  await inWriteTurn(sweep.replica, async () => {
    confirmSchema(sweep.schemaTracker, build.spec);
    if (readVersions.get(fingerprints.scan) !== readVersion) {
      fingerprints.beginScan(true);
      readVersions.set(fingerprints.scan, readVersion);
    }
    const found: CellIssue[] = [];
    const records = Array.from({ length: page.size }, (_, index) => page.record(index));
    const rows = mapRecords(table.map, records, found);
    await checkSchema(sweep, build.spec, records, found, isReadAgain);
    const areNew = records.every(({ id }) => fingerprints.scanOf(id) === undefined);
    if (rows.length > 0) await build.append(rows, areNew);
    for (let index = 0; index < page.size; index++) {
      fingerprints.see(page.id(index), 0n);
      fingerprints.learn(page.id(index), fingerprintIn(table, page, index));
      issues.delete(page.id(index));
    }
    filled.issueCount += found.length;
    for (const issue of found) {
      if (filled.issueCount <= MOST_ISSUES) addIssue(issues, issue);
      else fingerprints.expect(issue.recordId);
    }
  });
  sweep.onProgress(fingerprints.size);
}

/**
 * Puts the build live with all writes that were applied meanwhile, under the current names of its table and columns.
 * Waits while queries hold the live table.
 *
 * @returns the spec that was live before, if any, and the result
 * @throws BasetideError `source_schema_changed` when the build could not go live yet and the table must have other
 *   columns by now; `replica_busy` without `onWaiting`; `replica_refused` when another object keeps a name that the table
 *   needs
 */
async function goLiveWhenFree(
  sweep: Sweep,
  filled: FilledBuild,
  onWaiting?: () => void,
): Promise<{ before: TableSpec | undefined; put: Put }> {
  const { replica, reader, schemaTracker } = sweep;
  const { build, table, readVersions, issues } = filled;
  let refusals = 0;
  for (let attempt = 1; ; attempt++) {
    await takeNames(build, sweep, table, issues);
    const entries = await recentWritesSince(replica, build.spec.tableId, table.loggedUpTo);
    const missing = entries.filter((entry) => !isInPage(table, entry, readVersions));
    await replay(sweep, filled, missing);
    for (const { appliedVersion } of entries) table.loggedUpTo = Math.max(table.loggedUpTo, appliedVersion);
    const { live } = schemaTracker.table(build.spec.tableId);
    try {
      reader.onWrite?.(false);
      const put = await putLive(sweep, filled, live).finally(() => reader.onWrite?.(true));
      if (put) return { before: live?.spec, put };
    } catch (error) {
      const isStale = isBasetideError(error, "shape_changed");
      if (!isStale && !isBasetideError(error, "replica_busy")) throw error;
      refusals = isStale ? refusals + 1 : 0;
      if (isStale && refusals === TRIES) throw nameConflict(build.spec.name, error);
      if (!isStale) {
        filled.busySince ??= performance.now();
        if (performance.now() - filled.busySince >= MOST_PATIENCE_MS) {
          if (!onWaiting)
            throw await withHolders(replica, live?.spec.name ?? build.spec.name, asBasetideError(error));
          onWaiting();
        }
      }
      // Long enough for the queue behind ours to run.
      await wait(jittered(attempt, TICK_MS, FIRST_FAILURE_PAUSE_MS), reader.stop);
      // A table that must give up its name may be busy itself, and the name may belong to another table.
      if (isStale) await schemaTracker.reload();
      else await schemaTracker.refreshIfDue();
      // A build whose columns are outdated is not renamed any more, and its old name may now belong to another
      // table for good.
      confirmSchema(schemaTracker, build.spec);
    }
  }
}

/** Renames the build to the current names: the source may have renamed the table or fields while it was read. */
async function takeNames(
  build: Build,
  { schemaTracker, cache }: Pick<Sweep, "schemaTracker" | "cache">,
  table: TableCache,
  issues: Map<string, CellIssue[]>,
): Promise<void> {
  const { live, rebuild } = schemaTracker.table(build.spec.tableId);
  const wanted = rebuild ?? live?.spec;
  if (!wanted || Bun.deepEquals(build.spec, wanted) || !hasSameColumns(build.spec, wanted)) return;
  const names = new Map(build.spec.columns.map((column) => [column.fieldId, column.name]));
  const renamed = new Map(wanted.columns.map((column) => [names.get(column.fieldId)!, column.name]));
  await build.rename(wanted);
  Object.assign(table, mappingOf(cache, wanted));
  for (const [id, found] of issues) {
    issues.set(
      id,
      found.map((issue) => ({ ...issue, column: renamed.get(issue.column) ?? issue.column })),
    );
  }
}

function rebuilt({ name, sourceName }: TableSpec): ShapeChange {
  const table = { name, source_name: sourceName };
  return { kind: "table_rebuilt", table: name, field: null, before: table, after: table };
}

/** Was the page that contained the record requested after the logged image was applied? */
function isInPage(
  { fingerprints }: TableCache,
  { recordId, appliedVersion }: RecentWrite,
  readVersions: VersionByScan,
): boolean {
  const scan = fingerprints.scanOf(recordId);
  return scan !== undefined && readVersions.get(scan)! >= appliedVersion;
}

/**
 * Returns the entries. Records whose image was requested before the rebuild began (I6), or is not in the log, are read
 * again.
 */
async function upToDate(
  reader: Reader,
  tableId: string,
  entries: RecentWrite[],
  beganAt: number,
): Promise<RecentWrite[]> {
  const isToRead = ({ isGone, record, readVersion }: RecentWrite) =>
    record === null ? !isGone : readVersion < beganAt;
  const ids = entries.filter(isToRead).map((entry) => entry.recordId);
  const records = new Map<string, SourceRecord | null>();
  const { pageSize } = limitsOfKey(reader.quotaKey);
  for (let from = 0; from < ids.length; from += pageSize) {
    const read = await metered(reader).readRecords(tableId, ids.slice(from, from + pageSize));
    for (const record of read.records) records.set(record.id, record);
    for (const id of read.gone) records.set(id, null);
  }
  return entries.map((entry) => {
    const record = records.get(entry.recordId);
    // A record that cannot be read stays as it was.
    return isToRead(entry) && record !== undefined ? { ...entry, record, isGone: record === null } : entry;
  });
}

/** Applies logged images to the build. If the schema does not explain their cells, their records are read again before. */
async function replay(sweep: Sweep, filled: FilledBuild, missing: RecentWrite[]): Promise<void> {
  const { build, beganAt } = filled;
  const current = (before: number) => upToDate(sweep.reader, build.spec.tableId, missing, before);
  const entries = await current(beganAt);
  await withSecondRead(
    () => replayAsLogged(sweep, filled, entries, false),
    async () => replayAsLogged(sweep, filled, await current(Number.POSITIVE_INFINITY), true),
  );
}

/** @throws UnexplainedCells unless `isReadAgain`; see `checkSchema` */
async function replayAsLogged(
  sweep: Sweep,
  { build, table, issues }: FilledBuild,
  entries: RecentWrite[],
  isReadAgain: boolean,
): Promise<void> {
  const records = entries.flatMap(({ record, isGone }) => (record && !isGone ? record : []));
  const found: CellIssue[] = [];
  const rows = mapRecords(table.map, records, found);
  await checkSchema(sweep, build.spec, records, found, isReadAgain);
  for (const { recordId, isGone } of entries) {
    table.fingerprints.expect(recordId);
    issues.delete(recordId);
    if (isGone) await build.remove([recordId]);
  }
  if (rows.length > 0) await build.append(rows);
  for (const issue of found) addIssue(issues, issue);
}

function addIssue(issues: Map<string, CellIssue[]>, issue: CellIssue): void {
  const known = issues.get(issue.recordId);
  if (known) known.push(issue);
  else issues.set(issue.recordId, [issue]);
}

/**
 * Reads one table whole into a new one and puts that live: a table's first sync, its first one after its shape has changed,
 * or one that somebody asked for. Where the live table keeps its columns it stays, and gets what the new one has.
 *
 * I6. Readers see the old table, whole, until they see the new one, whole. A table that was read in several pages is
 * put live only when a look at the schema after the last of them finds it as it was before the first: else a column
 * could be filled by half. One page is of one moment.
 * I1, I2. Writes that were applied while the table was read are applied again to the new one, in stamp order per
 * record against the ticket of the page that had it; none can slip in between the last look and the swap. A write that
 * the source was asked for before the rebuild began may know nothing of a new field: its record is read anew.
 *
 * Queries that hold the live table delay its swap, and no other table: after a few seconds other work goes on, and the
 * table that was built is kept.
 */

import { wait } from "../../async";
import { asBasetideError, isBasetideError } from "../../errors";
import {
  type Build,
  type CellIssue,
  hasSameColumns,
  type JournalEntry,
  journalSince,
  mapRecords,
  rowIds,
  type ShapeChange,
  settleDependents,
  shapeChanges,
  startBuild,
  type TableSpec,
  withHolders,
} from "../../replica";
import type { SourceRecord, SourceTable } from "../../source";
import type { FilledBuild, TicketByPass } from "../state";
import { Fingerprints, fingerprintIn, MassChange, mappingOf, type TableMemory } from "../state";
import { readRecords } from "./copy-writes";
import { evidenceOf } from "./evidence";
import { type Put, putLive } from "./put-live";
import { readAsNow } from "./read-as";
import { type Reader, readTable, restarting, type TicketedPage } from "./reader";
import { checkShape, confirmShape } from "./schema-check";
import type { Sweep, TableOutcome } from "./sweep";

const MAX_STARTS = 5;
/** Pause before another try for a table that queries hold: long enough to let the queue behind us run. */
const BUSY_PAUSE_MS = 250;
const MAX_BUSY_PAUSE_MS = 2000;
/** After so long other tables do not wait any more. */
const BUSY_PATIENCE_MS = 5000;
/** Most ids that the source takes at once. */
const READ_BATCH = 100;

/**
 * Builds `spec`'s table from the source and puts it live; `memory` then knows it, fingerprints and all.
 *
 * @param onWaiting called once queries have held the live table for some seconds: it is tried for as long as it takes.
 *   Without it the build is then left in `memory.builds`, and the next call goes on from there
 * @throws BasetideError `replica_busy` where it was left there
 */
export function rebuildTable(
  sweep: Sweep,
  source: SourceTable,
  spec: TableSpec,
  onWaiting?: () => void,
): Promise<TableOutcome> {
  return restarting(MAX_STARTS, async () => {
    const kept = onWaiting ? undefined : takeBuild(sweep, spec);
    const filled = kept ?? (await fillBuild(sweep, source, spec));
    const { inserted, updated, deleted } = await goLive(sweep, filled, onWaiting);
    return { seen: filled.table.fingerprints.size, inserted, updated, deleted, lost: [] };
  });
}

/** The build of this table that waits, if it still is what is wanted. */
function takeBuild({ memory }: Sweep, spec: TableSpec): FilledBuild | undefined {
  const filled = memory.builds.get(spec.tableId);
  memory.builds.delete(spec.tableId);
  return filled && hasSameColumns(filled.build.spec, spec) ? filled : undefined;
}

/** Puts the build live, or keeps it where it is to be tried again; otherwise it is thrown away. */
async function goLive(sweep: Sweep, filled: FilledBuild, onWaiting?: () => void): Promise<Put> {
  const { replica, reader, memory, shapes, onShapeChange } = sweep;
  const { build, table } = filled;
  const { tableId } = build.spec;
  let done: { before: TableSpec | undefined; put: Put };
  try {
    done = await swapIn(sweep, filled, onWaiting);
  } catch (error) {
    if (isBasetideError(error, "replica_busy")) memory.builds.set(tableId, filled);
    else await discard(build);
    throw error;
  }
  memory.tables.set(tableId, table);
  // What was asked for before the swap loses to it.
  reader.tickets.renew();
  const { before, put } = done;
  const isNewTable = before !== undefined && put.how === "swapped";
  onShapeChange?.([...shapeChanges(before, build.spec), ...(isNewTable ? [rebuilt(build.spec)] : [])]);
  await settleDependents(replica);
  await shapes.reload();
  const live = shapes.catalog.get(tableId);
  // The names may have changed in place since the swap: records are mapped as the catalog has them now.
  if (live) Object.assign(table, { live, ...mappingOf(memory, live.spec) });
  if (put.how === "merged") await discard(build);
  return put;
}

/** What cannot be thrown away now the next lease throws away. */
async function discard(build: Build): Promise<void> {
  await build.discard().catch(() => {});
}

/** Reads the table into a new one. */
async function fillBuild(sweep: Sweep, source: SourceTable, spec: TableSpec): Promise<FilledBuild> {
  const { replica, reader, epoch, memory, shapes } = sweep;
  reader.tickets.renew();
  const table: TableMemory = {
    live: { spec, shape: 0 },
    ...mappingOf(memory, spec),
    fingerprints: new Fingerprints(),
    isComplete: true,
    massChange: new MassChange(),
    comparedAt: performance.now(),
    journalStamp: await reader.tickets.current(),
  };
  const beganAt = table.journalStamp;
  const readAs = readAsNow(memory, reader.connection).get(spec.tableId);
  const build = await startBuild(replica, epoch, spec);
  try {
    const { tickets, issues, pages } = await readInto(build, sweep, source, table);
    if (pages > 1) await shapes.lookAgain();
    confirmShape(shapes, spec);
    return { build, table, beganAt, tickets, issues, readAs };
  } catch (error) {
    await discard(build);
    throw error;
  }
}

/** Fills the build with all that the source has: the list's pages, and what that left out of the live table's rows. */
async function readInto(build: Build, sweep: Sweep, source: SourceTable, table: TableMemory) {
  const { reader, shapes, replica, memory } = sweep;
  const { fingerprints } = table;
  const filled = { tickets: new Map() as TicketByPass, issues: new Map<string, CellIssue[]>(), pages: 0 };
  let witness: string | undefined;
  for await (const ticketed of readTable(reader, source)) {
    const { page } = ticketed;
    await append(build, sweep, table, ticketed, filled);
    if (page.size > 0) witness = page.id(page.size - 1);
  }
  const { live } = shapes.table(build.spec.tableId);
  if (!live || live.spec.isDamaged) return filled;
  const ids: string[] = [];
  for await (const batch of rowIds(replica, live)) {
    for (const id of batch) if (fingerprints.passOf(id) === undefined) ids.push(id);
  }
  const missing = { ids, witness, emptySpellMs: memory.emptySpellMs };
  for await (const { found } of evidenceOf(reader, source, missing)) {
    for (const ticketed of found) await append(build, sweep, table, ticketed, filled);
  }
  return filled;
}

async function append(
  build: Build,
  sweep: Sweep,
  table: TableMemory,
  { page, ticket }: TicketedPage,
  filled: Pick<FilledBuild, "tickets" | "issues"> & { pages: number },
): Promise<void> {
  const { fingerprints } = table;
  const { tickets, issues } = filled;
  filled.pages++;
  await sweep.shapes.tend();
  confirmShape(sweep.shapes, build.spec);
  if (tickets.get(fingerprints.pass) !== ticket) {
    fingerprints.beginPass();
    tickets.set(fingerprints.pass, ticket);
  }
  const found: CellIssue[] = [];
  const records = Array.from({ length: page.size }, (_, index) => page.record(index));
  const rows = mapRecords(table.map, records, found);
  await checkShape(sweep, build.spec, records, found);
  if (rows.length > 0) await build.append(rows);
  for (let index = 0; index < page.size; index++) {
    fingerprints.see(page.id(index), 0n);
    fingerprints.learn(page.id(index), fingerprintIn(table, page, index));
    issues.delete(page.id(index));
  }
  for (const issue of found) addIssue(issues, issue);
  sweep.onProgress(fingerprints.size);
}

/**
 * Puts the build live, with all that was written meanwhile, under the names that its table and columns have by then;
 * waits out queries that hold the live table.
 *
 * @returns what was live before, if anything, and whether that stays
 * @throws BasetideError `source_schema_changed` when it could not yet, and the table is wanted with other columns by now;
 *   `replica_busy` without `onWaiting`
 */
async function swapIn(
  sweep: Sweep,
  filled: FilledBuild,
  onWaiting?: () => void,
): Promise<{ before: TableSpec | undefined; put: Put }> {
  const { replica, reader, shapes } = sweep;
  const { build, table, beganAt, tickets, issues } = filled;
  for (let pauseMs = BUSY_PAUSE_MS; ; ) {
    await takeNames(build, sweep, table, issues);
    const entries = await journalSince(replica, build.spec.tableId, table.journalStamp);
    for (const entry of await upToDate(reader, build.spec.tableId, entries, beganAt)) {
      await replay(build, table, entry, tickets, issues);
      table.journalStamp = Math.max(table.journalStamp, entry.stamp);
    }
    const { live } = shapes.table(build.spec.tableId);
    try {
      const put = await putLive(sweep, filled, live);
      if (put) return { before: live?.spec, put };
    } catch (error) {
      const isStale = isBasetideError(error, "shape_changed");
      if (!isStale && !isBasetideError(error, "replica_busy")) throw error;
      if (!isStale) {
        filled.busySince ??= performance.now();
        if (performance.now() - filled.busySince >= BUSY_PATIENCE_MS) {
          if (!onWaiting)
            throw await withHolders(replica, live?.spec.name ?? build.spec.name, asBasetideError(error));
          onWaiting();
        }
      }
      await wait(pauseMs * (0.5 + Math.random()), reader.stop);
      pauseMs = Math.min(pauseMs * 2, MAX_BUSY_PAUSE_MS);
      // A table that gives its name up may be busy itself, and the name in somebody else's hands.
      if (isStale) await shapes.reload();
      else await shapes.tend();
      // What has come to have other columns takes no new name any more, and its old one may be another table's for good.
      confirmShape(shapes, build.spec);
    }
  }
}

/** The build takes the names that are wanted now: the source may have renamed things while it was read. */
async function takeNames(
  build: Build,
  { shapes, memory }: Pick<Sweep, "shapes" | "memory">,
  table: TableMemory,
  issues: Map<string, CellIssue[]>,
): Promise<void> {
  const { live, rebuild } = shapes.table(build.spec.tableId);
  const wanted = rebuild ?? live?.spec;
  if (!wanted || Bun.deepEquals(build.spec, wanted) || !hasSameColumns(build.spec, wanted)) return;
  const names = new Map(build.spec.columns.map((column) => [column.fieldId, column.name]));
  const renamed = new Map(wanted.columns.map((column) => [names.get(column.fieldId)!, column.name]));
  await build.rename(wanted);
  Object.assign(table, mappingOf(memory, wanted));
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

/** The entries, with the records read anew whose image was asked for before the rebuild began (I6). */
async function upToDate(
  reader: Reader,
  tableId: string,
  entries: JournalEntry[],
  beganAt: number,
): Promise<JournalEntry[]> {
  const isOld = (entry: JournalEntry) => entry.record !== null && entry.asked < beganAt;
  const ids = entries.filter(isOld).map((entry) => entry.recordId);
  const records = new Map<string, SourceRecord>();
  for (let from = 0; from < ids.length; from += READ_BATCH) {
    const read = await readRecords(reader, tableId, ids.slice(from, from + READ_BATCH));
    for (const record of read) records.set(record.id, record);
  }
  return entries.map((entry) => {
    if (!isOld(entry)) return entry;
    const record = records.get(entry.recordId) ?? null;
    return { ...entry, record, isGone: record === null };
  });
}

/** Applies a journalled image to the build, unless the page that had the record was asked for after it. */
async function replay(
  build: Build,
  table: TableMemory,
  entry: JournalEntry,
  tickets: TicketByPass,
  issues: Map<string, CellIssue[]>,
): Promise<void> {
  const pass = table.fingerprints.passOf(entry.recordId);
  if (pass !== undefined && tickets.get(pass)! >= entry.stamp) return;
  table.fingerprints.expect(entry.recordId);
  issues.delete(entry.recordId);
  if (entry.isGone) {
    await build.remove([entry.recordId]);
  } else if (entry.record) {
    const found: CellIssue[] = [];
    await build.append(mapRecords(table.map, [entry.record], found));
    for (const issue of found) addIssue(issues, issue);
  }
}

function addIssue(issues: Map<string, CellIssue[]>, issue: CellIssue): void {
  const known = issues.get(issue.recordId);
  if (known) known.push(issue);
  else issues.set(issue.recordId, [issue]);
}

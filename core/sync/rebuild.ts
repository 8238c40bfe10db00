/**
 * Rebuilds one table aside and swaps it in: a table's first sync, or its first one after its shape has changed.
 *
 * I6. Readers see the old table, whole, until they see the new one, whole. A table that was read in several pages is
 * put live only when a look at the schema after the last of them finds it as it was before the first: else a column
 * could be filled by half. One page is of one moment.
 * I1, I2. Writes that were applied while the table was read are applied again to the new one, in stamp order per
 * record against the ticket of the page that had it; none can slip in between the last look and the swap. A write that
 * the source was asked for before the rebuild began may know nothing of a new field: its record is read anew.
 */

import { isBasetideError } from "../errors";
import {
  type Build,
  type CatalogTable,
  type CellIssue,
  hasSameColumns,
  type JournalEntry,
  journalSince,
  mapRecords,
  type ReadAs,
  refreshViews,
  rowIds,
  type ShapeChange,
  shapeChanges,
  startBuild,
  type TableSpec,
} from "../replica";
import type { SourceRecord, SourceTable } from "../source/types";
import { wait } from "../wait";
import { checkShape, confirmShape } from "./check-shape";
import { readRecords } from "./copy-writes";
import { Fingerprints } from "./fingerprints";
import { MassChange } from "./mass-change";
import { MassDeletion } from "./mass-deletion";
import { mappingOf, type TableMemory, tableMemory } from "./memory";
import { readAsNow } from "./read-as";
import { type Reader, readTable, restarting } from "./reader";
import { fingerprintIn } from "./record-fingerprint";
import type { Sweep, TableOutcome } from "./sweep";

const MAX_STARTS = 5;
/** Pause before another try for a table that queries hold: long enough to let the queue behind us run. */
const BUSY_PAUSE_MS = 250;
const MAX_BUSY_PAUSE_MS = 2000;
/** Most ids that the source takes at once. */
const READ_BATCH = 100;

/** Builds `spec`'s table from the source and puts it live; `memory` then knows it, fingerprints and all. */
export function rebuildTable(sweep: Sweep, source: SourceTable, spec: TableSpec): Promise<TableOutcome> {
  return restarting(MAX_STARTS, () => rebuildOnce(sweep, source, spec));
}

async function rebuildOnce(sweep: Sweep, source: SourceTable, spec: TableSpec): Promise<TableOutcome> {
  const { replica, reader, epoch, memory, shapes } = sweep;
  reader.tickets.renew();
  const table: TableMemory = {
    live: { spec, shape: 0 },
    ...mappingOf(memory, spec),
    fingerprints: new Fingerprints(),
    isComplete: true,
    massChange: new MassChange(),
    journalStamp: await reader.tickets.current(),
    massDeletion: memory.tables.get(spec.tableId)?.massDeletion ?? new MassDeletion(memory.emptySpellMs),
  };
  const beganAt = table.journalStamp;
  const readAs = readAsNow(memory, reader.connection).get(spec.tableId);
  const build = await startBuild(replica, epoch, spec);
  let isLive = false;
  try {
    const { tickets, issues, pages } = await readInto(build, sweep, source, table);
    if (pages > 1) await shapes.lookAgain();
    confirmShape(shapes, spec);
    const seen = table.fingerprints.size;
    const { live } = shapes.table(spec.tableId);
    if (live && !(await isBelievable(sweep, live, table))) {
      tableMemory(memory, live).massDeletion = table.massDeletion;
      return { seen, inserted: 0, updated: 0, deleted: 0, isHeld: true, lost: [] };
    }
    await swapIn(build, sweep, table, { beganAt, tickets, issues, readAs });
    isLive = true;
    memory.tables.set(spec.tableId, table);
    return { seen, inserted: seen, updated: 0, deleted: 0, isHeld: false, lost: [] };
  } finally {
    // What cannot be thrown away now the next lease throws away.
    if (!isLive) await build.discard().catch(() => {});
  }
}

/** The ticket of each of the fingerprints' passes: a pass begins with every new ticket. */
type TicketByPass = Map<number, number>;

async function readInto(build: Build, sweep: Sweep, source: SourceTable, table: TableMemory) {
  const { fingerprints } = table;
  const tickets: TicketByPass = new Map();
  const issues = new Map<string, CellIssue[]>();
  let pages = 0;
  for await (const { page, ticket } of readTable(sweep.reader, source)) {
    pages++;
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
  return { tickets, issues, pages };
}

/** What a build was filled with. */
interface Filled {
  /** The ticket counter before anything was read. */
  beganAt: number;
  tickets: TicketByPass;
  issues: Map<string, CellIssue[]>;
  readAs: ReadAs | undefined;
}

/** Does the new table have about the records that the live one has? See `MassDeletion`. */
async function isBelievable({ replica }: Sweep, live: CatalogTable, table: TableMemory): Promise<boolean> {
  let total = 0;
  let missing = 0;
  for await (const ids of rowIds(replica, live)) {
    total += ids.length;
    for (const id of ids) if (table.fingerprints.passOf(id) === undefined) missing++;
  }
  return table.massDeletion.confirms(missing, total, performance.now());
}

/**
 * Puts the build live, with all that was written meanwhile, under the names that its table and columns have by then;
 * waits out queries that hold the live table.
 *
 * @throws BasetideError `source_schema_changed` when it could not yet, and the table is wanted with other columns by now
 */
async function swapIn(
  build: Build,
  sweep: Sweep,
  table: TableMemory,
  { beganAt, tickets, issues, readAs }: Filled,
): Promise<void> {
  const { replica, reader, shapes, onShapeChange } = sweep;
  for (let pauseMs = BUSY_PAUSE_MS; ; ) {
    await takeNames(build, sweep, table, issues);
    const entries = await journalSince(replica, build.spec.tableId, table.journalStamp);
    for (const entry of await upToDate(reader, build.spec.tableId, entries, beganAt)) {
      await replay(build, table, entry, tickets, issues);
      table.journalStamp = Math.max(table.journalStamp, entry.stamp);
    }
    const { live } = shapes.table(build.spec.tableId);
    try {
      if (await build.swapIn(live, table.journalStamp, [...issues.values()].flat(), readAs)) {
        table.live = { spec: build.spec, shape: (live?.shape ?? 0) + 1 };
        // What was asked for before the swap loses to it.
        reader.tickets.renew();
        onShapeChange?.([...shapeChanges(live?.spec, build.spec), ...(live ? [rebuilt(build.spec)] : [])]);
        await refreshViews(replica);
        await shapes.reload();
        return;
      }
    } catch (error) {
      const isStale = isBasetideError(error, "shape_changed");
      if (!isStale && !isBasetideError(error, "replica_busy")) throw error;
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

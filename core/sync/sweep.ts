/**
 * Sweeps one table: reads all its records, writes those that changed, deletes those that are gone.
 *
 * I1, I2. Every page carries a ticket, and so loses to whatever was applied to a record after it was asked for.
 * I3. A sweep that starts when the source is quiet leaves the table equal to the source.
 */
import { applyImages, type CellIssue, journalSince, mapRecords, type Replica, rowIds } from "../replica";
import type { RecordPage, SourceTable } from "../source/types";
import type { TableMemory } from "./memory";
import { type Reader, readTable, restarting } from "./reader";
import { recordFingerprint } from "./record-fingerprint";

/** How often a sweep starts over within one sync when the source loses its place. */
const MAX_STARTS = 5;
/** Deletions per statement. */
const DELETE_BATCH = 1000;

export interface TableOutcome {
  /** Records that the source has. */
  seen: number;
  inserted: number;
  updated: number;
  deleted: number;
  /** The read missed too much to be believed at once: the table is to be read again before the sync is complete. */
  isHeld: boolean;
}

export interface Sweep {
  replica: Replica;
  reader: Reader;
  epoch: number;
  /** Told after each page how many records have been read. */
  onProgress: (recordsDone: number) => void;
}

/** Sweeps `source` into its live table. */
export function sweepTable(sweep: Sweep, source: SourceTable, table: TableMemory): Promise<TableOutcome> {
  return restarting(MAX_STARTS, () => sweepOnce(sweep, source, table));
}

async function sweepOnce(sweep: Sweep, source: SourceTable, table: TableMemory): Promise<TableOutcome> {
  const { replica, reader, epoch } = sweep;
  const { fingerprints } = table;
  const outcome: TableOutcome = { seen: 0, inserted: 0, updated: 0, deleted: 0, isHeld: false };
  // Before the journal is read: what is applied from now on is either in there or has a greater stamp.
  const firstTicket = await reader.tickets.current();
  await expectJournalled(replica, table);
  fingerprints.beginPass();
  for await (const { page, ticket } of readTable(reader, source)) {
    const changed = changedRecords(page, table);
    if (changed.length > 0) {
      const issues: CellIssue[] = [];
      const records = changed.map((index) => page.record(index));
      const rows = mapRecords(table.map, records, issues);
      const applied = await applyImages(replica, table.live, { epoch, ticket, rows, gone: [], issues });
      outcome.inserted += applied.inserted;
      outcome.updated += applied.updated;
      const lost = new Set(applied.lost);
      for (const index of changed) {
        const id = page.id(index);
        if (lost.has(id)) fingerprints.expect(id);
        else fingerprints.learn(id, recordFingerprint(page, index));
      }
    }
    sweep.onProgress(fingerprints.seen);
  }
  outcome.seen = fingerprints.seen;
  if (!table.isComplete || fingerprints.size > fingerprints.seen) {
    const deleted = await deleteUnseen(sweep, table, firstTicket);
    outcome.isHeld = deleted === "held";
    outcome.deleted = deleted === "held" ? 0 : deleted;
  }
  if (!outcome.isHeld) {
    fingerprints.forgetUnseen();
    table.isComplete = true;
  }
  return outcome;
}

/** Records that others wrote since the last sweep are compared in SQL, and missed if the source lacks them. */
async function expectJournalled(replica: Replica, table: TableMemory): Promise<void> {
  for (const entry of await journalSince(replica, table.live.spec.tableId, table.journalStamp)) {
    table.fingerprints.expect(entry.recordId);
    table.journalStamp = Math.max(table.journalStamp, entry.stamp);
  }
}

/** Indices of the page's records that are not known to be in the replica as they are. */
function changedRecords(page: RecordPage, { fingerprints }: TableMemory): number[] {
  const changed: number[] = [];
  for (let index = 0; index < page.size; index++) {
    if (!fingerprints.see(page.id(index), recordFingerprint(page, index))) changed.push(index);
  }
  return changed;
}

/** Deletes the rows that this pass did not see; those written after `firstTicket` are not its to judge. */
async function deleteUnseen(
  { replica, epoch }: Sweep,
  table: TableMemory,
  firstTicket: number,
): Promise<number | "held"> {
  const unseen: string[] = [];
  let total = 0;
  for await (const ids of rowIds(replica, table.live)) {
    total += ids.length;
    for (const id of ids) if (!table.fingerprints.hasSeen(id)) unseen.push(id);
  }
  if (!table.massDeletion.confirms(unseen.length, total, performance.now())) return "held";
  let deleted = 0;
  for (let from = 0; from < unseen.length; from += DELETE_BATCH) {
    const gone = unseen.slice(from, from + DELETE_BATCH);
    const applied = await applyImages(replica, table.live, {
      epoch,
      ticket: firstTicket,
      rows: [],
      gone,
      issues: [],
    });
    deleted += applied.deleted;
  }
  return deleted;
}

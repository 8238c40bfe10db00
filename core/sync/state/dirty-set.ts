/**
 * The changes that the feed has reported and that are not in the replica yet: records to be read again, by table.
 *
 * L1. The durable cursor never passes a change that is not acknowledged: a reader that starts from it receives all
 * that waits.
 * L2. A record that is named while it is being read is read once more, because the answer may be older.
 */

import { Notifier } from "../../async";
import { strictest } from "../../source";
import { CursorCounts, type DirtyEntry, type DirtyRecord, mergeEntries } from "./dirty-entries";

/** Maximum number of ids per request. */
export const MAX_BATCH = strictest().pageSize;

/** Entries that are in progress. Each must be acknowledged, requeued or deferred. */
export interface DirtyBatch {
  tableId: string;
  entries: Map<string, DirtyEntry>;
}

interface DirtyTable {
  direct: Map<string, DirtyEntry>;
  dependent: Map<string, DirtyEntry>;
  /** Entries to be read later: no live batch waits for them. */
  deferred: Map<string, { entry: DirtyEntry; untilMs: number }>;
  /** How many entries hold each cursor, and how many of those are deferred. */
  held: CursorCounts;
  heldDeferred: CursorCounts;
  inProgress: Set<DirtyBatch>;
  /** The whole table must be swept, for a change that names no records. */
  whole: Suspicion | null;
  /** The table's schema may have changed. */
  suspect: Suspicion | null;
}

interface Suspicion {
  cursor: number;
  sequence: number;
}

export class DirtySet {
  /** Notified when there may be something to work on, a table needs a schema check, or a cursor may have advanced. */
  readonly wake = new Notifier();
  #tables = new Map<string, DirtyTable>();
  #aside: ReadonlySet<string> = new Set();
  #sequence = 0;
  #readCursor = 0;

  /** The cursor that the feed must be read from next. */
  get readCursor(): number {
    return this.#readCursor;
  }

  /** All changes before it are acknowledged. */
  get durableCursor(): number {
    return this.#least(([, { held }]) => held.least());
  }

  /** The same, ignoring deferred entries, and those of tables that were set aside. */
  get batchCursor(): number {
    return this.#least(([id, { held, heldDeferred }]) =>
      this.#aside.has(id) ? Number.POSITIVE_INFINITY : held.least(heldDeferred),
    );
  }

  #least(leastOf: (table: [string, DirtyTable]) => number): number {
    return Math.min(this.#readCursor, ...[...this.#tables].map(leastOf));
  }

  /** Number of entries that are not acknowledged. */
  get size(): number {
    return this.#tables.values().reduce((sum, { held }) => sum + held.total, 0);
  }

  /** The same without tables that were set aside. */
  get waiting(): number {
    return this.#tables
      .entries()
      .reduce((sum, [id, { held }]) => sum + (this.#aside.has(id) ? 0 : held.total), 0);
  }

  /** Sets tables aside that cannot be read, and only these: their entries stay, but no live batch waits for them. */
  setAside(tableIds: readonly string[]): void {
    const aside = new Set(tableIds);
    if (aside.symmetricDifference(this.#aside).size === 0) return;
    this.#aside = aside;
    this.wake.notify();
  }

  /** Entries that are named from now on have a greater sequence. */
  get sequence(): number {
    return this.#sequence;
  }

  /**
   * Begins a feed batch that was read from `from`: the end of the previous one, or the durable cursor if the reader
   * starts over.
   */
  beginBatch(from: number): void {
    this.#readCursor = from;
  }

  /** Ends a feed batch: all its changes have been named. */
  endBatch(cursor: number): void {
    this.#readCursor = cursor;
    this.wake.notify();
  }

  /** Names a record, and merges this with an entry that already waits for it. */
  add(tableId: string, recordId: string, named: DirtyRecord): void {
    const waiting = this.#waiting(tableId);
    const known = this.#remove(waiting, recordId);
    const entry: DirtyEntry = { ...named, sequence: ++this.#sequence, absences: 0 };
    this.#put(waiting, recordId, known ? mergeEntries(known, entry) : entry);
  }

  /**
   * Records that the feed has been read to its end: no later change in it restores a record that it last reported as
   * destroyed, so such a record need not be read again.
   *
   * @param readVersion one from before the end; see `DirtyRecord`
   */
  endFeed(readVersion: number): void {
    for (const { direct } of this.#tables.values()) {
      for (const entry of direct.values()) {
        if (entry.why === "destroyed" && !entry.isReturned) entry.readVersion ??= readVersion;
      }
    }
  }

  /** Requests a sweep of the table. */
  addTable(tableId: string, cursor: number): void {
    const waiting = this.#waiting(tableId);
    waiting.whole = this.#hold(waiting, waiting.whole, cursor);
    this.wake.notify();
  }

  /** Requests a schema check before the table is worked on. */
  suspect(tableId: string, cursor: number): void {
    const waiting = this.#waiting(tableId);
    waiting.suspect = this.#hold(waiting, waiting.suspect, cursor);
    this.wake.notify();
  }

  /** Returns the tables that need a schema check. */
  suspected(): string[] {
    return [...this.#tables].flatMap(([id, { suspect }]) => (suspect ? [id] : []));
  }

  isSuspect(tableId: string): boolean {
    return Boolean(this.#tables.get(tableId)?.suspect);
  }

  /** Acknowledges suspicions: the schema was requested after `sequence`, and its consequences have been named. */
  ackSuspects(sequence: number): void {
    for (const waiting of this.#tables.values()) {
      if (!waiting.suspect || waiting.suspect.sequence > sequence) continue;
      waiting.held.remove(waiting.suspect.cursor);
      waiting.suspect = null;
    }
    this.wake.notify();
  }

  #hold({ held }: DirtyTable, known: Suspicion | null, cursor: number): Suspicion {
    const sequence = ++this.#sequence;
    if (known) return { cursor: known.cursor, sequence };
    held.add(cursor);
    return { cursor, sequence };
  }

  /** Returns the tables that can be worked on now, those with direct entries first. */
  tables(): string[] {
    const open = [...this.#tables].filter(([, { direct, dependent, whole }]) => {
      return direct.size + dependent.size > 0 || whole;
    });
    const isDirect = ([, { direct }]: (typeof open)[number]) => Number(direct.size > 0);
    return open.toSorted((a, b) => isDirect(b) - isDirect(a)).map(([id]) => id);
  }

  /** Returns the tables with waiting entries, including deferred ones. */
  waitingTables(): string[] {
    return [...this.#tables].flatMap(([id, { direct, dependent, deferred, whole }]) =>
      direct.size + dependent.size + deferred.size > 0 || whole ? [id] : [],
    );
  }

  /**
   * Counts the waiting entries of a table, without deferred ones and those in progress; `destroyed` is a part of
   * `records`.
   */
  counts(tableId: string): { records: number; destroyed: number; isWhole: boolean } {
    const waiting = this.#tables.get(tableId);
    if (!waiting) return { records: 0, destroyed: 0, isWhole: false };
    const { direct, dependent, whole } = waiting;
    let destroyed = 0;
    for (const { why } of direct.values()) if (why === "destroyed") destroyed++;
    return { records: direct.size + dependent.size, destroyed, isWhole: whole !== null };
  }

  /** Returns the created, changed and destroyed records that wait, without deferred ones and those in progress. */
  direct(tableId: string): [string, DirtyRecord][] {
    return [...(this.#tables.get(tableId)?.direct ?? [])];
  }

  /** Returns whether the record waits, is deferred or is in progress. */
  has(tableId: string, recordId: string): boolean {
    const waiting = this.#tables.get(tableId);
    if (!waiting) return false;
    const { direct, dependent, deferred, inProgress } = waiting;
    if (direct.has(recordId) || dependent.has(recordId) || deferred.has(recordId)) return true;
    return [...inProgress].some(({ entries }) => entries.has(recordId));
  }

  /** Takes all destroyed records that need not be read again; undefined if there are none. */
  takeDestroyed(tableId: string): DirtyBatch | undefined {
    return this.#take(
      tableId,
      Number.POSITIVE_INFINITY,
      ["direct"],
      (entry) => entry.readVersion !== undefined,
    );
  }

  /**
   * Takes up to MAX_BATCH records of a table that must be read again, direct ones first; undefined if there are none.
   */
  take(tableId: string): DirtyBatch | undefined {
    return this.#take(
      tableId,
      MAX_BATCH,
      ["direct", "dependent"],
      (entry) => entry.readVersion === undefined,
    );
  }

  #take(
    tableId: string,
    atMost: number,
    queues: ("direct" | "dependent")[],
    isWanted: (entry: DirtyEntry) => boolean,
  ): DirtyBatch | undefined {
    const waiting = this.#waiting(tableId);
    const entries = new Map<string, DirtyEntry>();
    for (const queue of queues.map((name) => waiting[name])) {
      for (const [id, entry] of queue) {
        if (entries.size >= atMost) break;
        if (!isWanted(entry)) continue;
        queue.delete(id);
        entries.set(id, entry);
      }
    }
    if (entries.size === 0) return undefined;
    const batch = { tableId, entries };
    waiting.inProgress.add(batch);
    return batch;
  }

  /** Acknowledges records of the batch: their changes are applied and durable. */
  ack(batch: DirtyBatch, recordIds: Iterable<string>): void {
    const { held } = this.#waiting(batch.tableId);
    for (const id of recordIds) {
      const entry = batch.entries.get(id);
      if (!entry) continue;
      batch.entries.delete(id);
      held.remove(entry.cursor);
    }
    this.#closeIfEmpty(batch);
    this.wake.notify();
  }

  /** Requeues records: they must be read once more. */
  requeue(batch: DirtyBatch, recordIds: Iterable<string> = [...batch.entries.keys()]): void {
    for (const id of recordIds) {
      const entry = batch.entries.get(id);
      if (!entry) continue;
      batch.entries.delete(id);
      this.#mergeBack(this.#waiting(batch.tableId), id, {
        ...entry,
        readVersion: undefined,
        early: undefined,
        isReturned: true,
      });
    }
    this.#closeIfEmpty(batch);
  }

  /** Defers a record that did not exist: it is read once more at `untilMs`. */
  defer(batch: DirtyBatch, recordId: string, untilMs: number): void {
    const entry = batch.entries.get(recordId);
    if (!entry) return;
    batch.entries.delete(recordId);
    const waiting = this.#waiting(batch.tableId);
    entry.absences++;
    entry.early = undefined;
    const queues = [waiting.direct, waiting.dependent, waiting.deferred];
    if (queues.some((queue) => queue.has(recordId))) {
      this.#mergeBack(waiting, recordId, entry);
    } else {
      waiting.deferred.set(recordId, { entry, untilMs });
      waiting.heldDeferred.add(entry.cursor);
    }
    this.#closeIfEmpty(batch);
    this.wake.notify();
  }

  /** Resumes deferred entries whose time has come. */
  resumeDeferred(nowMs: number): void {
    for (const waiting of this.#tables.values()) {
      for (const [id, { entry, untilMs }] of waiting.deferred) {
        if (untilMs > nowMs) continue;
        waiting.deferred.delete(id);
        waiting.heldDeferred.remove(entry.cursor);
        queueOf(waiting, entry).set(id, entry);
      }
    }
  }

  /**
   * Acknowledges a table that has been read completely, starting after `sequence`: all entries named until then,
   * except `except`.
   */
  ackTable(tableId: string, sequence: number, except: ReadonlySet<string>): void {
    const waiting = this.#tables.get(tableId);
    if (!waiting) return;
    for (const queue of [waiting.direct, waiting.dependent]) {
      for (const [id, entry] of queue) {
        if (entry.sequence > sequence || except.has(id)) continue;
        queue.delete(id);
        waiting.held.remove(entry.cursor);
      }
    }
    for (const [id, { entry }] of waiting.deferred) {
      if (entry.sequence > sequence || except.has(id)) continue;
      waiting.deferred.delete(id);
      waiting.heldDeferred.remove(entry.cursor);
      waiting.held.remove(entry.cursor);
    }
    if (waiting.whole && waiting.whole.sequence <= sequence) {
      waiting.held.remove(waiting.whole.cursor);
      waiting.whole = null;
    }
    this.wake.notify();
  }

  /** Acknowledges all entries of a table that the source no longer has. */
  forgetTable(tableId: string): void {
    this.ackTable(tableId, this.#sequence, new Set());
  }

  #waiting(tableId: string): DirtyTable {
    let waiting = this.#tables.get(tableId);
    if (!waiting) {
      const queues = { direct: new Map(), dependent: new Map(), deferred: new Map() };
      const counts = { held: new CursorCounts(), heldDeferred: new CursorCounts() };
      waiting = { ...queues, ...counts, inProgress: new Set(), whole: null, suspect: null };
      this.#tables.set(tableId, waiting);
    }
    return waiting;
  }

  #put(waiting: DirtyTable, recordId: string, entry: DirtyEntry): void {
    queueOf(waiting, entry).set(recordId, entry);
    waiting.held.add(entry.cursor);
    this.wake.notify();
  }

  /** Removes the waiting or deferred entry of a record; entries in progress stay. */
  #remove(
    { direct, dependent, deferred, held, heldDeferred }: DirtyTable,
    recordId: string,
  ): DirtyEntry | undefined {
    const put = deferred.get(recordId);
    const entry = direct.get(recordId) ?? dependent.get(recordId) ?? put?.entry;
    if (!entry) return undefined;
    if (put) heldDeferred.remove(entry.cursor);
    held.remove(entry.cursor);
    direct.delete(recordId);
    dependent.delete(recordId);
    deferred.delete(recordId);
    return entry;
  }

  /** Requeues an entry that was in progress, merged with a later one. */
  #mergeBack(waiting: DirtyTable, recordId: string, entry: DirtyEntry): void {
    const later = this.#remove(waiting, recordId);
    waiting.held.remove(entry.cursor);
    this.#put(waiting, recordId, later ? mergeEntries(entry, later) : entry);
  }

  #closeIfEmpty(batch: DirtyBatch): void {
    if (batch.entries.size === 0) this.#waiting(batch.tableId).inProgress.delete(batch);
  }
}

function queueOf(waiting: DirtyTable, { why }: DirtyEntry): Map<string, DirtyEntry> {
  return why === "dependent" ? waiting.dependent : waiting.direct;
}

/**
 * What the feed has told of and is not in the replica yet: records to be read again, by table.
 *
 * L1. The durable cursor never passes what is not settled: whoever reads on from it is told again of all that waits.
 * L2. A record that is named while it is being read again is read once more, since the answer may be older.
 */

/** Ids that one request reads. */
export const MAX_BATCH = 100;

export interface DirtyRecord {
  /** Cursor of the batch that named it first since it was last settled. */
  cursor: number;
  /**
   * `direct`: created or changed; `dependent`: hangs on one that was; `destroyed`: the feed says that it is gone.
   */
  why: "direct" | "dependent" | "destroyed";
  /** Fields whose cells changed; null: all. Of direct ones only. */
  fields: Set<string> | null;
  /** Created, and not known before: nobody had a link to it. */
  isNew?: boolean;
  /** Destroyed, as of the end of the feed: a read version of before that. It need not be read again, unless it loses. */
  readVersion?: number | undefined;
}

interface Entry extends DirtyRecord {
  /** When it was last named, in the order of namings. */
  sequence: number;
  /** How often it has been read and not been there. */
  absences: number;
  /** It was in hand and given back: it is to be read, whatever the feed says. */
  isReturned?: boolean;
}

/** Entries that somebody works on. They are to be settled or given back, each. */
export interface DirtyBatch {
  tableId: string;
  entries: Map<string, Entry>;
}

interface DirtyTable {
  direct: Map<string, Entry>;
  dependent: Map<string, Entry>;
  /** To be looked at later: no round waits for them. */
  deferred: Map<string, { entry: Entry; untilMs: number }>;
  inHand: Set<DirtyBatch>;
  /** The whole table is to be swept, for one who names no records. */
  whole: Suspicion | null;
  /** The table may have another shape than is known. */
  suspect: Suspicion | null;
}

interface Suspicion {
  cursor: number;
  sequence: number;
}

export class DirtySet {
  #tables = new Map<string, DirtyTable>();
  /** How many entries hold each cursor, and those among them that no round waits for. */
  #held = new Counts();
  #deferred = new Counts();
  #sequence = 0;
  #readCursor = 0;

  /** Where the feed is to be read next. */
  get readCursor(): number {
    return this.#readCursor;
  }

  /** Everything before it is settled. */
  get durableCursor(): number {
    return Math.min(this.#readCursor, this.#held.least());
  }

  /** The same but for deferred entries. */
  get batchCursor(): number {
    return Math.min(this.#readCursor, this.#held.least(this.#deferred));
  }

  /** Entries that are not settled. */
  get size(): number {
    return this.#held.total;
  }

  /** What is named from now on has a greater one. */
  get sequence(): number {
    return this.#sequence;
  }

  /** A batch was read from `from` on: not where the last one ended where a reader begins again with the durable one. */
  beginBatch(from: number): void {
    this.#readCursor = from;
  }

  /** All that the batch named has been named. */
  endBatch(cursor: number): void {
    this.#readCursor = cursor;
  }

  /** Names a record. What waits for it already waits no longer for that, nor for less. */
  add(tableId: string, recordId: string, named: DirtyRecord): void {
    const waiting = this.#waiting(tableId);
    const known = this.#remove(waiting, recordId);
    const entry: Entry = { ...named, sequence: ++this.#sequence, absences: 0 };
    this.#put(waiting, recordId, known ? merged(known, entry) : entry);
  }

  /**
   * The feed has been read to its end: nothing in it brings back what it last said to be destroyed, which need not be read
   * again.
   *
   * @param readVersion one of before the end; see `DirtyRecord`
   */
  endFeed(readVersion: number): void {
    for (const { direct } of this.#tables.values()) {
      for (const entry of direct.values()) {
        if (entry.why === "destroyed" && !entry.isReturned) entry.readVersion ??= readVersion;
      }
    }
  }

  /** The table is to be swept. */
  addTable(tableId: string, cursor: number): void {
    const waiting = this.#waiting(tableId);
    waiting.whole = this.#hold(waiting.whole, cursor);
  }

  /** The table's shape is to be looked at before it is worked on. */
  suspect(tableId: string, cursor: number): void {
    const waiting = this.#waiting(tableId);
    waiting.suspect = this.#hold(waiting.suspect, cursor);
  }

  /** Tables whose shape is to be looked at. */
  suspected(): string[] {
    return [...this.#tables].flatMap(([id, { suspect }]) => (suspect ? [id] : []));
  }

  isSuspect(tableId: string): boolean {
    return Boolean(this.#tables.get(tableId)?.suspect);
  }

  /** The schema was asked for after `sequence`, and what follows from it has been named. */
  ackSuspects(sequence: number): void {
    for (const waiting of this.#tables.values()) {
      if (!waiting.suspect || waiting.suspect.sequence > sequence) continue;
      this.#held.remove(waiting.suspect.cursor);
      waiting.suspect = null;
    }
  }

  #hold(known: Suspicion | null, cursor: number): Suspicion {
    const sequence = ++this.#sequence;
    if (known) return { cursor: known.cursor, sequence };
    this.#held.add(cursor);
    return { cursor, sequence };
  }

  /** Tables with something that can be worked on now, those with direct entries first. */
  tables(): string[] {
    const open = [...this.#tables].filter(([, { direct, dependent, whole }]) => {
      return direct.size + dependent.size > 0 || whole;
    });
    const isDirect = ([, { direct }]: (typeof open)[number]) => Number(direct.size > 0);
    return open.toSorted((a, b) => isDirect(b) - isDirect(a)).map(([id]) => id);
  }

  /** Tables with anything that waits, if only to be looked at later. */
  waitingTables(): string[] {
    return [...this.#tables].flatMap(([id, { direct, dependent, deferred, whole }]) =>
      direct.size + dependent.size + deferred.size > 0 || whole ? [id] : [],
    );
  }

  /** How much waits of a table, without what is deferred or in hand; of `records`, so many are said to be destroyed. */
  counts(tableId: string): { records: number; destroyed: number; isWhole: boolean } {
    const waiting = this.#tables.get(tableId);
    if (!waiting) return { records: 0, destroyed: 0, isWhole: false };
    const { direct, dependent, whole } = waiting;
    let destroyed = 0;
    for (const { why } of direct.values()) if (why === "destroyed") destroyed++;
    return { records: direct.size + dependent.size, destroyed, isWhole: whole !== null };
  }

  /** Created, changed and destroyed records that wait, without what is deferred or in hand. */
  direct(tableId: string): [string, DirtyRecord][] {
    return [...(this.#tables.get(tableId)?.direct ?? [])];
  }

  /** Does anything wait for this record, or is somebody working on it? */
  has(tableId: string, recordId: string): boolean {
    const waiting = this.#tables.get(tableId);
    if (!waiting) return false;
    const { direct, dependent, deferred, inHand } = waiting;
    if (direct.has(recordId) || dependent.has(recordId) || deferred.has(recordId)) return true;
    return [...inHand].some(({ entries }) => entries.has(recordId));
  }

  /** The destroyed ones that need not be read again, all of them; undefined if there are none. */
  takeDestroyed(tableId: string): DirtyBatch | undefined {
    return this.#take(
      tableId,
      Number.POSITIVE_INFINITY,
      ["direct"],
      (entry) => entry.readVersion !== undefined,
    );
  }

  /** Up to BATCH records of a table to be read again, direct ones first; undefined if there are none. */
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
    lines: ("direct" | "dependent")[],
    isWanted: (entry: Entry) => boolean,
  ): DirtyBatch | undefined {
    const waiting = this.#waiting(tableId);
    const entries = new Map<string, Entry>();
    for (const line of lines.map((name) => waiting[name])) {
      for (const [id, entry] of line) {
        if (entries.size >= atMost) break;
        if (!isWanted(entry)) continue;
        line.delete(id);
        entries.set(id, entry);
      }
    }
    if (entries.size === 0) return undefined;
    const batch = { tableId, entries };
    waiting.inHand.add(batch);
    return batch;
  }

  /** These records of the batch are as the feed told, and durable. */
  ack(batch: DirtyBatch, recordIds: Iterable<string>): void {
    for (const id of recordIds) {
      const entry = batch.entries.get(id);
      if (!entry) continue;
      batch.entries.delete(id);
      this.#held.remove(entry.cursor);
    }
    this.#letGo(batch);
  }

  /** These are to be read, once more. */
  requeue(batch: DirtyBatch, recordIds: Iterable<string> = [...batch.entries.keys()]): void {
    for (const id of recordIds) {
      const entry = batch.entries.get(id);
      if (!entry) continue;
      batch.entries.delete(id);
      this.#return(this.#waiting(batch.tableId), id, { ...entry, readVersion: undefined, isReturned: true });
    }
    this.#letGo(batch);
  }

  /** This one was not there: it is to be read once more at `untilMs`. */
  defer(batch: DirtyBatch, recordId: string, untilMs: number): void {
    const entry = batch.entries.get(recordId);
    if (!entry) return;
    batch.entries.delete(recordId);
    const waiting = this.#waiting(batch.tableId);
    entry.absences++;
    const lines = [waiting.direct, waiting.dependent, waiting.deferred];
    if (lines.some((line) => line.has(recordId))) {
      this.#return(waiting, recordId, entry);
    } else {
      waiting.deferred.set(recordId, { entry, untilMs });
      this.#deferred.add(entry.cursor);
    }
    this.#letGo(batch);
  }

  /** Parked entries whose time has come wait again. @returns how long until the next one's comes, ms */
  resumeDeferred(nowMs: number): number {
    let nextMs = Number.POSITIVE_INFINITY;
    for (const waiting of this.#tables.values()) {
      for (const [id, { entry, untilMs }] of waiting.deferred) {
        if (untilMs > nowMs) nextMs = Math.min(nextMs, untilMs - nowMs);
        else {
          waiting.deferred.delete(id);
          this.#deferred.remove(entry.cursor);
          lineOf(waiting, entry).set(id, entry);
        }
      }
    }
    return nextMs;
  }

  /** The table has been read whole, from after `sequence` on: what was named until then is settled, but for `except`. */
  ackTable(tableId: string, sequence: number, except: ReadonlySet<string>): void {
    const waiting = this.#tables.get(tableId);
    if (!waiting) return;
    for (const line of [waiting.direct, waiting.dependent]) {
      for (const [id, entry] of line) {
        if (entry.sequence > sequence || except.has(id)) continue;
        line.delete(id);
        this.#held.remove(entry.cursor);
      }
    }
    for (const [id, { entry }] of waiting.deferred) {
      if (entry.sequence > sequence || except.has(id)) continue;
      waiting.deferred.delete(id);
      this.#deferred.remove(entry.cursor);
      this.#held.remove(entry.cursor);
    }
    if (waiting.whole && waiting.whole.sequence <= sequence) {
      this.#held.remove(waiting.whole.cursor);
      waiting.whole = null;
    }
  }

  /** The source has the table no more: what waits of it is settled. */
  forgetTable(tableId: string): void {
    this.ackTable(tableId, this.#sequence, new Set());
  }

  #waiting(tableId: string): DirtyTable {
    let waiting = this.#tables.get(tableId);
    if (!waiting) {
      const lines = { direct: new Map(), dependent: new Map(), deferred: new Map() };
      waiting = { ...lines, inHand: new Set(), whole: null, suspect: null };
      this.#tables.set(tableId, waiting);
    }
    return waiting;
  }

  #put(waiting: DirtyTable, recordId: string, entry: Entry): void {
    lineOf(waiting, entry).set(recordId, entry);
    this.#held.add(entry.cursor);
  }

  /** Takes out what waits of a record; what is in hand stays. */
  #remove({ direct, dependent, deferred }: DirtyTable, recordId: string): Entry | undefined {
    const put = deferred.get(recordId);
    const entry = direct.get(recordId) ?? dependent.get(recordId) ?? put?.entry;
    if (!entry) return undefined;
    if (put) this.#deferred.remove(entry.cursor);
    this.#held.remove(entry.cursor);
    direct.delete(recordId);
    dependent.delete(recordId);
    deferred.delete(recordId);
    return entry;
  }

  /** Puts back what was in hand, to what has been named meanwhile. */
  #return(waiting: DirtyTable, recordId: string, entry: Entry): void {
    const later = this.#remove(waiting, recordId);
    this.#held.remove(entry.cursor);
    this.#put(waiting, recordId, later ? merged(entry, later) : entry);
  }

  #letGo(batch: DirtyBatch): void {
    if (batch.entries.size === 0) this.#waiting(batch.tableId).inHand.delete(batch);
  }
}

function lineOf(waiting: DirtyTable, { why }: Entry): Map<string, Entry> {
  return why === "dependent" ? waiting.dependent : waiting.direct;
}

/** What is to be done where both are told of a record, one after the other. */
function merged(earlier: Entry, later: Entry): Entry {
  const cursor = Math.min(earlier.cursor, later.cursor);
  // What hangs on a change does not undo a change of its own, or a destruction.
  if (later.why === "dependent") return { ...earlier, cursor, sequence: later.sequence };
  if (later.why === "destroyed" || earlier.why === "dependent") return { ...later, cursor };
  const fields = earlier.why === "direct" ? union(earlier.fields, later.fields) : null;
  return { ...later, cursor, fields, isNew: earlier.isNew === true };
}

function union(a: Set<string> | null, b: Set<string> | null): Set<string> | null {
  return a && b ? a.union(b) : null;
}

/** How many entries there are of each cursor: few cursors, many entries. */
class Counts {
  #counts = new Map<number, number>();
  total = 0;

  add(cursor: number): void {
    this.#counts.set(cursor, (this.#counts.get(cursor) ?? 0) + 1);
    this.total++;
  }

  remove(cursor: number): void {
    const left = this.#counts.get(cursor)! - 1;
    if (left > 0) this.#counts.set(cursor, left);
    else this.#counts.delete(cursor);
    this.total--;
  }

  /** The least cursor that has more here than in `without`. */
  least(without?: Counts): number {
    let least = Number.POSITIVE_INFINITY;
    for (const [cursor, count] of this.#counts) {
      if (count > (without ? (without.#counts.get(cursor) ?? 0) : 0)) least = Math.min(least, cursor);
    }
    return least;
  }
}

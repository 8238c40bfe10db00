/** One record of the dirty set: why it must be read again, and how two reports of the same record are merged. */

export interface DirtyRecord {
  /** Cursor of the feed batch that first named it since it was last acknowledged. */
  cursor: number;
  /**
   * `direct`: created or changed; `dependent`: depends on such a record; `destroyed`: reported as deleted by the feed.
   */
  why: "direct" | "dependent" | "destroyed";
  /** Fields whose cells changed; null: all. Only for direct ones. */
  fields: Set<string> | null;
  /** Created, and not known before: no record linked to it. */
  isNew?: boolean;
  /**
   * Destroyed, as of the end of the feed: a read version from before that. The record need not be read again, unless
   * it loses.
   */
  readVersion?: number | undefined;
}

export interface DirtyEntry extends DirtyRecord {
  /** When it was last named: a position in the order in which records are named. */
  sequence: number;
  /** How often it was read and did not exist. */
  absences: number;
  /** True if it was in progress and was requeued: it must be read, whatever the feed reports. */
  isReturned?: boolean;
}

/** Merges two entries of the same record, named one after the other. */
export function mergeEntries(earlier: DirtyEntry, later: DirtyEntry): DirtyEntry {
  const cursor = Math.min(earlier.cursor, later.cursor);
  // A dependent entry does not replace a direct or destroyed one.
  if (later.why === "dependent") return { ...earlier, cursor, sequence: later.sequence };
  if (later.why === "destroyed" || earlier.why === "dependent") return { ...later, cursor };
  const fields = earlier.why === "direct" ? union(earlier.fields, later.fields) : null;
  return { ...later, cursor, fields, isNew: earlier.isNew === true };
}

function union(a: Set<string> | null, b: Set<string> | null): Set<string> | null {
  return a && b ? a.union(b) : null;
}

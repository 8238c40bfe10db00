/** Reads `_sync_issues`: the cells that did not fit, and the objects that a rebuild could not carry over. */
import { onReplica } from "./connection";
import { storable } from "./map-record-text";
import type { Replica } from "./replica";

interface ReplicaIssue {
  /** SQL name of the table. In an issue without a record it may name a view or describe another object. */
  table: string;
  /** Empty if the issue is not about a cell but about an object of a customer. */
  record_id: string;
  /** SQL name of the column. Without a record: the object that the table has lost, such as `index orders_by_price`. */
  column: string;
  /** The cell's value in the source. Without a record: the statements that recreate the lost object. */
  value: string;
  reason: string;
}

/** Issues reported one by one; the rest are only counted. */
const SHOWN = 100;

/** Returns the number of issues and the latest of them, starting with those that only the customer can resolve. */
export function readIssues({ sql, swap }: Replica): Promise<{ total: number; latest: ReplicaIssue[] }> {
  return onReplica(async () => {
    const rows = await sql<(ReplicaIssue & { total: number })[]>`
      select table_name as table, record_id, field as column, value, reason, (count(*) over ()) as total
      from ${sql.unsafe(swap)}._sync_issues
      order by record_id <> '', seen_at desc, table_name, record_id, field limit ${SHOWN}`;
    return { total: rows[0]?.total ?? 0, latest: rows.map(({ total: _, ...issue }) => issue) };
  });
}

/** A part of the source's answers that cannot be read. */
export interface UnreadableIssue {
  /** SQL name of the table. */
  table: string;
  /** Empty for a definition, and for a record whose id cannot be read. */
  recordId: string;
  /** Empty for a record; otherwise what it is: `field fldA`, `table tblA`, `record`. */
  field: string;
  reason: string;
}

/**
 * Records unreadable parts.
 *
 * @param replaced what these are all of, and so replace: everything, definitions, or records of the table without an
 *   id; or `more`: they replace nothing
 * @throws BasetideError `lease_lost`, `replica_unavailable`
 */
export async function recordUnreadable(
  { sql, swap }: Replica,
  epoch: number,
  replaced: "all" | "definitions" | "records" | "more",
  table: string | null,
  issues: UnreadableIssue[],
): Promise<void> {
  const rows = issues.map((issue) => ({
    table_name: storable(issue.table),
    record_id: issue.recordId,
    field: storable(issue.field),
    reason: storable(issue.reason),
  }));
  await onReplica(
    () => sql`
      select ${sql.unsafe(swap)}.record_unreadable(${epoch}, ${replaced}, ${table}, ${JSON.stringify(rows)}::text::json)`,
  );
}

/** Returns the issues of these records of a table. */
export function issuesOf({ sql, swap }: Replica, table: string, ids: string[]): Promise<ReplicaIssue[]> {
  return onReplica(
    () => sql<ReplicaIssue[]>`
      select table_name as table, record_id, field as column, value, reason from ${sql.unsafe(swap)}._sync_issues
      where table_name = ${table} and record_id = any (${ids}::text[])`,
  );
}

/** Reads `_sync_issues`: the cells that did not fit, and what a rebuild could not carry over. */
import { onReplica } from "./connection";
import type { Replica } from "./replica";

export interface ReplicaIssue {
  /** SQL name of the table; without a record it may be that of a view, or the description of another object. */
  table: string;
  /** Empty: not about a cell, but about something that a customer has made. */
  record_id: string;
  /** SQL name of the column; without a record what it is that the table no longer has: `index orders_by_price`. */
  column: string;
  /** The cell's value in the source; without a record the statements that make what is missing. */
  value: string;
  reason: string;
}

/** Issues told of one by one; of the others there is the count. */
const SHOWN = 100;

/** How many issues the replica has, and the latest of them; first those that only the customer can settle. */
export function readIssues({ sql, swap }: Replica): Promise<{ total: number; latest: ReplicaIssue[] }> {
  return onReplica(async () => {
    const rows = await sql<(ReplicaIssue & { total: number })[]>`
      select table_name as table, record_id, field as column, value, reason, (count(*) over ()) as total
      from ${sql.unsafe(swap)}._sync_issues
      order by record_id <> '', seen_at desc, table_name, record_id, field limit ${SHOWN}`;
    return { total: rows[0]?.total ?? 0, latest: rows.map(({ total: _, ...issue }) => issue) };
  });
}

/** The issues of these records of a table. */
export function issuesOf({ sql, swap }: Replica, table: string, ids: string[]): Promise<ReplicaIssue[]> {
  return onReplica(
    () => sql<ReplicaIssue[]>`
      select table_name as table, record_id, field as column, value, reason from ${sql.unsafe(swap)}._sync_issues
      where table_name = ${table} and record_id = any (${ids}::text[])`,
  );
}

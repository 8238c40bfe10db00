/** Reads `_sync_issues`: the cells that did not fit. */
import { onReplica } from "./connection";
import type { Replica } from "./replica";

export interface ReplicaIssue {
  /** SQL name of the table. */
  table: string;
  record_id: string;
  /** SQL name of the column. */
  column: string;
  value: string;
  reason: string;
}

/** Issues told of one by one; of the others there is the count. */
const SHOWN = 100;

/** How many issues the replica has, and the latest of them. */
export function readIssues({ sql, schema }: Replica): Promise<{ total: number; latest: ReplicaIssue[] }> {
  return onReplica(async () => {
    const rows = await sql<(ReplicaIssue & { total: number })[]>`
      select table_name as table, record_id, field as column, value, reason, (count(*) over ()) as total
      from ${sql.unsafe(schema)}._sync_issues order by seen_at desc, table_name, record_id, field limit ${SHOWN}`;
    return { total: rows[0]?.total ?? 0, latest: rows.map(({ total: _, ...issue }) => issue) };
  });
}

/** Reads `_sync_issues`: the cells that did not fit, and the objects that a rebuild could not carry over. */
import { onReplica } from "./connection";
import { ownReasons } from "./issue-reasons";
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

/** Issues of one field, for one reason. The names are as in JSON. */
export interface IssueGroup extends ReplicaIssue {
  /**
   * `value`: values that are lost or were changed, because they do not fit their column. `formula`: errors that the
   * source has in place of a value. `unreadable`: parts of the source's answers that cannot be read. `object`: an
   * object of a customer that a table has lost. The record and the value are an example.
   */
  kind: "value" | "formula" | "unreadable" | "object";
  count: number;
  /** The source's id of the table, and of the field; null if the issues are of none. */
  table_id: string | null;
  field_id: string | null;
}

/** Groups that are reported; the issues of the rest are only counted. */
const MOST_GROUPS = 200;

/** Returns the number of issues, and their largest groups: first those that only the customer can resolve. */
export function readIssues({ sql, swap }: Replica): Promise<{ total: number; groups: IssueGroup[] }> {
  const own = sql.unsafe(swap);
  return onReplica(async () => {
    const rows = await sql<(IssueGroup & { total: number })[]>`
      with issues as (
        select *, case
          when reason like 'unreadable: %' then 'unreadable'
          when record_id = '' then 'object'
          when reason = any (${[...ownReasons]}::text[]) then 'value'
          else 'formula' end as kind
        from ${own}._sync_issues
      ), groups as (
        select table_name, field, reason, kind, count(*)::integer as count, min(record_id) as record_id,
          (sum(count(*)) over ())::integer as total, array_position('{object,unreadable,value}'::text[], kind) as rank
        from issues group by table_name, field, reason, kind
        order by rank, count desc, table_name, field, reason limit ${MOST_GROUPS}
      )
      select g.kind, g.table_name as table, g.field as column, g.reason, g.count, g.record_id, i.value,
        t.table_id, f.field_id, g.total
      from groups as g
      join ${own}._sync_issues as i
        on (i.table_name, i.record_id, i.field) = (g.table_name, g.record_id, g.field)
      left join ${own}._tables as t on t.name = g.table_name
      left join lateral (
        select c ->> 'fieldId' as field_id from jsonb_array_elements(t.spec -> 'columns') as c
        where c ->> 'name' = g.field limit 1
      ) as f on true
      order by g.rank, g.count desc, g.table_name, g.field, g.reason`;
    return { total: rows[0]?.total ?? 0, groups: rows.map(({ total: _, ...group }) => group) };
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

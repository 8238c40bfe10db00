/**
 * Reads the recorded changes of a schema for a role that may read only some columns.
 *
 * I8. `_sync_history` has the cells of all columns, under the names of their time. What is returned are values of columns
 * that the role may read now, from when their name has meant them: names are used again, and columns become hashes.
 */
import { BasetideError } from "../errors";
import { jsonParameter } from "../postgres";
import { SAFE_SEARCH_PATH } from "./connection";
import { type ReaderLimits, type ReaderTarget, withReader } from "./reader-session";

export interface AskedChanges {
  /** The role whose rights count. */
  role: string;
  /** By the source's ids: no other column is read, whatever the role may read. */
  columns: { tableId: string; fieldIds: string[] }[];
  recordId?: string | undefined;
  /** ISO 8601. */
  since?: string | undefined;
  /** The place of a change: only those that follow it in the order. */
  after?: string | undefined;
  isOldestFirst: boolean;
  limit: number;
  /** Of all values together: the first change beyond is left out, with those after it. */
  mostBytes: number;
  /** Of the values of one change: a larger one comes without them. */
  mostBytesEach: number;
}

interface ReadChange {
  /** In the history. */
  place: string;
  /** ISO 8601, UTC, with microseconds. */
  at: string;
  table: string;
  record: string;
  operation: "insert" | "update" | "delete";
  by: string;
  old: Record<string, unknown> | null;
  new: Record<string, unknown> | null;
  /** Its values are too large to be returned. */
  isTooLarge: boolean;
}

export interface ReadChanges {
  /** False: nothing is recorded in this schema. */
  isRecorded: boolean;
  changes: ReadChange[];
  isCut: boolean;
  /** Ids of the asked tables of which the role may read nothing: they were made again since it was granted its reads. */
  lacking: string[];
}

/** The id of the history, which begins again at 1 if it is made again, and that of a change. */
const PLACE = /^(\d{1,10})-(\d{1,18})$/;

/**
 * In the order of ids, a transaction that is still open can add a change before one that is there: from the oldest on,
 * changes since it began are left out, so that none is passed over.
 *
 * @param target as the owner of the schema: the history is read where no other role can put anything in its place
 * @throws BasetideError `invalid_request`, `query_stopped`, `replica_unavailable`
 */
export function readChanges(
  target: ReaderTarget,
  limits: ReaderLimits,
  asked: AskedChanges,
): Promise<ReadChanges> {
  return withReader(target, limits, async ({ sql, schema, swap }) => {
    await sql.unsafe(`set local search_path = ${SAFE_SEARCH_PATH}`);
    const [state] = await sql.unsafe<{ has: boolean; history: string | null; settled: string }[]>(
      `select s.history and h.oid is not null and to_regclass($2) is not null as has, h.oid::text as history,
         least(clock_timestamp(), (
           select min(a.xact_start) from pg_locks as l join pg_stat_activity as a using (pid)
           where a.datname = current_database() and l.relation = h.oid and l.mode = 'RowExclusiveLock'))::text as settled
       from ${swap}._state as s left join pg_class as h on h.oid = to_regclass($1)`,
      [`${schema}._sync_history`, `${swap}._sync_history`],
    );
    if (!state?.has) return { isRecorded: false, changes: [], isCut: false, lacking: [] };
    const [, history, afterId] = PLACE.exec(asked.after ?? "") ?? [];
    if (asked.after !== undefined && history !== state.history)
      throw new BasetideError(
        "invalid_request",
        "`after` is not of this history, which may have begun again. Read from a time on, with `since`",
      );
    const values = [
      jsonParameter(asked.columns),
      asked.role,
      schema,
      asked.recordId ?? null,
      asked.since ?? null,
      asked.limit + 1,
      asked.mostBytes,
      asked.mostBytesEach,
      afterId ?? null,
      asked.isOldestFirst ? state.settled : "infinity",
      state.history,
    ];
    const [order, follows] = asked.isOldestFirst ? ["asc", ">"] : ["desc", "<"];
    // One statement: rights, names and changes of one moment.
    const [row] = await sql.unsafe<{ lacking: string[]; found: number; changes: ReadChange[] }[]>(
      `with asked as materialized (
         select a."tableId" as table_id, a."fieldIds" as field_ids
         from jsonb_to_recordset($1::text::jsonb) as a ("tableId" text, "fieldIds" text[])
       ), readable as materialized (
         select n.table_id, n.table_name, n.name, n.since
         from asked as a
           join ${swap}._column_names as n on n.table_id = a.table_id and (n.name = 'id' or n.field_id = any (a.field_ids))
           join ${swap}._tables as t on (t.table_id, t.name) = (n.table_id, n.table_name)
           join pg_class as c on c.relnamespace = to_regnamespace($3) and c.relname = t.name
           join pg_attribute as p on p.attrelid = c.oid and p.attname = n.name and p.attnum > 0 and not p.attisdropped
         where has_schema_privilege($2::name, c.relnamespace, 'usage')
           and has_column_privilege($2::name, c.oid, p.attnum, 'select')
       ), tables as materialized (
         select r.table_id, r.table_name, r.since,
           (select jsonb_object_agg(o.name, o.since) from readable as o where o.table_id = r.table_id and o.name <> 'id')
             || jsonb_build_object('created_time', r.since) as columns
         from readable as r where r.name = 'id'
       ), limited as (
         select h.id, h.seen_at, h.table_name, h.record_id, h.operation, h.by, o.cells as old, n.cells as new
         from ${swap}._sync_history as h
           join tables as t on t.table_name = h.table_name and h.seen_at >= t.since
           cross join lateral (
             select jsonb_object_agg(e.key, e.value) as cells from jsonb_each(h.old) as e
             where h.seen_at >= (t.columns ->> e.key)::timestamptz) as o
           cross join lateral (
             select jsonb_object_agg(e.key, e.value) as cells from jsonb_each(h.new) as e
             where h.seen_at >= (t.columns ->> e.key)::timestamptz) as n
         where ($4::text is null or h.record_id = $4) and ($5::text is null or h.seen_at >= $5::text::timestamptz)
           and ($9::bigint is null or h.id ${follows} $9::bigint) and h.seen_at < $10::text::timestamptz
           and (h.operation <> 'update' or o.cells is not null or n.cells is not null)
         order by h.id ${order} limit $6::integer
       ), sized as materialized (
         select l.*, coalesce(octet_length(l.old::text), 0) + coalesce(octet_length(l.new::text), 0) as size
         from limited as l
       ), counted as (
         select s.*, sum(case when s.size <= $8::integer then s.size else 0 end) over (order by s.id ${order}) as bytes
         from sized as s
       )
       select array_to_json(array(select a.table_id from asked as a except select t.table_id from tables as t)) as lacking,
         (select count(*)::integer from sized) as found,
         (select coalesce(json_agg(json_build_object(
             'place', $11::text || '-' || c.id, 'at', to_char(c.seen_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), 'table', c.table_name,
             'record', c.record_id, 'operation', c.operation, 'by', c.by,
             'old', case when c.size <= $8::integer then c.old end, 'new', case when c.size <= $8::integer then c.new end,
             'isTooLarge', c.size > $8::integer)
             order by c.id ${order}), '[]')
          from counted as c where c.bytes <= $7::bigint) as changes`,
      values,
    );
    const { lacking, found, changes } = row!;
    const kept = changes.slice(0, asked.limit);
    return { isRecorded: true, changes: kept, isCut: found > kept.length, lacking };
  });
}

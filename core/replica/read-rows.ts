/**
 * Reads rows of a replica by given conditions, in a given order. One statement reads the rows and the shape of their
 * table, so both are of the same moment.
 */
import { BasetideError } from "../errors";
import type { ReplicaSql } from "./connection";
import { byName } from "./locate";
import type { CatalogTable } from "./plan";
import { type Replica, requireOwn } from "./replica";
import { type Condition, conditionSql, isCertain, joined, type SqlFragment } from "./row-conditions";
import type { TableSpec } from "./spec";

/** Rows with an empty cell come first, or last if descending. Ties are in the order of ids. */
export interface SortKey {
  /** SQL name. */
  column: string;
  isDescending: boolean;
  /** The values in their order; absent: the order of the column's type. */
  choices?: string[] | undefined;
  /** The column stores numbers as text. */
  isNumberAsText?: boolean | undefined;
}

/** A row's position in an order: its sort keys as text, and its id. */
export interface RowPosition {
  keys: (string | null)[];
  id: string;
}

interface RowQuery {
  /** SQL names. */
  columns: string[];
  condition?: Condition | undefined;
  /** SQL names of the columns that the condition reads. */
  conditionColumns?: string[] | undefined;
  sort?: SortKey[] | undefined;
  /** Only rows after this position. */
  after?: RowPosition | undefined;
  /** Only rows with these ids. */
  ids?: string[] | undefined;
  limit: number;
  /** SQL names of the columns that must be null: `isFilled`. */
  blankColumns?: string[] | undefined;
  /** A larger table is not sorted, nor searched for a cell that should be null: `isTooLarge`. */
  maxSortedBytes: number;
  /** No row follows those that have this many bytes together: `isCut`. */
  maxBytes: number;
}

export interface ReadRows {
  /** `id`, `created_time` and the columns, as text or arrays of text, in this order; null for empty cells. */
  rows: (string | null | (string | null)[])[][];
  /** The sort keys of the rows. */
  keys: (string | null)[][];
  /** The condition, or a position in the order, is unknown for a row. */
  isUnknown: boolean;
  /** Number of records among them with a cell in the columns that did not fit. */
  withIssues: number;
  /** Any record has such a cell in the columns; in those that decide which rows are read, or their order. */
  hasIssues: boolean;
  hasDecisiveIssues: boolean;
  /** A row has a cell in `blankColumns`: one of these rows, or any row if there are more than `limit`. */
  isFilled: boolean;
  isTooLarge: boolean;
  /** There are more rows, although fewer than `limit` are returned. */
  isCut: boolean;
  /** Start of the last completed sync; null before the first. */
  asOf: Date | null;
}

/** @throws BasetideError `shape_changed` if the table's shape is not `CatalogTable`'s, `replica_unavailable` */
export async function readRows(replica: Replica, live: CatalogTable, query: RowQuery): Promise<ReadRows> {
  const { sql, schema, swap } = replica;
  requireOwn(live);
  const { spec, shape } = live;
  const { condition, after, ids, limit, sort = [], conditionColumns = [] } = query;
  const { blankColumns = [], maxSortedBytes, maxBytes } = query;
  const place = sql.unsafe(schema);
  const own = sql.unsafe(swap);
  const table = sql`${place}.${sql(spec.name)}`;
  const wanted = query.columns.map((name) => {
    const isArray = spec.columns.find((column) => column.name === name)!.columnType === "text[]";
    return isArray ? sql`to_json(t.${sql(name)})` : sql`to_json(t.${sql(name)}::text)`;
  });
  const createdTime = sql`to_json(to_char(t.created_time, 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))`;
  const answered = ["created_time", ...query.columns];
  const decisive = [...conditionColumns, ...sort.map(({ column }) => column)];
  const conditions = condition && conditionSql(sql, condition);
  const mayBeUnknown = (condition && !isCertain(condition)) || sort.some(({ choices }) => choices);
  const keys = sort.map((key, index) => sql`${keySql(sql, key)} as ${sql(`k${index}`)}`);
  const keyTexts = sort.map((_, index) => sql`found.${sql(`k${index}`)}::text`);
  const isSearched = sort.length > 0 || (blankColumns.length > 0 && ids === undefined);
  const isSmall = isSearched
    ? sql`(select pg_relation_size((select tableoid from ${table} limit 1)) <= ${maxSortedBytes}::int8)`
    : sql`true`;
  // The primary key has the order of the database's collation. Without it, bytes are compared faster.
  const idOrder = sort.length === 0 && !mayBeUnknown ? sql`id` : sql`id collate "C"`;
  // Rows that are unknown come first: if there are any, they are found whatever the limit is.
  const order = joined(sql, ", ", [
    ...(mayBeUnknown ? [sql`is_unknown desc`] : []),
    ...sort.map(
      ({ isDescending }, index) =>
        sql`${sql(`k${index}`)} ${isDescending ? sql`desc nulls last` : sql`asc nulls first`}`,
    ),
    idOrder,
  ]);
  const issues = sql`${own}._sync_issues where table_name = ${spec.name}`;
  const hasIssuesIn = (columns: string[]) =>
    columns.length === 0
      ? sql`false`
      : sql`exists (select from ${issues} and record_id <> '' and field = any (${columns}))`;
  const given = sql`${isSmall}
    ${conditions ? (mayBeUnknown ? sql`and ${conditions} is not false` : sql`and ${conditions}`) : sql``}
    ${ids === undefined ? sql`` : sql`and id = any (${ids})`}`;
  const answers = await byName(
    () => sql<(ReadRows & { shape: number | null })[]>`
      with known as (
        select ${joined(sql, ", ", [sql`id`, ...keys])}, ${unknownSql(sql, mayBeUnknown ? conditions : undefined, sort)} as is_unknown
        from ${table} as t
        where ${given}
      ), found as (
        select * from known
        ${after ? sql`where ${mayBeUnknown ? sql`is_unknown or ` : sql``}${afterSql(sql, spec, sort, idOrder, after)}` : sql``}
        order by ${order} limit ${limit}
      ), cells as (
        select found.*, json_build_array(${joined(sql, ", ", keyTexts)}) as keys,
          json_build_array(${joined(sql, ", ", [sql`to_json(t.id)`, createdTime, ...wanted])}) as cells
        from found join ${table} as t using (id)
      ), sized as (
        select *, sum(octet_length(cells::text)) over (
          order by ${order} rows between unbounded preceding and 1 preceding) as bytes_before
        from cells
      ), kept as (
        select * from sized where coalesce(bytes_before, 0) < ${maxBytes}::int8
      )
      select (select coalesce(json_agg(cells order by ${order}), '[]') from kept) as rows,
        (select coalesce(json_agg(keys order by ${order}), '[]') from kept) as keys,
        (select count(*) from kept) < (select count(*) from found) as "isCut",
        (select coalesce(bool_or(is_unknown), false) from found) as "isUnknown",
        (select count(distinct record_id)::int from ${issues}
          and record_id in (select id from found) and field = any (${answered})) as "withIssues",
        ${hasIssuesIn(answered)} as "hasIssues",
        ${hasIssuesIn(decisive)} as "hasDecisiveIssues",
        ${filledSql(sql, blankColumns, { table, given, limit })} as "isFilled",
        not coalesce(${isSmall}, true) as "isTooLarge",
        (select case when started_at <= completed_at then started_at else completed_at - duration_last end
          from ${own}._sync_meta) as "asOf",
        (select shape from ${own}._tables where table_id = ${spec.tableId}) as shape`,
  );
  replica.planned(`statement ${Bun.hash(answers.statement.string)}`);
  const [answer] = answers;
  // The names in the query may belong to other columns now, without any error.
  if (answer!.shape !== shape) {
    throw new BasetideError(
      "shape_changed",
      `Table ${spec.tableId} has shape ${answer!.shape}, not ${shape}`,
    );
  }
  return answer!;
}

function keySql(sql: ReplicaSql, { column, choices, isNumberAsText }: SortKey): SqlFragment {
  if (choices) return sql`array_position(${choices}::text[], t.${sql(column)})`;
  return isNumberAsText ? sql`t.${sql(column)}::numeric` : sql`t.${sql(column)}`;
}

/** A choice may be newer than the schema. */
function unknownSql(sql: ReplicaSql, condition: SqlFragment | undefined, sort: SortKey[]): SqlFragment {
  const newChoices = sort.flatMap((key) =>
    key.choices ? [sql`(coalesce(t.${sql(key.column)}, '') <> '' and ${keySql(sql, key)} is null)`] : [],
  );
  const parts = [...(condition ? [sql`(${condition}) is null`] : []), ...newChoices];
  return parts.length === 0 ? sql`false` : sql`(${joined(sql, " or ", parts)})`;
}

/** A list is one answer: its first page already depends on the cells of the others. */
function filledSql(
  sql: ReplicaSql,
  columns: string[],
  { table, given, limit }: { table: SqlFragment; given: SqlFragment; limit: number },
): SqlFragment {
  if (columns.length === 0) return sql`false`;
  const isFilled = sql`num_nonnulls(${joined(
    sql,
    ", ",
    columns.map((name) => sql`t.${sql(name)}`),
  )}) > 0`;
  return sql`(exists (select from found join ${table} as t using (id) where ${isFilled})
    or ((select count(*) from found) >= ${limit} and exists (select from ${table} as t where ${given} and ${isFilled})))`;
}

/** Is the row after the position? The last key decides only among rows that are equal in all others. */
function afterSql(
  sql: ReplicaSql,
  { columns }: TableSpec,
  sort: SortKey[],
  idOrder: SqlFragment,
  { keys, id }: RowPosition,
): SqlFragment {
  return sort.reduceRight<SqlFragment>((rest, key, index) => {
    const name = sql(`k${index}`);
    const text = keys[index] ?? null;
    if (text === null) {
      const isLater = key.isDescending ? sql`false` : sql`${name} is not null`;
      return sql`(${isLater} or (${name} is null and ${rest}))`;
    }
    const type = columns.find((column) => column.name === key.column)!.columnType;
    const value = sql`${text}::text::${sql.unsafe(key.choices ? "int" : key.isNumberAsText ? "numeric" : type)}`;
    const isLater = key.isDescending ? sql`(${name} < ${value} or ${name} is null)` : sql`${name} > ${value}`;
    return sql`(coalesce(${isLater}, false) or (coalesce(${name} = ${value}, false) and ${rest}))`;
  }, sql`${idOrder} > ${id}`);
}

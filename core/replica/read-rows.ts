/**
 * Reads rows of a replica by given conditions. One statement reads the rows and the shape of their table, so both are
 * of the same moment.
 */
import { BasetideError } from "../errors";
import { byName } from "./locate";
import type { CatalogTable } from "./plan";
import type { Replica } from "./replica";

/** A condition on rows. Never null: an empty cell is `false` unless stated otherwise. */
export type Condition =
  | { kind: "and" | "or"; of: Condition[] }
  | { kind: "not"; of: Condition }
  | { kind: "constant"; value: boolean }
  /** The row has this record id. */
  | { kind: "id"; equals: string }
  /** A checked checkbox. */
  | { kind: "checked"; column: string }
  /** On a text column; the empty text matches an empty cell. */
  | { kind: "text"; column: string; equals: string }
  /** On a numeric column. */
  | { kind: "number"; column: string; operator: "=" | "<" | "<=" | ">" | ">="; value: number };

interface RowQuery {
  /** SQL names. */
  columns: string[];
  condition?: Condition | undefined;
  /** Only rows with greater ids; rows are returned in the order of ids. */
  after?: string | undefined;
  /** Only rows with these ids. */
  ids?: string[] | undefined;
  limit: number;
}

export interface ReadRows {
  /** `id`, `created_time` and the columns, as text or arrays of text, in this order; null for empty cells. */
  rows: (string | null | (string | null)[])[][];
  /** Number of records among them with a cell that did not fit its column. */
  withIssues: number;
  /** Start of the last completed sync; null before the first. */
  asOf: Date | null;
}

/** @throws BasetideError `shape_changed` if the table's shape is not `CatalogTable`'s, `replica_unavailable` */
export async function readRows(
  { sql, schema, swap }: Replica,
  { spec, shape }: CatalogTable,
  query: RowQuery,
): Promise<ReadRows> {
  const place = sql.unsafe(schema);
  const wanted = query.columns.map((name) => {
    const isArray = spec.columns.find((column) => column.name === name)!.columnType === "text[]";
    return isArray ? sql`to_json(t.${sql(name)})` : sql`to_json(t.${sql(name)}::text)`;
  });
  const cells = wanted.flatMap((cell) => [sql`, `, cell]);
  const { condition, after, ids, limit } = query;
  const [answer] = await byName(
    () => sql<(ReadRows & { shape: number | null })[]>`
      with found as (
        select id, json_build_array(to_json(id), to_json(to_char(created_time, 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))
          ${cells}) as cells
        from ${place}.${sql(spec.name)} as t
        where true
          ${condition ? sql`and ${conditionSql(sql, condition)}` : sql``}
          ${after === undefined ? sql`` : sql`and id collate "C" > ${after}`}
          ${ids === undefined ? sql`` : sql`and id = any (${ids})`}
        order by id collate "C" limit ${limit}
      )
      select (select coalesce(json_agg(cells order by id collate "C"), '[]') from found) as rows,
        (select count(distinct record_id)::int from ${sql.unsafe(swap)}._sync_issues
          where table_name = ${spec.name} and record_id in (select id from found)) as "withIssues",
        (select case when started_at <= completed_at then started_at else completed_at - duration_last end
          from ${sql.unsafe(swap)}._sync_meta) as "asOf",
        (select shape from ${sql.unsafe(swap)}._tables where table_id = ${spec.tableId}) as shape`,
  );
  // The names in the query may belong to other columns now, without any error.
  if (answer!.shape !== shape) {
    throw new BasetideError(
      "shape_changed",
      `Table ${spec.tableId} has shape ${answer!.shape}, not ${shape}`,
    );
  }
  return answer!;
}

function conditionSql(sql: Replica["sql"], condition: Condition): ReturnType<Replica["sql"]> {
  const column = (name: string) => sql`t.${sql(name)}`;
  switch (condition.kind) {
    case "and":
    case "or": {
      const parts = condition.of.map((part) => conditionSql(sql, part));
      const joined = parts.map((part, index) => {
        if (index === 0) return part;
        return condition.kind === "and" ? sql` and ${part}` : sql` or ${part}`;
      });
      return sql`(${joined})`;
    }
    case "not":
      return sql`(not ${conditionSql(sql, condition.of)})`;
    case "constant":
      return condition.value ? sql`true` : sql`false`;
    case "id":
      return sql`(t.id = ${condition.equals})`;
    case "checked":
      return sql`coalesce(${column(condition.column)}, false)`;
    case "text":
      return sql`(coalesce(${column(condition.column)}, '') = ${condition.equals})`;
    case "number":
      return sql`coalesce(${column(condition.column)} ${sql.unsafe(condition.operator)} ${String(condition.value)}::numeric, false)`;
  }
}

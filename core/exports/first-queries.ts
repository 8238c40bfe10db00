/** Queries to start with, made of a base's own tables, columns and links. */
import type { ColumnSpec, TableSpec } from "../replica";
import { qualifiedName, readableName } from "./readable-name";

export interface FirstQuery {
  title: string;
  sql: string;
}

interface SampledTable {
  spec: TableSpec;
  records: number;
}

const ROWS = 10;
/** Columns of the first query. */
const SHOWN_COLUMNS = 4;
/** Types whose values are short and repeat themselves. */
const GROUPED: ReadonlySet<string> = new Set(["single_select", "collaborator", "checkbox", "rating"]);
/** Types that say little in a list. */
const UNREADABLE: ReadonlySet<string> = new Set([
  "attachment",
  "button",
  "long_text",
  "rich_text",
  "links",
  "lookup",
]);

/**
 * Returns three queries of different kinds: rows, groups, and a join or the size of each table. Fewer if there are no
 * tables.
 */
export function firstQueries(schema: string, tables: TableSpec[], counts: Map<string, number>): FirstQuery[] {
  const sampled = tables
    .map((spec) => ({ spec, records: counts.get(spec.name) ?? 0 }))
    .sort((a, b) => b.records - a.records);
  const [largest] = sampled;
  if (!largest) return [];
  return [
    latestRows(schema, largest.spec),
    grouped(schema, sampled),
    joined(schema, sampled) ?? sizes(schema, sampled),
  ];
}

function latestRows(schema: string, { name, sourceName, columns }: TableSpec): FirstQuery {
  const readable = columns.filter(({ type }) => !UNREADABLE.has(type));
  const shown = [
    "id",
    ...(readable.length > 0 ? readable : columns).slice(0, SHOWN_COLUMNS).map((column) => column.name),
  ];
  return {
    title: `The latest records of ${sourceName}`,
    sql: `select ${shown.map(readableName).join(", ")}
from ${qualifiedName(schema, name)}
order by created_time desc
limit ${ROWS};`,
  };
}

function grouped(schema: string, tables: SampledTable[]): FirstQuery {
  for (const { spec } of tables) {
    const column = spec.columns.find(({ type }) => GROUPED.has(type));
    if (column) {
      return {
        title: `${spec.sourceName} by ${column.sourceName}`,
        sql: `select ${readableName(column.name)}, count(*) as records
from ${qualifiedName(schema, spec.name)}
group by 1
order by 2 desc;`,
      };
    }
  }
  const { spec } = tables[0]!;
  return {
    title: `New records of ${spec.sourceName} by month`,
    sql: `select date_trunc('month', created_time)::date as month, count(*) as records
from ${qualifiedName(schema, spec.name)}
group by 1
order by 1;`,
  };
}

/** A table and the records that one of its columns links to. */
function joined(schema: string, tables: SampledTable[]): FirstQuery | null {
  const byId = new Map(tables.map(({ spec }) => [spec.tableId, spec]));
  for (const { spec } of tables) {
    for (const column of spec.columns) {
      const linked = column.type === "links" ? byId.get(column.linkedTableId ?? "") : undefined;
      const label = linked && labelOf(linked);
      if (linked && linked !== spec && label) return join(schema, spec, column, linked, label);
    }
  }
  return null;
}

function join(
  schema: string,
  table: TableSpec,
  link: ColumnSpec,
  linked: TableSpec,
  label: ColumnSpec,
): FirstQuery {
  const column = `t.${readableName(link.name)}`;
  return {
    title: `${table.sourceName} for each record of ${linked.sourceName}`,
    sql: `select l.${readableName(label.name)}, count(*) as records
from ${qualifiedName(schema, table.name)} as t
join ${qualifiedName(schema, linked.name)} as l on ${link.columnType === "text[]" ? `l.id = any (${column})` : `l.id = ${column}`}
group by l.id, 1
order by 2 desc
limit ${ROWS};`,
  };
}

/** The column that names a record: the first one, as in the source. */
function labelOf({ columns }: TableSpec): ColumnSpec | undefined {
  return columns.find(({ type }) => !UNREADABLE.has(type));
}

function sizes(schema: string, tables: SampledTable[]): FirstQuery {
  const some = tables.slice(0, 8);
  const parts = some.map(
    ({ spec }) =>
      `select '${spec.name.replaceAll("'", "''")}' as table_name, count(*) as records from ${qualifiedName(schema, spec.name)}`,
  );
  return {
    title: "The number of records per table",
    sql: `${parts.join("\nunion all\n")}\norder by 2 desc;`,
  };
}

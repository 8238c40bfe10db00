/** Writes queries for a base's own tables, columns and links, to begin with. */
import type { ColumnSpec, TableSpec } from "../replica";
import type { FieldType } from "../source";
import { qualifiedName, readableName } from "./readable-name";

export interface SampleQuery {
  title: string;
  sql: string;
}

/** What a query calls a table. */
type From = (table: TableSpec) => string;
/** By SQL name of the table; a table without a count is small. */
type RowCounts = ReadonlyMap<string, number>;

const MOST_SAMPLES = 6;
/** Of the columns in a list, after the title. */
const LISTED_COLUMNS = 4;
/** The first that a table has is taken. */
const GROUPED_TYPES: FieldType[] = ["single_select", "collaborator", "rating", "created_by", "checkbox"];
const SUMMED_TYPES = ["currency", "number", "duration", "percent"];
const LONG_TYPES = ["long_text", "rich_text", "attachment", "ai_text", "button"];

/** Returns up to six queries, each of another kind, for the largest tables that they fit. Valid whatever the names. */
export function sampleQueries(
  schema: string,
  tables: TableSpec[],
  counts: RowCounts = new Map(),
): SampleQuery[] {
  const bySize = tables.toSorted((a, b) => (counts.get(b.name) ?? 0) - (counts.get(a.name) ?? 0));
  const byId = new Map(tables.map((table) => [table.tableId, table]));
  const from = ({ name }: TableSpec) => qualifiedName(schema, name);
  const first = (make: (table: TableSpec) => SampleQuery | undefined): SampleQuery[] => {
    for (const table of bySize) {
      const sample = make(table);
      if (sample) return [sample];
    }
    return [];
  };
  return [
    ...first((table) => newest(table, from)),
    ...first((table) => joined(table, byId, from)),
    ...first((table) => counted(table, from)),
    ...first((table) => mostLinked(table, byId, from)),
    ...first((table) => summed(table, from)),
    ...first((table) => perMonth(table, from)),
  ].slice(0, MOST_SAMPLES);
}

function newest(table: TableSpec, from: From): SampleQuery {
  const title = titleOf(table);
  const others = table.columns.filter(
    (column) => column.name !== title && column.type !== "links" && !LONG_TYPES.includes(column.type),
  );
  const listed = [title, ...others.slice(0, LISTED_COLUMNS).map(({ name }) => name), "created_time"];
  return {
    title: `Newest ${table.sourceName}`,
    sql: `select ${[...new Set(listed)].map(readableName).join(", ")}
from ${from(table)}
order by created_time desc
limit 20;`,
  };
}

/** An array of links is unnested; of a text with the first link, the record is found directly. */
function joined(table: TableSpec, byId: Map<string, TableSpec>, from: From): SampleQuery | undefined {
  const [link, other] = linkOf(table, byId) ?? [];
  if (!link || !other) return undefined;
  const title = readableName(titleOf(table));
  const id = titleOf(table) === "link" ? "linked" : "link";
  return {
    title: `${table.sourceName} with their ${other.sourceName}`,
    sql: `select a.${title}, b.${readableName(titleOf(other))} as ${readableName(aliasOf(link, table))}
from (select ${title}, ${linkedId(link)} as ${id} from ${from(table)}) as a
join ${from(other)} as b on b.id = a.${id}
order by 1
limit 100;`,
  };
}

/** Counts the links first, and joins each linked record once. */
function mostLinked(table: TableSpec, byId: Map<string, TableSpec>, from: From): SampleQuery | undefined {
  const [link, other] = linkOf(table, byId) ?? [];
  if (!link || !other) return undefined;
  return {
    title: `${other.sourceName} with the most ${table.sourceName}`,
    sql: `select b.${readableName(titleOf(other))}, a.linked
from (select ${linkedId(link)} as link, count(*) as linked from ${from(table)} group by 1) as a
join ${from(other)} as b on b.id = a.link
order by 2 desc
limit 20;`,
  };
}

/** In the list of a select, an array makes a row of each of its elements. In `from`, that would take twice as long. */
function linkedId({ name, columnType }: ColumnSpec): string {
  return columnType === "text[]" ? `unnest(${readableName(name)})` : readableName(name);
}

function counted(table: TableSpec, from: From): SampleQuery | undefined {
  const column = groupOf(table);
  if (!column) return undefined;
  return {
    title: `${table.sourceName} by ${column.sourceName}`,
    sql: `select ${readableName(column.name)}, count(*)
from ${from(table)}
group by 1
order by 2 desc;`,
  };
}

function summed(table: TableSpec, from: From): SampleQuery | undefined {
  const amount = table.columns.find(
    ({ type, columnType }) => columnType === "numeric" && SUMMED_TYPES.includes(type),
  );
  if (!amount) return undefined;
  const group = groupOf(table);
  const name = readableName(amount.name);
  const figures = `count(${name}), sum(${name}), round(avg(${name}), 2) as average`;
  const sql = group
    ? `select ${readableName(group.name)}, ${figures}
from ${from(table)}
group by 1
order by 3 desc nulls last;`
    : `select ${figures}
from ${from(table)};`;
  return { title: `Total ${amount.sourceName} of ${table.sourceName}`, sql };
}

function perMonth(table: TableSpec, from: From): SampleQuery {
  const date = table.columns.find(({ type }) => type === "date" || type === "date_time");
  const isTime = date && (date.columnType === "date" || date.columnType === "timestamp");
  const name = isTime ? date.name : "created_time";
  return {
    title: `${table.sourceName} per month`,
    sql: `select date_trunc('month', ${readableName(name)})::date as month, count(*)
from ${from(table)}
where ${readableName(name)} > now() - interval '2 years'
group by 1
order by 1;`,
  };
}

/** The first link of the table to another. */
function linkOf(table: TableSpec, byId: Map<string, TableSpec>): [ColumnSpec, TableSpec] | undefined {
  for (const column of table.columns) {
    const other = column.type === "links" ? byId.get(column.linkedTableId ?? "") : undefined;
    if (other && other !== table) return [column, other];
  }
  return undefined;
}

function groupOf({ columns }: TableSpec): ColumnSpec | undefined {
  return GROUPED_TYPES.map((type) => columns.find((column) => column.type === type)).find(Boolean);
}

/** The column that names a record: the source lists its primary field first. */
function titleOf({ columns: [first] }: TableSpec): string {
  return first && (first.columnType === "text" || first.columnType === "numeric") ? first.name : "id";
}

/** The link's name, unless the result has a column of this name already. */
function aliasOf(link: ColumnSpec, table: TableSpec): string {
  return link.name === titleOf(table) ? `linked_${link.name}`.slice(0, 30) : link.name;
}

/** SQL text for replicated tables: definitions, comments, renames, and the statements that fill a build. */
import { escapeLiteral } from "pg";
import type { Schemas } from "./connection";
import { storable } from "./map-record-text";
import { quoteIdent } from "./naming";
import { MAX_ROW_BYTES, mayBeTooWide } from "./row-width";
import type { ColumnSpec, TableSpec } from "./spec";

/** The columns that every table has, before the source's fields. */
const RECORD_COLUMNS = ["id", "created_time"];

/**
 * Creates `spec`'s table under `name` in `schema` (quoted), readable for the roles that `schema`'s default privileges
 * name.
 */
export function createTable(schema: string, name: string, spec: TableSpec): string {
  const columns = spec.columns.map((column) => `${quoteIdent(column.name)} ${column.columnType}`);
  // Indexes share a namespace with tables; our tables' names never start with an underscore.
  const key = quoteIdent(`_${spec.tableId}_pkey`);
  return `create table ${schema}.${quoteIdent(name)} (
    id text constraint ${key} primary key, created_time timestamp not null${columns.map((column) => `, ${column}`).join("")})`;
}

/**
 * Disables compression of the values of a table with very many columns; see `row-width.ts`. Only values for which its page has
 * no room are moved out of a row: by default, all but 2 kB are, of which each takes a row of another table and an index.
 */
export function columnStorage(schema: string, name: string, { columns }: TableSpec): string[] {
  if (!mayBeTooWide(columns)) return [];
  const table = `${schema}.${quoteIdent(name)}`;
  const changes = columns
    .filter(({ columnType }) => ["text", "text[]", "numeric", "jsonb"].includes(columnType))
    .map((column) => `alter column ${quoteIdent(column.name)} set storage external`);
  // The option is known to `others_on` in kept-tables.sql.
  return [`alter table ${table} ${changes.join(", ")}, set (toast_tuple_target = ${MAX_ROW_BYTES})`];
}

/** Returns the COMMENTs with the source's names: on the table, and on every column of `columns`. */
export function comments(schema: string, name: string, spec: TableSpec, columns = spec.columns): string[] {
  const table = `${schema}.${quoteIdent(name)}`;
  return [
    `comment on table ${table} is ${escapeLiteral(described(spec.sourceName, spec.tableId, spec.description))}`,
    ...columns.map((column) => columnComment(table, column)),
  ];
}

/** Returns the COMMENT on one column of `table` (quoted, with its schema). */
export function columnComment(table: string, column: ColumnSpec): string {
  const text = described(column.sourceName, `${column.fieldId}, ${column.sourceType}`, column.description);
  return `comment on column ${table}.${quoteIdent(column.name)} is ${escapeLiteral(text)}`;
}

/** A renaming: its DDL on a table, and the updates of the issues that refer to the old names. */
interface Renaming {
  ddl: string[];
  notes: string[];
}

/**
 * Renames columns in one step. `A→B, B→A` works, because every name that changes goes through a temporary one.
 *
 * @param renames [old name, new name]
 */
export function renameColumns(schema: string, table: string, renames: [string, string][]): string[] {
  return throughTransientNames(
    renames,
    (from, to) =>
      `alter table ${schema}.${quoteIdent(table)} rename column ${quoteIdent(from)} to ${quoteIdent(to)}`,
  );
}

/** Renames the columns in the issues of their cells; `swap` holds the view through which issues are written. */
export function renameIssueFields(swap: string, table: string, renames: [string, string][]): string[] {
  return throughTransientNames(
    renames,
    (from, to) => `update ${swap}._sync_issues set field = ${escapeLiteral(to)}
     where table_name = ${escapeLiteral(table)} and field = ${escapeLiteral(from)}`,
  );
}

/** Renames tables of `schema` in one step, like `renameColumns`. */
export function renameTables({ schema, swap }: Schemas, renames: [string, string][]): Renaming {
  return {
    ddl: throughTransientNames(
      renames,
      (from, to) => `alter table ${schema}.${quoteIdent(from)} rename to ${quoteIdent(to)}`,
    ),
    notes: throughTransientNames(
      renames,
      (from, to) =>
        `update ${swap}._sync_issues set table_name = ${escapeLiteral(to)} where table_name = ${escapeLiteral(from)}`,
    ),
  };
}

/** Remembers the name of a table that is dropped, so that no other table gets it by itself. */
export function retireTable(swap: string, { tableId, name }: TableSpec): string {
  return `insert into ${swap}._retired_tables (table_id, name) values (${escapeLiteral(tableId)}, ${escapeLiteral(name)})
    on conflict (table_id) do update set name = excluded.name`;
}

/**
 * Returns the statement that writes mapped rows into `table`, which has none of them. $1: the epoch; then one array literal
 * for each column (`columnLiterals`). Costs the server about half of what `upsertStatement` does.
 *
 * The rows as JSON would cost it more than twice as much, and arrays in FROM, whose rows are stored in between, a quarter
 * more. COPY would cost up to a third less, but is no single message: a worker that is suspended within it would hold the
 * epoch against the next one.
 */
export function insertStatement({
  swap,
  table,
  spec,
}: {
  swap: string;
  table: string;
  spec: TableSpec;
}): string {
  const names = [...RECORD_COLUMNS, ...spec.columns.map((column) => quoteIdent(column.name))];
  const types = ["text", "timestamp", ...spec.columns.map((column) => column.columnType)];
  // Lists may differ in length, so that they cannot be elements of an array.
  const values = types.map((type, index) =>
    type === "text[]" ? `unnest($${index + 2}::text[])::text[]` : `unnest($${index + 2}::${type}[])`,
  );
  return `${fenced(swap)}
    insert into ${table} (${names.join(", ")}) select ${values.join(", ")} from fenced`;
}

/** The beginning of a statement that changes a build, and joins `fenced`. $1: the epoch. */
export function fenced(swap: string): string {
  return `with fenced as materialized (select ${swap}.fence($1))`;
}

/** The same for rows that the table may have, which it replaces. */
export function upsertStatement(of: Parameters<typeof insertStatement>[0]): string {
  const names = [...RECORD_COLUMNS.slice(1), ...of.spec.columns.map((column) => quoteIdent(column.name))];
  return `${insertStatement(of)}
    on conflict (id) do update set ${names.map((name) => `${name} = excluded.${name}`).join(", ")}`;
}

function throughTransientNames(
  renames: [string, string][],
  rename: (from: string, to: string) => string,
): string[] {
  const transient = renames.map(() => unusedName());
  return [
    ...renames.map(([from], index) => rename(from, transient[index]!)),
    ...renames.map(([, to], index) => rename(transient[index]!, to)),
  ];
}

/**
 * Returns a name that no object or column has. Names derived from the source never start with an underscore, and nobody
 * else can take it in advance.
 */
export function unusedName(): string {
  return `_${crypto.randomUUID().replaceAll("-", "")}`;
}

/** One paragraph each: the name in the source, its id and type there, its description. */
function described(name: string, origin: string, description: string | undefined): string {
  return storable([name, origin, ...(description ? [description] : [])].join("\n\n"));
}

/** SQL text for replicated tables: definitions, comments, renames, and the statement that writes rows. */
import { escapeLiteral } from "pg";
import type { Schemas } from "./connection";
import { storable } from "./map-record-text";
import { quoteIdent } from "./naming";
import { mayBeTooWide } from "./row-width";
import type { ColumnSpec, TableSpec } from "./spec";

/** The columns that every table has, in front of the source's fields. */
const RECORD_COLUMNS = ["id", "created_time"];

/** Creates `spec`'s table under `name` in `schema` (quoted), readable by whoever `schema`'s defaults allow. */
export function createTable(schema: string, name: string, spec: TableSpec): string {
  const columns = spec.columns.map((column) => `${quoteIdent(column.name)} ${column.columnType}`);
  // Index names live among the tables' names; those never start with an underscore.
  const key = quoteIdent(`_${spec.tableId}_pkey`);
  return `create table ${schema}.${quoteIdent(name)} (
    id text constraint ${key} primary key, created_time timestamp not null${columns.map((column) => `, ${column}`).join("")})`;
}

/** Keeps the values of a table with very many columns from being compressed in the row; see `row-width.ts`. */
export function columnStorage(schema: string, name: string, { columns }: TableSpec): string[] {
  if (!mayBeTooWide(columns)) return [];
  const changes = columns
    .filter(({ columnType }) => ["text", "text[]", "numeric"].includes(columnType))
    .map((column) => `alter column ${quoteIdent(column.name)} set storage external`);
  return [`alter table ${schema}.${quoteIdent(name)} ${changes.join(", ")}`];
}

/** Another one where the texts of COMMENTs are made in another way: they are then written anew. */
export const COMMENT_FORM = 2;

/** COMMENTs with what the source calls it: on the table, and on every column of `columns`. */
export function comments(schema: string, name: string, spec: TableSpec, columns = spec.columns): string[] {
  const table = `${schema}.${quoteIdent(name)}`;
  return [
    `comment on table ${table} is ${escapeLiteral(described(spec.sourceName, spec.tableId, spec.description))}`,
    ...columns.map((column) => columnComment(table, column)),
  ];
}

/** COMMENT on one column of `table` (quoted, with its schema). */
export function columnComment(table: string, column: ColumnSpec): string {
  const text = described(column.sourceName, `${column.fieldId}, ${column.sourceType}`, column.description);
  return `comment on column ${table}.${quoteIdent(column.name)} is ${escapeLiteral(text)}`;
}

/** A change of names: what it does to a table, and the notes of issues that go along. */
export interface Renaming {
  ddl: string[];
  notes: string[];
}

/**
 * Renames columns all at once: `A→B, B→A` works, because every name that changes goes through one that no source
 * field can have.
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

/** The issues of renamed columns' cells go along; `swap` holds the view through which they are written. */
export function renameIssueFields(swap: string, table: string, renames: [string, string][]): string[] {
  return throughTransientNames(
    renames,
    (from, to) => `update ${swap}._sync_issues set field = ${escapeLiteral(to)}
     where table_name = ${escapeLiteral(table)} and field = ${escapeLiteral(from)}`,
  );
}

/** Renames tables of `schema` all at once, as `renameColumns` does. */
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

/**
 * The statement that writes mapped rows into `table` and touches only those that differ.
 *
 * $1: rows as JSON; $2: ids to leave alone. Answers the ids inserted and the ids updated, as two arrays.
 * UPDATE and INSERT rather than ON CONFLICT, which would lock, and so log, every row that has not changed
 * (105 MB of WAL for 200,000 unchanged rows against none). The table's lock keeps other writers away.
 */
export function applyStatement(table: string, spec: TableSpec): string {
  const names = [...RECORD_COLUMNS, ...spec.columns.map((column) => quoteIdent(column.name))];
  const types = ["text", "timestamp", ...spec.columns.map((column) => column.columnType)];
  const values = names.slice(1);
  const list = (prefix: string, columns: string[]) =>
    columns.map((column) => `${prefix}.${column}`).join(", ");
  return `
    with source as materialized (
      select * from json_to_recordset($1) as r (${names.map((name, index) => `${name} ${types[index]}`).join(", ")})
      where r.id <> all ($2)
    ), updated as (
      update ${table} as t set ${values.map((name) => `${name} = s.${name}`).join(", ")}
      from source as s
      where t.id = s.id and row(${list("t", values)}) is distinct from row(${list("s", values)})
      returning t.id
    ), inserted as (
      insert into ${table} (${names.join(", ")})
      select ${list("s", names)} from source as s
      where not exists (select from ${table} as t where t.id = s.id)
      returning id
    )
    select (select coalesce(array_agg(id), '{}') from inserted), (select coalesce(array_agg(id), '{}') from updated)`;
}

function throughTransientNames(
  renames: [string, string][],
  rename: (from: string, to: string) => string,
): string[] {
  // Names made from the source's never start with an underscore, so these are free.
  const transient = (index: number) => `_renaming_${index}`;
  return [
    ...renames.map(([from], index) => rename(from, transient(index))),
    ...renames.map(([, to], index) => rename(transient(index), to)),
  ];
}

/** A paragraph each: the name in the source, its id and type there, its description. */
function described(name: string, origin: string, description: string | undefined): string {
  return storable([name, origin, ...(description ? [description] : [])].join("\n\n"));
}

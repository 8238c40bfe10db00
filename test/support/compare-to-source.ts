/** Compares a replica with its source: every table, column and cell, as the customer reads it. */
import type postgres from "postgres";
import { expectedColumnType, expectedValue, type WireRecord, type WireTable } from "./expected-cells";

/** A column, as information_schema describes it. */
interface Column {
  name: string;
  type: string;
}

/** All of a source base, as the sandbox dumps it. */
export interface SourceDump {
  tables: (WireTable & { records: WireRecord[] })[];
}

/** More than these add no information. */
const MAX_DIFFERENCES = 10;

/**
 * Compares the whole replica, with the rights of `sql`, with the source.
 *
 * @param ignored names of fields that are not compared
 * @returns the first differences, as text
 */
export async function compareToSource(
  sql: postgres.Sql,
  dump: SourceDump,
  schema = "public",
  ignored: readonly string[] = [],
): Promise<{ cells: number; differences: string[] }> {
  const differences: string[] = [];
  let cells = 0;
  const same = collector(differences);
  for (const { table, name, fields, columns } of await compareShape(sql, dump, same, schema, ignored)) {
    const rows = await sql<{ row: Record<string, unknown> }[]>`
      select to_json(t) as row from ${sql(schema)}.${sql(name)} as t order by id collate "C"`;
    const byId = new Map(rows.map(({ row }) => [row.id, row]));
    same(`ids of ${table.name}`, [...byId.keys()], table.records.map((record) => record.id).sort());
    for (const record of table.records) {
      const row = byId.get(record.id);
      if (!row) continue;
      same(`created_time of ${record.id}`, row.created_time, record.createdTime.replace(/(\.000)?Z$/, ""));
      for (const field of fields) {
        const shown = row[columns.get(field.name)!.name];
        const wanted = expectedValue(field, record.fields[field.id]) ?? null;
        const where = `${table.name}.${field.name} of ${record.id}`;
        // Their URLs change with every read.
        if (field.type === "multipleAttachments") same(where, count(shown), count(wanted));
        else same(where, shown, wanted);
        cells++;
      }
    }
  }
  return { cells, differences };
}

/**
 * Compares only tables, columns and types, which costs far less.
 *
 * @returns whether they are equal
 */
export async function isSameShape(sql: postgres.Sql, dump: SourceDump): Promise<boolean> {
  const differences: string[] = [];
  await compareShape(sql, dump, collector(differences), "public", []);
  return differences.length === 0;
}

type Same = (where: string, shown: unknown, wanted: unknown) => boolean;

/** Returns a comparison that adds a difference as text. */
function collector(differences: string[]): Same {
  return (where, shown, wanted) => {
    if (Bun.deepEquals(shown, wanted)) return true;
    if (differences.length < MAX_DIFFERENCES)
      differences.push(`${where}: ${JSON.stringify(shown)}, not ${JSON.stringify(wanted)}`);
    return false;
  };
}

/** The replica's tables and columns that belong to the source's; those with other columns are left out. */
async function compareShape(
  sql: postgres.Sql,
  dump: SourceDump,
  same: Same,
  schema: string,
  ignored: readonly string[],
) {
  const tables = await tablesByComment(sql, schema);
  same("tables", [...tables.keys()].sort(), dump.tables.map((table) => table.name).sort());
  const compared = [];
  for (const table of dump.tables) {
    const name = tables.get(table.name);
    if (name === undefined) continue;
    const columns = await columnsByComment(sql, name, schema);
    for (const one of ignored) columns.delete(one);
    const fields = table.fields.filter((field) => !ignored.includes(field.name));
    const fieldNames = fields.map((field) => field.name).sort();
    if (!same(`columns of ${table.name}`, [...columns.keys()].sort(), fieldNames)) continue;
    for (const field of fields) {
      same(`${table.name}.${field.name}`, columns.get(field.name)!.type, expectedColumnType(field));
    }
    compared.push({ table, name, fields, columns });
  }
  return compared;
}

function count(cell: unknown): number {
  return (cell as unknown[] | null)?.length ?? 0;
}

/** SQL names of the replicated tables, by the source's name in the table's comment. */
export async function tablesByComment(sql: postgres.Sql, schema = "public"): Promise<Map<string, string>> {
  const rows = await sql<{ name: string; comment: string }[]>`
    select table_name as name,
      split_part(obj_description(format('%I.%I', table_schema, table_name)::regclass), e'\n\n', 1) as comment
    from information_schema.tables
    where table_schema = ${schema} and table_type = 'BASE TABLE' and table_name !~ '^_'`;
  return new Map(rows.map((row) => [row.comment, row.name]));
}

/** Columns of a table except `id` and `created_time`, by the source's name of the field. */
export async function columnsByComment(
  sql: postgres.Sql,
  table: string,
  schema = "public",
): Promise<Map<string, Column>> {
  const rows = await sql<(Column & { comment: string })[]>`
    select column_name as name, data_type as type,
      split_part(col_description(format('%I.%I', table_schema, table_name)::regclass, ordinal_position), e'\n\n', 1) as comment
    from information_schema.columns
    where table_schema = ${schema} and table_name = ${table} and column_name not in ('id', 'created_time')
      and is_generated = 'NEVER'
    order by ordinal_position`;
  return new Map(rows.map(({ comment, ...column }) => [comment, column]));
}

/** Compares a replica with the sandbox that it is a copy of: every table, column and cell, as the customer reads it. */
import type postgres from "postgres";
import { expect } from "vitest";
import type { Base } from "../../core/control";
import { expectedColumnType, expectedValue, type WireTable } from "./expected-cells";
import type { Fleet } from "./fleet";

/** A column as information_schema has it. */
interface Column {
  name: string;
  type: string;
}

/** Compares the whole replica with the sandbox's own state. Returns cells compared. */
export async function expectEqualToSource(fleet: Fleet, base: Base): Promise<number> {
  const sql = await fleet.reader(base);
  const dump = fleet.sandbox.control.dump(base.sourceBaseId);
  const tables = await tablesByComment(sql);
  expect([...tables.keys()].sort()).toEqual(dump.tables.map((table) => table.name).sort());
  let cells = 0;
  for (const table of dump.tables as (WireTable & (typeof dump.tables)[number])[]) {
    const name = tables.get(table.name)!;
    const columns = await columnsByComment(sql, name);
    expect([...columns.keys()].sort(), table.name).toEqual(table.fields.map((field) => field.name).sort());
    for (const field of table.fields) {
      expect(columns.get(field.name)!.type, `${table.name}.${field.name}`).toBe(expectedColumnType(field));
    }
    const rows = await sql<{ row: Record<string, unknown> }[]>`
      select to_json(t) as row from ${sql(name)} as t order by id collate "C"`;
    const byId = new Map(rows.map(({ row }) => [row.id, row]));
    expect([...byId.keys()], table.name).toEqual(table.records.map((record) => record.id).sort());
    for (const record of table.records) {
      const row = byId.get(record.id)!;
      expect(row.created_time).toBe(record.createdTime.replace(/(\.000)?Z$/, ""));
      for (const field of table.fields) {
        const shown = row[columns.get(field.name)!.name];
        const wanted = expectedValue(field, record.fields[field.id]) ?? null;
        const where = `${table.name}.${field.name} of ${record.id}`;
        // Their URLs are other ones at every read.
        if (field.type === "multipleAttachments") expect(count(shown), where).toBe(count(wanted));
        else expect(shown, where).toEqual(wanted);
        cells++;
      }
    }
  }
  return cells;
}

function count(cell: unknown): number {
  return (cell as unknown[] | null)?.length ?? 0;
}

/** SQL names of the replicated tables, by the source's name as the comment tells it. */
export async function tablesByComment(sql: postgres.Sql): Promise<Map<string, string>> {
  const rows = await sql<{ name: string; comment: string }[]>`
    select table_name as name,
      split_part(obj_description(format('public.%I', table_name)::regclass), e'\n\n', 1) as comment
    from information_schema.tables
    where table_schema = 'public' and table_type = 'BASE TABLE' and table_name !~ '^_'`;
  return new Map(rows.map((row) => [row.comment, row.name]));
}

/** Columns of a table but for `id` and `created_time`, by the source's name of the field. */
export async function columnsByComment(sql: postgres.Sql, table: string): Promise<Map<string, Column>> {
  const rows = await sql<(Column & { comment: string })[]>`
    select column_name as name, data_type as type,
      split_part(col_description(format('public.%I', table_name)::regclass, ordinal_position), e'\n\n', 1) as comment
    from information_schema.columns
    where table_schema = 'public' and table_name = ${table} and column_name not in ('id', 'created_time')
    order by ordinal_position`;
  return new Map(rows.map(({ comment, ...column }) => [comment, column]));
}

/**
 * How the source shows the tables of a base: primary fields, choices and their colors, links, formats of numbers, and
 * the names that the console's search finds. The worker saves it with each schema that differs from the previous one, and the console's pages read it: the replica
 * itself has only names and SQL types.
 */
import type { Db } from "../../context";
import { cutText } from "../../cut-text";
import { isObject } from "../../json";
import { jsonParameter } from "../../postgres";
import type { FieldType, SourceField, SourceSchema } from "../../source";
import { searchLines } from "./search";

/** The choices of a field with more of them are not stored beyond these. */
export const MOST_CHOICES = 500;

/** How one field is shown. */
export interface FieldDisplay {
  type: FieldType;
  /** For computed fields: the declared type of the result. */
  result?: FieldType | undefined;
  /** For links: the source's id of the linked table. */
  linkedTableId?: string | undefined;
  /** The source's name of the color by the name of a choice; empty: the choice has none. */
  colors?: Record<string, string> | undefined;
  /** Digits after the decimal point. */
  precision?: number | undefined;
  /** A currency's symbol. */
  symbol?: string | undefined;
}

export interface SourceTableDisplay {
  tableId: string;
  primaryFieldId: string;
  /** By field id. */
  fields: Record<string, FieldDisplay>;
}

/** Replaces what is stored of the base's tables; writes only what differs. Nothing is stored of a deleted base. */
export async function saveSourceTables(
  db: Db,
  baseId: string,
  { tables, unanswered = [] }: SourceSchema,
): Promise<void> {
  const rows = tables.map(({ id, name, primaryFieldId, fields }) => {
    const names = fields.map((field) => field.name);
    return {
      table_id: id,
      primary_field_id: primaryFieldId,
      fields: Object.fromEntries(fields.map((field) => [field.id, displayOf(field)])),
      name,
      field_names: names,
      search_text: searchLines([name, ...names]),
    };
  });
  await saveUnanswered(db, baseId, unanswered);
  await db`
    with base as (
      select id from bases where id = ${baseId} for key share
    ), wanted as materialized (
      select base.id as base_id, w.* from base, jsonb_to_recordset(${jsonParameter(rows)}::text::jsonb)
        as w (table_id text, primary_field_id text, fields jsonb, name text, field_names text[], search_text text)
    ), old as (
      delete from source_tables as s
      where s.base_id = ${baseId} and not exists (select from wanted as w where w.table_id = s.table_id)
    )
    insert into source_tables as s (base_id, table_id, primary_field_id, fields, name, field_names, search_text)
    table wanted
    on conflict (base_id, table_id) do update
      set primary_field_id = excluded.primary_field_id, fields = excluded.fields, name = excluded.name,
        field_names = excluded.field_names, search_text = excluded.search_text
      where (s.primary_field_id, s.fields, s.name, s.field_names, s.search_text) is distinct from
        (excluded.primary_field_id, excluded.fields, excluded.name, excluded.field_names, excluded.search_text)`;
}

/** Replaces the tables that wait for a decision. Each new one is an event in the log of schema changes, once. */
async function saveUnanswered(db: Db, baseId: string, tables: { id: string; name: string }[]): Promise<void> {
  const given = jsonParameter(tables);
  await db`
    with base as (
      select id, unanswered_tables as before from bases
      where id = ${baseId} and unanswered_tables <> ${given}::text::jsonb for no key update
    ), saved as (
      update bases set unanswered_tables = ${given}::text::jsonb from base where bases.id = base.id
    )
    insert into schema_changes (base_id, kind, severity, table_name)
    select base.id, 'table_waiting', 'additive', t.name
    from base, jsonb_to_recordset(${given}::text::jsonb) as t (id text, name text)
    where not exists (select from jsonb_to_recordset(base.before) as b (id text) where b.id = t.id)`;
}

/** Returns when a sync last found a change of each table's records, by the source's table id; tables without one are left out. */
export async function tableChanges(db: Db, baseId: string): Promise<Map<string, Date>> {
  const rows = await db<{ tableId: string; changedAt: Date }[]>`
    select table_id as "tableId", changed_at as "changedAt" from source_tables
    where base_id = ${baseId} and changed_at is not null`;
  return new Map(rows.map(({ tableId, changedAt }) => [tableId, changedAt]));
}

/** Returns what is stored of these tables, by the source's table id. */
export async function sourceTables(
  db: Db,
  baseId: string,
  tableIds: readonly string[],
): Promise<Map<string, SourceTableDisplay>> {
  const rows = await db<SourceTableDisplay[]>`
    select table_id as "tableId", primary_field_id as "primaryFieldId", fields from source_tables
    where base_id = ${baseId} and table_id = any (${[...tableIds]})`;
  return new Map(rows.map((row) => [row.tableId, row]));
}

function displayOf({ type, result, linkedTableId, options }: SourceField): FieldDisplay {
  // A computed field has the options of its result's type.
  const inner = isObject(options?.result) && isObject(options.result.options) ? options.result.options : {};
  const known = { ...inner, ...options } as Record<string, unknown>;
  const colors = colorsOf(known.choices);
  const { precision, symbol } = known;
  return {
    type,
    ...(result ? { result } : {}),
    ...(linkedTableId ? { linkedTableId } : {}),
    ...(colors ? { colors } : {}),
    ...(typeof precision === "number" ? { precision } : {}),
    ...(typeof symbol === "string" ? { symbol: cutText(symbol, 8) } : {}),
  };
}

function colorsOf(choices: unknown): Record<string, string> | undefined {
  if (!Array.isArray(choices)) return undefined;
  const named = choices
    .slice(0, MOST_CHOICES)
    .filter((choice) => isObject(choice) && typeof choice.name === "string")
    .map(({ name, color }): [string, string] => [name, typeof color === "string" ? color : ""]);
  return named.length === 0 ? undefined : Object.fromEntries(named);
}

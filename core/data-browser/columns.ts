/**
 * Describes a table of a replica as its reader sees it: names and types from Postgres' catalog, the field's name and id
 * from the comments that Basetide writes, and how the field is shown from the control plane.
 */
import type { FieldDisplay, SourceTableDisplay } from "../control/bases";
import type { ReaderSql } from "../control/placement";
import { quoteIdent } from "../replica";
import type { FieldType } from "../source";

/** What can be compared and how it is shown, by the type of the column. */
export type ColumnKind = "text" | "list" | "number" | "checkbox" | "date" | "time";

/** A linked table: its SQL name, and the column whose text names its records. */
interface LinkedTable {
  tableId: string;
  table: string;
  primary: string;
}

export interface BrowsedColumn {
  /** SQL name. */
  name: string;
  /** The field's name in the source; for `id` and `created_time` a name of ours. */
  sourceName: string;
  fieldId: string | undefined;
  kind: ColumnKind;
  /** The server's administrator added a column of another type: it is read as text. */
  isForeign?: boolean | undefined;
  /** The type that decides how a cell is shown: of a computed field, its result's. */
  shownAs: FieldType | undefined;
  display: FieldDisplay | undefined;
  /** What the source says of the field. */
  description?: string | undefined;
  /** Whether an index begins with the column. */
  isIndexed: boolean;
  /** Of a column with links, if the linked table exists. */
  link: LinkedTable | undefined;
  /** Of a column with attachments: the SQL name of the column with their details, if there is one. */
  files?: string | undefined;
}

export interface BrowsedTable {
  schema: string;
  /** SQL name. */
  name: string;
  sourceName: string;
  tableId: string | undefined;
  /** `id` and `created_time` first. */
  columns: BrowsedColumn[];
  /** The column that names a record. */
  primary: BrowsedColumn;
}

interface CatalogColumn {
  name: string;
  type: string;
  comment: string | null;
  isIndexed: boolean;
}

const KINDS: Record<string, ColumnKind> = {
  text: "text",
  "text[]": "list",
  numeric: "number",
  boolean: "checkbox",
  date: "date",
  "timestamp without time zone": "time",
  "character varying": "text",
  integer: "number",
  bigint: "number",
  "double precision": "number",
};
const OWN_NAMES: Record<string, string> = { id: "Record ID", created_time: "Created" };
/** Our comments: the name, then the id and type in the source, then the description, each a paragraph. */
const FIELD = /\n\n(fld\w+), /;
const DESCRIPTION = /\n\nfld\w+, [^\n]*\n\n(.+)$/s;
const TABLE = /\n\n(tbl\w+)(?:\n\n|$)/;
/** The details of a field's attachments: no column of the grid, but names and thumbnails of the attachments come from there. */
const FILES = /\n\n(fld\w+)\/files, /;

/** @returns undefined if there is no such table of ours */
export async function describeTable(
  sql: ReaderSql,
  schema: string,
  table: string,
): Promise<{ comment: string | null; columns: CatalogColumn[] } | undefined> {
  // A table that belongs to the owner of _sync_meta is ours: a customer may have tables of their own.
  const [found] = await sql.unsafe<{ comment: string | null; columns: CatalogColumn[] }[]>(
    `select obj_description(c.oid, 'pg_class') as comment,
       (select coalesce(json_agg(json_build_object('name', a.attname, 'type', format_type(a.atttypid, null),
           'comment', col_description(c.oid, a.attnum), 'isIndexed', exists (
             select from pg_index as i where i.indrelid = c.oid and i.indisvalid and i.indkey[0] = a.attnum)
         ) order by a.attnum), '[]')
         from pg_attribute as a where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped) as columns
     from pg_namespace as n
       join pg_class as m on m.relnamespace = n.oid and m.relname = '_sync_meta'
       join pg_class as c on c.relnamespace = n.oid and c.relowner = m.relowner
     where n.nspname = $1 and c.relname = $2 and c.relname !~ '^_' and c.relkind in ('r', 'p')`,
    [schema, table],
  );
  return found;
}

/** The source's id of a table, as its comment says. */
export function tableIdIn(comment: string | null): string | undefined {
  return TABLE.exec(comment ?? "")?.[1];
}

/** Finds the linked tables that exist, by the source's id. One statement for all. */
export async function findLinked(
  sql: ReaderSql,
  schema: string,
  wanted: { tableId: string; fieldId: string }[],
): Promise<Map<string, LinkedTable>> {
  if (wanted.length === 0) return new Map();
  const rows = await sql.unsafe<LinkedTable[]>(
    `select w."tableId", c.relname as "table", a.attname as "primary"
     from json_to_recordset($1::text::json) as w ("tableId" text, "fieldId" text)
       join pg_namespace as n on n.nspname = $2
       join pg_class as m on m.relnamespace = n.oid and m.relname = '_sync_meta'
       join pg_class as c on c.relnamespace = n.oid and c.relowner = m.relowner and c.relkind in ('r', 'p')
         and position(e'\\n\\n' || w."tableId" in obj_description(c.oid, 'pg_class')) > 0
       join pg_attribute as a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
         and position(e'\\n\\n' || w."fieldId" || ', ' in col_description(c.oid, a.attnum)) > 0`,
    [JSON.stringify(wanted), schema],
  );
  return new Map(rows.map((row) => [row.tableId, row]));
}

/** Joins what the database and the control plane know of a table. */
export function browsedTable(
  place: { schema: string; name: string },
  { comment, columns }: { comment: string | null; columns: CatalogColumn[] },
  shown: SourceTableDisplay | undefined,
  linked: Map<string, LinkedTable>,
): BrowsedTable {
  const filesOf = ({ comment: text }: CatalogColumn) => FILES.exec(text ?? "")?.[1];
  const files = new Map(columns.map((column) => [filesOf(column), column.name]));
  const shownColumns = columns.filter((column) => filesOf(column) === undefined);
  const described = shownColumns.map((column): BrowsedColumn => {
    const fieldId = FIELD.exec(column.comment ?? "")?.[1];
    const display = fieldId !== undefined && shown ? ownEntry(shown.fields, fieldId) : undefined;
    const isOurs = fieldId === undefined && Object.hasOwn(OWN_NAMES, column.name);
    const sourceName = isOurs ? OWN_NAMES[column.name] : beforeIds(column.comment, FIELD);
    return {
      name: column.name,
      sourceName: sourceName || column.name,
      fieldId,
      kind: KINDS[column.type] ?? "text",
      isForeign: !Object.hasOwn(KINDS, column.type),
      shownAs: column.name === "created_time" && isOurs ? "created_time" : (display?.result ?? display?.type),
      display,
      description: DESCRIPTION.exec(column.comment ?? "")?.[1],
      isIndexed: column.isIndexed,
      link: display?.type === "links" ? linked.get(display.linkedTableId ?? "") : undefined,
      files: fieldId === undefined ? undefined : files.get(fieldId),
    };
  });
  const fields = described.slice(2);
  const primary =
    fields.find(({ fieldId }) => fieldId === shown?.primaryFieldId) ?? fields[0] ?? described[0]!;
  return {
    ...place,
    sourceName: beforeIds(comment, TABLE) || place.name,
    tableId: tableIdIn(comment),
    columns: described,
    primary,
  };
}

function beforeIds(comment: string | null, ids: RegExp): string {
  const at = ids.exec(comment ?? "");
  return at ? comment!.slice(0, at.index) : "";
}

/** The SQL for a cell of the row `alias`. */
export function cellSql({ name, isForeign }: Pick<BrowsedColumn, "name" | "isForeign">, alias = "t"): string {
  const cell = `${alias}.${quoteIdent(name)}`;
  return isForeign ? `${cell}::text` : cell;
}

function ownEntry<T>(entries: Record<string, T>, key: string): T | undefined {
  return Object.hasOwn(entries, key) ? entries[key] : undefined;
}

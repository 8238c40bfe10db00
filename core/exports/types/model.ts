/** What all languages are generated from: the tables of a replica with resolved links, in an order that does not change. */
import type { Base } from "../../control/bases";
import {
  ATTACHMENT_DETAILS,
  type AttachmentView,
  type ColumnSpec,
  type LinkView,
  type TableSpec,
  WRITABLE_TYPES,
  writeViewOf,
} from "../../replica";
import { assignIdentifiers, unicodeTypeName } from "./names";

export interface TypesInput {
  base: Pick<Base, "name" | "sourceBaseId"> & {
    database: Pick<Base["database"], "name" | "schema">;
    /** Absent: nothing is written with SQL. */
    settings?: Pick<Base["settings"], "sqlWrites">;
  };
  tables: TableSpec[];
  linkViews: LinkView[];
  attachmentViews: AttachmentView[];
  /** The choices of a select that the replica's catalog does not have. */
  choicesOf?: (tableId: string, fieldId: string) => string[] | undefined;
}

export interface TypeModel {
  base: TypesInput["base"];
  /** For the head of a file. */
  title: string;
  tables: TypedTable[];
  views: TypedView[];
}

export interface TypedTable {
  id: string;
  /** SQL name. */
  name: string;
  /** Name of its types: in TypeScript `ProjectsRow`, in Python `Projects`. */
  typeName: string;
  /** The view that SQL writes to, in the schema of those; undefined if there is none. */
  writeView: string | undefined;
  sourceName: string;
  /** Name and description in the source. */
  doc: string;
  /** All columns except `id`, `created_time` and those with details of attachments, by SQL name. */
  columns: TypedColumn[];
}

export interface TypedColumn {
  fieldId: string;
  /** SQL name. */
  name: string;
  sourceName: string;
  doc: string;
  spec: ColumnSpec;
  kind: "text" | "numeric" | "bool" | "date" | "timestamp";
  isList: boolean;
  /** An element of a list may be NULL. */
  hasEmptyElements: boolean;
  isNullable: boolean;
  /** Airtable does not compute it. */
  isWritable: boolean;
  /** For links: the table whose ids these are, if it is in the replica. */
  linked: TypedTable | undefined;
  /** For selects: the known choices. */
  choices: string[] | undefined;
}

/** A view with a row per link, or per attachment. */
export interface TypedView {
  name: string;
  typeName: string;
  doc: string;
  from: TypedTable;
  /** Of links: the other table, if it is in the replica. */
  to: TypedTable | undefined;
  column: TypedColumn;
  /** SQL names of the columns for the record, and for the linked record or the attachment's id. */
  columns: [string, string];
  /** What the second one is, for a comment. */
  toDoc: string;
  /** Of attachments: the columns after these and the position. */
  details: TypedDetail[];
}

/** A column of each view over attachments. */
export interface TypedDetail {
  name: string;
  kind: "text" | "integer" | "bigint";
  isNullable: boolean;
  doc: string;
}

/** SQL names of all columns that are described. */
export function columnNames(one: TypedTable | TypedView): string[] {
  return "id" in one
    ? ["id", "created_time", ...one.columns.map(({ name }) => name)]
    : ["position", ...one.columns, ...one.details.map(({ name }) => name)];
}

/** More choices do not help, and compilers get slow. */
const MOST_CHOICES = 200;

export const ID_DOC = "The record's id in Airtable";
export const CREATED_TIME_DOC = "When the record was created, UTC";
export const POSITION_DOC = "The position in the cell, from 1";

const DETAIL_DOCS: Record<(typeof ATTACHMENT_DETAILS)[number]["name"], string> = {
  filename: "The file's name",
  type: "The media type, such as image/jpeg",
  size: "In bytes",
  width: "In pixels, of an image",
  height: "In pixels, of an image",
  url: "The URL that the table has",
};
const DETAILS = ATTACHMENT_DETAILS.map(
  ({ name, type }): TypedDetail => ({
    name,
    kind: type,
    isNullable: name !== "url",
    doc: DETAIL_DOCS[name],
  }),
);

export function typeModel({ base, tables, linkViews, attachmentViews, choicesOf }: TypesInput): TypeModel {
  const views = [
    ...linkViews.map((view) => ({ view, details: [] })),
    ...attachmentViews.map((view) => ({ view, details: DETAILS })),
  ].sort((a, b) => byName(a.view, b.view));
  const specs = tables.toSorted(byName);
  const names = assignIdentifiers(
    [
      ...specs.map(({ tableId, name }) => ({ id: `table ${tableId}`, name })),
      ...views.map(({ view }) => ({ id: viewKey(view), name: view.name })),
    ],
    { spell: typeNameOf, fallback: "Table", reserved: RESERVED_TYPES },
  );
  const typed = new Map(
    specs.map((spec) => [spec.tableId, emptyTable(spec, names, base.settings?.sqlWrites ?? false)]),
  );
  for (const spec of specs) {
    const table = typed.get(spec.tableId)!;
    table.columns = spec.columns
      .filter(({ filesOf }) => filesOf === undefined)
      .toSorted(byName)
      .map((column) => typedColumn(spec, column, typed.get(column.linkedTableId ?? ""), choicesOf));
  }
  return {
    base,
    title: `${base.name} (${base.sourceBaseId}), copied by Basetide`,
    tables: [...typed.values()],
    views: views.flatMap(({ view, details }) => typedView(view, details, typed, names)),
  };
}

/**
 * Words that no type can be named with: Python's constants, and the names that generated files use themselves
 * (`AirtableRecord` would be the record of a table `airtable`).
 */
const RESERVED_TYPES = new Set(["None", "True", "False", "Base", "Database", "Airtable"]);

/** The ids of a table `project` have the type `ProjectId`, so a table `project_id` gets `ProjectId_`. */
function typeNameOf(sqlName: string): string {
  return unicodeTypeName(sqlName).replace(/Id$/, "Id_");
}

function emptyTable(spec: TableSpec, names: ReadonlyMap<string, string>, hasWrites: boolean): TypedTable {
  const { tableId: id, name, sourceName, description } = spec;
  const doc = described(`${sourceName} (${id})`, description);
  return {
    id,
    name,
    typeName: names.get(`table ${id}`)!,
    writeView: hasWrites ? writeViewOf(spec) : undefined,
    sourceName,
    doc,
    columns: [],
  };
}

function typedColumn(
  table: TableSpec,
  spec: ColumnSpec,
  linked: TypedTable | undefined,
  choicesOf: TypesInput["choicesOf"],
): TypedColumn {
  const { fieldId, name, sourceName, sourceType, description, type, columnType } = spec;
  const isSelect = type === "single_select" || type === "multiple_select";
  const choices = isSelect ? (spec.choices ?? choicesOf?.(table.tableId, fieldId)) : undefined;
  const isList = columnType === "text[]";
  return {
    fieldId,
    name,
    sourceName,
    doc: described(`${sourceName} (${fieldId}, ${sourceType})`, description),
    spec,
    kind: columnType === "text[]" || columnType === "jsonb" ? "text" : columnType,
    isList,
    hasEmptyElements: isList && type === "lookup",
    // Airtable omits every empty cell; only of a checkbox that means a value.
    isNullable: type !== "checkbox",
    isWritable: WRITABLE_TYPES.has(type),
    linked: type === "links" ? linked : undefined,
    choices:
      choices && choices.length > 0 && choices.length <= MOST_CHOICES ? [...new Set(choices)] : undefined,
  };
}

function typedView(
  view: LinkView,
  details: TypedDetail[],
  tables: ReadonlyMap<string, TypedTable>,
  names: ReadonlyMap<string, string>,
): TypedView[] {
  const from = tables.get(view.tableId);
  const column = from?.columns.find(({ fieldId }) => fieldId === view.fieldId);
  if (!from || !column) return [];
  const isOfFiles = details.length > 0;
  const doc = `One row per ${isOfFiles ? "attachment" : "link"} of ${from.name}.${column.name}\n\n${column.doc}`;
  const typeName = names.get(viewKey(view))!;
  const { name, columns } = view;
  const { linked: to } = column;
  const toDoc = isOfFiles ? "The attachment's id" : `The linked record${to ? ` of ${to.name}` : ""}`;
  return [{ name, typeName, doc, from, to, column, columns, toDoc, details }];
}

function viewKey({ tableId, fieldId }: LinkView): string {
  return `view ${tableId} ${fieldId}`;
}

function byName(a: { name: string }, b: { name: string }): number {
  return a.name < b.name ? -1 : 1;
}

function described(origin: string, description: string | undefined): string {
  return description ? `${origin}\n\n${description}` : origin;
}

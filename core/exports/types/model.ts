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
  /** Both. */
  relations: (TypedTable | TypedView)[];
}

/** A table or a view. */
export interface TypedRelation {
  /** Identifies it: the table's id, or the view's name. */
  key: string;
  /** SQL name. */
  name: string;
  /** Name of its types: in TypeScript `ProjectsRow`, in Python `Projects`. */
  typeName: string;
  /** Of a table: its name and description in the source. */
  doc: string;
  /** All columns that are described: those that every table or view has, and then its own. */
  row: RowColumn[];
}

export interface TypedTable extends TypedRelation {
  id: string;
  /** The view that SQL writes to, in the schema of those; undefined if there is none. */
  writeView: string | undefined;
  sourceName: string;
  /** All columns except `id`, `created_time` and those with details of attachments, by SQL name. */
  columns: TypedColumn[];
}

/** What a row has in one column. */
export interface RowColumn {
  /** Unique in the relation. Of a column without a field, a text before all ids of fields. */
  fieldId: string;
  /** SQL name. */
  name: string;
  doc: string;
  kind: "text" | "numeric" | "integer" | "bigint" | "bool" | "date" | "timestamp";
  isList: boolean;
  /** An element of a list may be NULL. */
  hasEmptyElements: boolean;
  isNullable: boolean;
  /** Identifies the row of a table. */
  isKey: boolean;
  /** Of ids: the table of their records, if it is in the replica. */
  linked: TypedTable | undefined;
  /** For selects: the known choices. */
  choices: string[] | undefined;
  /** Absent without a field. */
  spec?: ColumnSpec;
}

export interface TypedColumn extends RowColumn {
  sourceName: string;
  spec: ColumnSpec;
  /** Airtable does not compute it. */
  isWritable: boolean;
}

/** A view with a row per link, or per attachment. */
export interface TypedView extends TypedRelation {
  from: TypedTable;
  /** Of links: the other table, if it is in the replica. */
  to: TypedTable | undefined;
  column: TypedColumn;
  /** SQL names of the columns for the record, and for the linked record or the attachment's id. */
  columns: [string, string];
}

/** More choices do not help, and compilers get slow. */
const MOST_CHOICES = 200;

/** The position in the cell: a column of every view, and of no table. */
export const POSITION = column("position", "integer", "The position in the cell, from 1");

const DETAIL_DOCS: Record<(typeof ATTACHMENT_DETAILS)[number]["name"], string> = {
  filename: "The file's name",
  type: "The media type, such as image/jpeg",
  size: "In bytes",
  width: "In pixels, of an image",
  height: "In pixels, of an image",
  url: "The URL that the table has",
};
const DETAILS = ATTACHMENT_DETAILS.map(({ name, type }) =>
  column(name, type, DETAIL_DOCS[name], { isNullable: name !== "url" }),
);

/** Returns a column without a field. */
function column(
  name: string,
  kind: RowColumn["kind"],
  doc: string,
  more: Partial<Pick<RowColumn, "isKey" | "isNullable" | "linked">> = {},
): RowColumn {
  const usual = { isList: false, hasEmptyElements: false, isNullable: false, isKey: false };
  return { fieldId: ` ${name}`, name, kind, doc, ...usual, linked: undefined, choices: undefined, ...more };
}

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
      .map((one) => typedColumn(spec, one, typed.get(one.linkedTableId ?? ""), choicesOf));
    table.row = [
      column("id", "text", "The record's id in Airtable", { isKey: true, linked: table }),
      column("created_time", "timestamp", "When the record was created, UTC"),
      ...table.columns,
    ];
  }
  const all = { tables: [...typed.values()], views: views.flatMap((one) => typedView(one, typed, names)) };
  const relations = [...all.tables, ...all.views];
  return { base, title: `${base.name} (${base.sourceBaseId}), copied by Basetide`, ...all, relations };
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
    key: id,
    name,
    typeName: names.get(`table ${id}`)!,
    writeView: hasWrites ? writeViewOf(spec) : undefined,
    sourceName,
    doc,
    columns: [],
    row: [],
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
    isKey: false,
    isWritable: WRITABLE_TYPES.has(type),
    linked: type === "links" ? linked : undefined,
    choices:
      choices && choices.length > 0 && choices.length <= MOST_CHOICES ? [...new Set(choices)] : undefined,
  };
}

function typedView(
  { view, details }: { view: LinkView; details: RowColumn[] },
  tables: ReadonlyMap<string, TypedTable>,
  names: ReadonlyMap<string, string>,
): TypedView[] {
  const from = tables.get(view.tableId);
  const of = from?.columns.find(({ fieldId }) => fieldId === view.fieldId);
  if (!from || !of) return [];
  const isOfFiles = details.length > 0;
  const doc = `One row per ${isOfFiles ? "attachment" : "link"} of ${from.name}.${of.name}\n\n${of.doc}`;
  const typeName = names.get(viewKey(view))!;
  const { name, columns } = view;
  const { linked: to } = of;
  const toDoc = isOfFiles ? "The attachment's id" : `The linked record${to ? ` of ${to.name}` : ""}`;
  const row = [
    column(columns[0], "text", `The record of ${from.name}`, { linked: from }),
    POSITION,
    column(columns[1], "text", toDoc, { linked: to }),
    ...details,
  ];
  return [{ key: name, name, typeName, doc, row, from, to, column: of, columns }];
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

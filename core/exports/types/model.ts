/** What all languages are generated from: the tables of a replica with resolved links, in an order that does not change. */
import type { Base } from "../../control/bases";
import type { AttachmentView, ColumnSpec, LinkView, TableSpec } from "../../replica";
import { assignIdentifiers, unicodeTypeName } from "./names";

export interface TypesInput {
  base: Pick<Base, "name" | "sourceBaseId"> & { database: Pick<Base["database"], "name" | "schema"> };
  tables: TableSpec[];
  linkViews: LinkView[];
  /** Only for the sources of dbt. */
  attachmentViews?: AttachmentView[] | undefined;
  /** The choices of a select that the replica's catalog does not have. */
  choicesOf?: (tableId: string, fieldId: string) => string[] | undefined;
}

export interface TypeModel {
  base: TypesInput["base"];
  /** For the head of a file. */
  title: string;
  tables: TypedTable[];
  links: TypedLinkView[];
}

export interface TypedTable {
  id: string;
  /** SQL name. */
  name: string;
  /** Name of its types: in TypeScript `ProjectsRow`, in Python `Projects`. */
  typeName: string;
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
  /** For links: the table whose ids these are, if it is in the replica. */
  linked: TypedTable | undefined;
  /** For selects: the known choices. */
  choices: string[] | undefined;
}

/** A view with a row per link. */
export interface TypedLinkView {
  name: string;
  typeName: string;
  doc: string;
  from: TypedTable;
  to: TypedTable | undefined;
  column: TypedColumn;
  /** SQL names of the columns for the linking and the linked record. */
  columns: [string, string];
}

/** More choices help no one, and compilers get slow. */
const MOST_CHOICES = 200;

export const ID_DOC = "The record's id in Airtable";
export const CREATED_TIME_DOC = "When the record was created, UTC";
export const POSITION_DOC = "The position of the link in its cell, from 1";

export function typeModel({ base, tables, linkViews, choicesOf }: TypesInput): TypeModel {
  const specs = tables.toSorted(byName);
  const names = assignIdentifiers(
    [
      ...specs.map(({ tableId, name }) => ({ id: `table ${tableId}`, name })),
      ...linkViews.map((view) => ({ id: viewKey(view), name: view.name })),
    ],
    { spell: typeNameOf, fallback: "Table", reserved: RESERVED_TYPES },
  );
  const typed = new Map(specs.map((spec) => [spec.tableId, emptyTable(spec, names)]));
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
    links: linkViews.toSorted(byName).flatMap((view) => typedView(view, typed, names)),
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

function emptyTable(spec: TableSpec, names: ReadonlyMap<string, string>): TypedTable {
  const { tableId: id, name, sourceName, description } = spec;
  const doc = described(`${sourceName} (${id})`, description);
  return { id, name, typeName: names.get(`table ${id}`)!, sourceName, doc, columns: [] };
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
    linked: type === "links" ? linked : undefined,
    choices:
      choices && choices.length > 0 && choices.length <= MOST_CHOICES ? [...new Set(choices)] : undefined,
  };
}

function typedView(
  view: LinkView,
  tables: ReadonlyMap<string, TypedTable>,
  names: ReadonlyMap<string, string>,
): TypedLinkView[] {
  const from = tables.get(view.tableId);
  const column = from?.columns.find(({ fieldId }) => fieldId === view.fieldId);
  if (!from || !column) return [];
  const doc = `One row per link of ${from.name}.${column.name}\n\n${column.doc}`;
  const typeName = names.get(viewKey(view))!;
  return [{ name: view.name, typeName, doc, from, to: column.linked, column, columns: view.columns }];
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

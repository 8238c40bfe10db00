/** Generates a dbt `sources.yml` for a base's replica: describes its tables to dbt. */
import type { Base } from "../control/bases";
import {
  ATTACHMENT_DETAILS,
  type AttachmentView,
  type ColumnSpec,
  type LinkView,
  type ReplicaViews,
  snakeCase,
  type TableSpec,
} from "../replica";
import { visibleText } from "../visible-text";
import { toYaml } from "./yaml";

interface Shape extends ReplicaViews {
  tables: TableSpec[];
}

/** The columns of every table. */
const RECORD_COLUMNS = [
  {
    name: "id",
    description: "The record's id in Airtable",
    data_type: "text",
    tests: ["unique", "not_null"],
  },
  {
    name: "created_time",
    description: "When the record was created, UTC",
    data_type: "timestamp",
    tests: ["not_null"],
  },
];

/** @returns YAML; the dbt source has the base's name, in snake_case */
export function dbtSources(
  base: Pick<Base, "name" | "sourceBaseId"> & { database: Pick<Base["database"], "name" | "schema"> },
  { tables, linkViews, attachmentViews }: Shape,
): string {
  const source = {
    name: snakeCase(base.name) || "basetide",
    description: `${base.name} (${base.sourceBaseId}), kept up to date by Basetide`,
    database: base.database.name,
    schema: base.database.schema,
    tables: [
      ...tables.map(tableEntry),
      ...linkViews.map((view) => viewEntry(view, tables)),
      ...attachmentViews.map((view) => filesEntry(view, tables)),
    ],
  };
  return toYaml(literal({ version: 2, sources: [source] }));
}

/** dbt renders the file with Jinja: every text of the source must be escaped, so that it renders unchanged. */
function literal<T>(value: T): T;
function literal(value: unknown): unknown {
  if (typeof value === "string") return jinjaLiteral(value);
  if (Array.isArray(value)) return value.map(literal);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, literal(one)]));
}

/** A text that Jinja renders unchanged, as far as it is visible. An opening that appears without what is not counts. */
export function jinjaLiteral(text: string): string {
  return visibleText(text).replace(/\{[{%#]/g, (opening) => `{{ '${opening}' }}`);
}

function tableEntry({ name, sourceName, tableId, description, columns }: TableSpec) {
  return {
    name,
    description: described(`${sourceName} (${tableId})`, description),
    columns: [...RECORD_COLUMNS, ...columns.map(columnEntry)],
  };
}

function columnEntry({ name, sourceName, fieldId, sourceType, description, columnType }: ColumnSpec) {
  return {
    name,
    // Names may be SQL keywords, or begin with a digit.
    quote: true,
    description: described(`${sourceName} (${fieldId}, ${sourceType})`, description),
    data_type: columnType,
  };
}

function viewEntry(view: LinkView, tables: TableSpec[]) {
  return {
    name: view.name,
    description: `One row per link of ${viewedColumn(view, tables)}`,
    columns: keyColumns(view),
  };
}

function filesEntry(view: AttachmentView, tables: TableSpec[]) {
  return {
    name: view.name,
    description: `One row per attachment of ${viewedColumn(view, tables)}`,
    columns: [
      ...keyColumns(view),
      ...ATTACHMENT_DETAILS.map(({ name, type }) => ({ name, quote: true, data_type: type })),
    ],
  };
}

function viewedColumn({ tableId, fieldId }: LinkView, tables: TableSpec[]): string {
  const table = tables.find((one) => one.tableId === tableId);
  const column = table?.columns.find((one) => one.fieldId === fieldId);
  return `${table?.name ?? tableId}.${column?.name ?? fieldId}`;
}

function keyColumns({ columns: [from, to] }: LinkView) {
  return [
    { name: from, quote: true, data_type: "text", tests: ["not_null"] },
    { name: "position", quote: true, data_type: "integer", tests: ["not_null"] },
    { name: to, quote: true, data_type: "text", tests: ["not_null"] },
  ];
}

function described(origin: string, description: string | undefined): string {
  return description ? `${origin}\n\n${description}` : origin;
}

/**
 * What of a base is copied: which tables, which of their records and fields, and in which form.
 *
 * Pure: `selected-source.ts` applies it to every answer of the source, so that no other part of Basetide ever holds
 * what is left out.
 */
import type { CellHash } from "./hash-cell";
import type { SourceField, SourceRecord, SourceSchema, SourceTable } from "./types";

/** `omitted`: not copied; `hashed`: copied as a keyed hash of each cell. Every other field is copied as it is. */
export type FieldTreatment = "omitted" | "hashed";

export interface TableSelection {
  copied: boolean;
  /** Only the records that this view shows are copied. */
  viewId?: string | undefined;
  /** By field id. */
  fields?: Record<string, FieldTreatment> | undefined;
}

/** What happens to tables that the selection does not name. `ask`: not copied until a person decides. */
export type NewTables = "copy" | "ask" | "ignore";

export interface SourceSelection {
  newTables: NewTables;
  /** By table id. */
  tables: Record<string, TableSelection>;
}

/** By field id. A field id is unique in its base. */
export type Treatments = ReadonlyMap<string, FieldTreatment>;

export function isTableCopied({ newTables, tables }: SourceSelection, tableId: string): boolean {
  return tables[tableId]?.copied ?? newTables === "copy";
}

/** The view whose records alone are copied, if there is one. */
export function viewOf({ tables }: SourceSelection, tableId: string): string | undefined {
  return tables[tableId]?.viewId;
}

/** Returns the fields of all tables that are not copied as they are. */
export function treatmentsOf({ tables }: SourceSelection): Treatments {
  return new Map(Object.values(tables).flatMap(({ fields = {} }) => Object.entries(fields)));
}

/** Returns whether the selection leaves nothing out, now or later. */
export function copiesEverything({ newTables, tables }: SourceSelection): boolean {
  const isWhole = ({ copied, viewId, fields = {} }: TableSelection) =>
    copied && viewId === undefined && Object.keys(fields).length === 0;
  return newTables === "copy" && Object.values(tables).every(isWhole);
}

/** Returns the cells without omitted ones, and with hashes in place of hashed ones. Empty cells stay empty. */
export function selectedCells(
  fields: Record<string, unknown>,
  treatments: Treatments,
  hash: CellHash,
): Record<string, unknown> {
  const cells: Record<string, unknown> = {};
  for (const [fieldId, cell] of Object.entries(fields)) {
    const treatment = treatments.get(fieldId);
    if (treatment === "omitted") continue;
    const isHashed = treatment === "hashed" && cell !== null && cell !== undefined;
    cells[fieldId] = isHashed ? hash(cell) : cell;
  }
  return cells;
}

export function selectedRecord(record: SourceRecord, treatments: Treatments, hash: CellHash): SourceRecord {
  return { ...record, fields: selectedCells(record.fields, treatments, hash) };
}

/**
 * Returns the schema of what is copied. `whole` describes the rest, for dependencies between fields and for names; it
 * is never stored, and has no descriptions and no names of choices.
 *
 * @param schema with views, if the selection has any
 */
export function selectedSchema(
  selection: SourceSelection,
  schema: SourceSchema,
  hash: CellHash,
): SourceSchema {
  const { newTables, tables: chosen } = selection;
  const copied = schema.tables.filter(({ id }) => isTableCopied(selection, id));
  const unreadable = schema.unreadable?.filter(
    ({ tableId, fieldId }) =>
      tableId === undefined ||
      (isTableCopied(selection, tableId) && chosen[tableId]?.fields?.[fieldId ?? ""] !== "omitted"),
  );
  const isUnanswered = ({ id }: SourceTable) => newTables === "ask" && !chosen[id];
  return {
    tables: copied.map((table) => selectedTable(table, chosen[table.id])),
    whole: schema.tables.map((table) =>
      outlineOf(table, isTableCopied(selection, table.id), selection, hash),
    ),
    unanswered: schema.tables.filter(isUnanswered).map(({ id, name }) => ({ id, name })),
    ...(unreadable && unreadable.length > 0 && { unreadable }),
  };
}

/** Returns what of the table is copied. */
export function selectedTable(
  { views, ...table }: SourceTable,
  chosen: TableSelection | undefined,
): SourceTable {
  const { viewId, fields: treatments = {} } = chosen ?? {};
  const fields = table.fields
    .filter(({ id }) => treatments[id] !== "omitted")
    .map((field) => (treatments[field.id] === "hashed" ? hashedField(field) : field));
  const hasOmitted = Object.values(treatments).includes("omitted");
  const partial = viewId === undefined ? (hasOmitted ? "fields" : undefined) : "records";
  // Without a list of views, it is not known whether it is gone.
  const isViewGone = viewId !== undefined && views !== undefined && !views.some(({ id }) => id === viewId);
  return {
    ...table,
    primaryFieldId: fields.some(({ id }) => id === table.primaryFieldId) ? table.primaryFieldId : "",
    fields,
    ...(partial && { partial }),
    ...(viewId !== undefined && { viewId }),
    ...(isViewGone && { isViewGone }),
  };
}

/** Choices and formats of the field would describe the cells that its hashes hide. */
function hashedField({ id, name, sourceType, description }: SourceField): SourceField {
  return { id, name, type: "hashed", sourceType, description };
}

function outlineOf(
  { views: _, ...table }: SourceTable,
  isCopied: boolean,
  { tables }: SourceSelection,
  hash: CellHash,
): SourceTable {
  const treatments = tables[table.id]?.fields ?? {};
  return {
    ...table,
    fields: table.fields.map((field) =>
      isCopied && !treatments[field.id] ? field : withoutChoiceNames(field, hash),
    ),
  };
}

/** Renamed choices still show as a change of the field's definition. */
function withoutChoiceNames(field: SourceField, hash: CellHash): SourceField {
  const { choices, ...options } = field.options ?? {};
  const hashed = Array.isArray(choices)
    ? choices.map((choice: { id?: unknown; name?: unknown } | null) => ({
        id: choice?.id,
        name: hash(choice?.name ?? ""),
      }))
    : undefined;
  return {
    ...field,
    description: undefined,
    choices: undefined,
    options: { ...options, ...(hashed && { choices: hashed }) },
  };
}

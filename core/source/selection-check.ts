/** Checks a selection against the source's schema, before anything is changed. */
import { BasetideError } from "../errors";
import { mayHoldAttachments } from "./attachments";
import { type FieldTreatment, isTableCopied, type SourceSelection, type TableSelection } from "./selection";
import type { FieldType, SourceField, SourceSchema, SourceTable } from "./types";

/** Cells that are no value: a hash of them would join with nothing, or differ at every read. */
const UNHASHABLE: ReadonlySet<FieldType> = new Set(["ai_text", "button", "links"]);

/** Does a hash of the field's cells make sense? */
export function mayBeHashed(field: Pick<SourceField, "type" | "result">): boolean {
  return !UNHASHABLE.has(field.type) && !mayHoldAttachments(field);
}

/**
 * Returns the selection without tables and fields that have been deleted in the source since `before` was made, and
 * without entries that say nothing.
 *
 * @param schema with views
 * @throws BasetideError `invalid_request`, naming the part and the remedy
 */
export function checkSelection(
  asked: SourceSelection,
  schema: SourceSchema,
  before: SourceSelection | null,
): SourceSelection {
  const byId = new Map(schema.tables.map((table) => [table.id, table]));
  const tables: Record<string, TableSelection> = {};
  for (const [tableId, chosen] of Object.entries(asked.tables)) {
    const table = byId.get(tableId);
    const known = before && Object.hasOwn(before.tables, tableId) ? before.tables[tableId] : undefined;
    if (table) tables[tableId] = checkTable(table, chosen, known);
    else if (!known) throw invalid(`There is no table ${tableId} in the base. Leave it out.`);
  }
  const selection = { newTables: asked.newTables, tables };
  if (!schema.tables.some(({ id }) => isTableCopied(selection, id)))
    throw invalid("No table would be copied. Choose at least one, or pause the base.");
  return selection;
}

function checkTable(
  table: SourceTable,
  chosen: TableSelection,
  before: TableSelection | undefined,
): TableSelection {
  const { copied, viewId } = chosen;
  if (viewId !== undefined && !table.views?.some(({ id }) => id === viewId)) {
    throw invalid(
      `There is no view ${viewId} in the table "${table.name}". Choose one that Airtable still has, or all records.`,
    );
  }
  const fields: Record<string, FieldTreatment> = {};
  for (const [fieldId, treatment] of Object.entries(chosen.fields ?? {})) {
    const field = table.fields.find(({ id }) => id === fieldId);
    if (field) fields[fieldId] = checkField(table, field, treatment);
    else if (!Object.hasOwn(before?.fields ?? {}, fieldId))
      throw invalid(`There is no field ${fieldId} in the table "${table.name}". Leave it out.`);
  }
  return {
    copied,
    ...(viewId !== undefined && { viewId }),
    ...(Object.keys(fields).length > 0 && { fields }),
  };
}

function checkField(table: SourceTable, field: SourceField, treatment: FieldTreatment): FieldTreatment {
  const named = `The field "${field.name}" of the table "${table.name}"`;
  if (treatment === "omitted" && field.id === table.primaryFieldId)
    throw invalid(`${named} is the primary field, which identifies the record. Copy it or hash it.`);
  if (treatment === "hashed" && !mayBeHashed(field))
    throw invalid(`${named} has the type ${field.sourceType}, which cannot be hashed. Copy it or omit it.`);
  return treatment;
}

function invalid(message: string): BasetideError {
  return new BasetideError("invalid_request", message);
}

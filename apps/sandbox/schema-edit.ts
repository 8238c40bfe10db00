/**
 * Schema changes of several steps: fields with their inverse, whole tables, new types.
 */

import { type WriteContext, writtenCell } from "./cells";
import type { Computed } from "./computed";
import { ControlError } from "./errors";
import {
  choicesOf,
  fieldById,
  isComputed,
  type SandboxBase,
  type SandboxField,
  type SandboxRow,
  type SandboxTable,
  textOption,
} from "./model";
import type { Random } from "./random";
import { type FieldInput, newField } from "./schema";
import type { Transaction } from "./transaction";

export type NewField = FieldInput & { id?: string; aggregation?: string };

/** Adds a field; a link also gets its inverse in the other table, unless it is one-way or links to its own table. */
export function addField(
  transaction: Transaction,
  table: SandboxTable,
  input: NewField,
  random: Random,
  position?: number,
): SandboxField {
  const { base } = transaction;
  const field = newField(base, table, input, random);
  transaction.addField(table, field, position);
  if (table.primaryFieldId === "") transaction.updateTable(table, { primaryFieldId: field.id });
  if (field.type !== "multipleRecordLinks") return field;
  const other = base.tables.get(textOption(field, "linkedTableId") ?? "");
  const options: Record<string, unknown> = {
    isReversed: false,
    prefersSingleRecordLink: false,
    ...field.options,
  };
  field.options = options;
  if (!other || other === table || options.isOneWay === true || options.inverseLinkFieldId !== undefined) {
    delete options.isOneWay;
    return field;
  }
  const inverse: SandboxField = {
    id: random.id("fld"),
    name: freeFieldName(other, table.name),
    type: "multipleRecordLinks",
    options: {
      linkedTableId: table.id,
      isReversed: true,
      prefersSingleRecordLink: false,
      inverseLinkFieldId: field.id,
    },
  };
  options.inverseLinkFieldId = inverse.id;
  transaction.addField(other, inverse);
  return field;
}

function freeFieldName(table: SandboxTable, wanted: string): string {
  const taken = new Set(table.fields.map((field) => field.name.toLowerCase()));
  if (!taken.has(wanted.toLowerCase())) return wanted;
  for (let n = 2; ; n++) if (!taken.has(`${wanted} ${n}`.toLowerCase())) return `${wanted} ${n}`;
}

/** Deletes a field, its inverse if it is a link, and marks the fields that read through it as broken. */
export function deleteField(transaction: Transaction, table: SandboxTable, field: SandboxField): void {
  if (field.id === table.primaryFieldId)
    throw new ControlError(
      `"${field.name}" is the primary field of ${table.name}; a primary field cannot be deleted.`,
    );
  const { base } = transaction;
  const other = base.tables.get(textOption(field, "linkedTableId") ?? "");
  const inverse = other && fieldById(other, textOption(field, "inverseLinkFieldId") ?? "");
  transaction.removeField(table, field);
  breakReaders(transaction, base, field.id);
  if (other && inverse) {
    transaction.removeField(other, inverse);
    breakReaders(transaction, base, inverse.id);
  }
}

export function deleteTable(transaction: Transaction, table: SandboxTable): void {
  for (const other of transaction.base.tables.values()) {
    if (other === table) continue;
    for (const field of [...other.fields]) {
      if (field.type !== "multipleRecordLinks" || textOption(field, "linkedTableId") !== table.id) continue;
      transaction.removeField(other, field);
      breakReaders(transaction, transaction.base, field.id);
    }
  }
  transaction.removeTable(table);
}

/** Lookups, rollups and counts over a deleted field stay, with `isValid: false`. */
function breakReaders(transaction: Transaction, base: SandboxBase, fieldId: string): void {
  for (const table of base.tables.values())
    for (const field of table.fields) {
      const { recordLinkFieldId, fieldIdInLinkedTable } = field.options ?? {};
      if (recordLinkFieldId !== fieldId && fieldIdInLinkedTable !== fieldId) continue;
      const options = { ...field.options, isValid: false, recordLinkFieldId: null, result: null };
      transaction.updateField(table, field, { options });
    }
}

/**
 * Changes a field's type and converts its cells where possible, as in the app. This does not count as an edit of the
 * rows.
 */
export function retypeField(
  context: WriteContext,
  computed: Computed,
  table: SandboxTable,
  field: SandboxField,
  type: string,
  options: Record<string, unknown> | undefined,
): void {
  const { transaction, random } = context;
  const { base } = transaction;
  const texts = new Map<SandboxRow, string>();
  for (const row of table.rows.values()) {
    const text = computed.text(base, table, row, field);
    if (text !== "") texts.set(row, text);
    if (row.cells[field.id] !== undefined) transaction.setCell(table, row, field, undefined, false);
  }
  const { name, description } = field;
  const made = newField(base, table, { id: field.id, name, type, ...(options && { options }) }, random);
  transaction.updateField(table, field, { type, options: made.options, isFrozen: undefined, description });
  if (isComputed(field)) return;
  for (const [row, text] of texts) {
    const value = carriedOver(context, field, text);
    if (value !== undefined) transaction.setCell(table, row, field, value, false);
  }
}

function carriedOver(context: WriteContext, field: SandboxField, text: string): unknown {
  try {
    return writtenCell(context, field, text, undefined);
  } catch {
    // Values that the new type cannot represent are lost, as in the app.
    return undefined;
  }
}

/** Renames a choice: every cell with it shows the new name, and no row counts as edited. */
export function renameChoice(
  transaction: Transaction,
  table: SandboxTable,
  field: SandboxField,
  from: string,
  to: string,
): void {
  const choices = choicesOf(field);
  if (!choices.some((choice) => choice.name === from))
    throw new ControlError(`The field "${field.name}" has no choice "${from}".`);
  const renamed = choices.map((choice) => (choice.name === from ? { ...choice, name: to } : choice));
  transaction.updateField(table, field, { options: { ...field.options, choices: renamed } });
  for (const row of table.rows.values()) {
    const value = row.cells[field.id];
    if (value === from) transaction.setCell(table, row, field, to, false);
    else if (Array.isArray(value) && value.includes(from))
      transaction.setCell(
        table,
        row,
        field,
        value.map((one: unknown) => (one === from ? to : one)),
        false,
      );
  }
}

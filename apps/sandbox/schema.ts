/**
 * Tables and fields in the form that the meta API shows and accepts.
 */

import { apiError } from "./errors";
import { compileFormula } from "./formula";
import {
  fieldResolver,
  type SandboxBase,
  type SandboxField,
  type SandboxTable,
  type SelectChoice,
  type View,
} from "./model";
import type { Random } from "./random";

export interface FieldInput {
  name: string;
  type: string;
  description?: string;
  options?: Record<string, unknown> | null;
}

/** A field as `GET /v0/meta/bases/{b}/tables` shows it. */
export function shownField(field: SandboxField): Record<string, unknown> {
  const { id, name, type, description, options } = field;
  const shown: Record<string, unknown> = { type };
  if (options !== undefined) shown.options = options;
  Object.assign(shown, { id, name });
  if (description) shown.description = description;
  return shown;
}

export function shownTable(table: SandboxTable, withVisibleFields = false): Record<string, unknown> {
  const shown: Record<string, unknown> = { id: table.id, name: table.name };
  if (table.description) shown.description = table.description;
  shown.primaryFieldId = table.primaryFieldId;
  shown.fields = table.fields.map(shownField);
  shown.views = table.views.map((view) => shownView(table, view, withVisibleFields));
  if (table.dateDependencySettings !== undefined) shown.dateDependencySettings = table.dateDependencySettings;
  return shown;
}

function shownView(table: SandboxTable, view: View, withVisibleFields: boolean): Record<string, unknown> {
  const { id, name, type } = view;
  if (!withVisibleFields || type !== "grid") return { id, name, type };
  return { id, name, type, visibleFieldIds: view.visibleFieldIds ?? table.fields.map((field) => field.id) };
}

/** Types that the API can create. Beyond the historical list, these are computed ones with definitions. */
const CREATABLE = new Set([
  ..."barcode checkbox currency date dateTime duration email multilineText multipleAttachments".split(" "),
  ..."multipleCollaborators multipleRecordLinks multipleSelects number percent phoneNumber rating".split(" "),
  ..."richText singleCollaborator singleLineText singleSelect url".split(" "),
  ..."formula rollup multipleLookupValues count".split(" "),
]);

/** Types that require options. */
const NEEDS_OPTIONS = new Set(
  (
    "checkbox currency date dateTime duration multipleSelects singleSelect number percent rating formula " +
    "multipleRecordLinks rollup multipleLookupValues count"
  ).split(" "),
);

/** @throws ApiError 422 `UNSUPPORTED_FIELD_TYPE_FOR_CREATE` or `INVALID_FIELD_TYPE_OPTIONS_FOR_CREATE` */
export function checkCreatable(base: SandboxBase, table: SandboxTable, input: FieldInput): void {
  const { type, name, options } = input;
  if (!CREATABLE.has(type))
    throw apiError(
      422,
      "UNSUPPORTED_FIELD_TYPE_FOR_CREATE",
      `Invalid options for ${table.name}.${name}: Creating ${type} fields is not supported at this time`,
    );
  const isRefused = (NEEDS_OPTIONS.has(type) && !options) || !areUsable(base, table, type, options ?? {});
  if (isRefused)
    throw apiError(422, "INVALID_FIELD_TYPE_OPTIONS_FOR_CREATE", `Invalid options for ${table.name}.${name}`);
}

function areUsable(
  base: SandboxBase,
  table: SandboxTable,
  type: string,
  options: Record<string, unknown>,
): boolean {
  switch (type) {
    case "dateTime":
      // "UTC" is rejected, "utc" is correct.
      return typeof options.timeZone === "string" && options.timeZone !== "UTC";
    case "singleSelect":
    case "multipleSelects":
      return Array.isArray(options.choices);
    case "multipleRecordLinks":
      return base.tables.has(String(options.linkedTableId));
    case "number":
    case "percent":
    case "currency":
      return Number.isInteger(options.precision);
    case "rollup":
    case "multipleLookupValues":
    case "count":
      return table.fields.some((field) => field.id === options.recordLinkFieldId);
    default:
      return true;
  }
}

/**
 * Creates a field with ids for its choices, its formula's names replaced by ids, and `isValid` where it applies. Does
 * not create the inverse of a link.
 */
export function newField(
  base: SandboxBase,
  table: SandboxTable,
  input: FieldInput & { id?: string; aggregation?: string },
  random: Random,
): SandboxField {
  const field: SandboxField = { id: input.id ?? random.id("fld"), name: input.name, type: input.type };
  if (input.description) field.description = input.description;
  if (input.aggregation) field.aggregation = input.aggregation;
  if (input.options !== undefined)
    field.options = input.options && completeOptions(base, table, input, random);
  return field;
}

function completeOptions(
  base: SandboxBase,
  table: SandboxTable,
  input: FieldInput,
  random: Random,
): Record<string, unknown> {
  const options = { ...input.options };
  if (Array.isArray(options.choices))
    options.choices = options.choices.map((choice: Partial<SelectChoice>) => ({
      id: choice.id ?? random.id("sel"),
      ...choice,
    }));
  if (input.type === "formula") completeFormula(table, options);
  if (input.type === "rollup" || input.type === "multipleLookupValues") {
    options.isValid ??= true;
    options.result ??= resultOf(base, table, options);
  }
  if (input.type === "count") options.isValid ??= true;
  return options;
}

function completeFormula(table: SandboxTable, options: Record<string, unknown>): void {
  const resolve = fieldResolver(table);
  const text = String(options.formula ?? "");
  options.formula = text.replace(/\{([^}]+)\}/g, (whole, name: string) => {
    const id = resolve(name);
    return id ? `{${id}}` : whole;
  });
  try {
    options.referencedFieldIds ??= compileFormula(String(options.formula), resolve).referencedFieldIds;
    options.isValid ??= true;
    options.result ??= { type: "singleLineText" };
  } catch {
    Object.assign(options, { isValid: false, referencedFieldIds: null, result: null });
  }
}

/** The result type of a lookup or rollup, unless given: the far field's type. */
function resultOf(base: SandboxBase, table: SandboxTable, options: Record<string, unknown>): unknown {
  const link = table.fields.find((field) => field.id === options.recordLinkFieldId);
  const other = base.tables.get(String(link?.options?.linkedTableId));
  const target = other?.fields.find((field) => field.id === options.fieldIdInLinkedTable);
  if (!target) return null;
  const inner = target.options?.result as unknown;
  if (inner) return inner;
  return target.options ? { type: target.type, options: target.options } : { type: target.type };
}

export function emptyBase(name: string, id: string): SandboxBase {
  return {
    id,
    name,
    tables: new Map(),
    schemaVersion: 0,
    version: 0,
    transactionNumber: 0,
    sharedFrom: undefined,
  };
}

/** Creates an empty table with a grid view; the first field is the primary one. */
export function newTable(
  given: { id?: string; name: string; description?: string },
  random: Random,
): SandboxTable {
  const table: SandboxTable = {
    id: given.id ?? random.id("tbl"),
    name: given.name,
    primaryFieldId: "",
    fields: [],
    views: [{ id: random.id("viw"), name: "Grid view", type: "grid" }],
    rows: new Map(),
    nextAutoNumber: 1,
    version: 0,
    rowIds: undefined,
  };
  if (given.description) table.description = given.description;
  return table;
}

/** @throws ApiError 422 `DUPLICATE_OR_EMPTY_FIELD_NAME` */
export function checkFieldName(
  table: SandboxTable,
  name: unknown,
  except?: SandboxField,
): asserts name is string {
  const folded = typeof name === "string" ? name.trim().toLowerCase() : "";
  if (folded === "" || table.fields.some((field) => field !== except && field.name.toLowerCase() === folded))
    throw apiError(422, "DUPLICATE_OR_EMPTY_FIELD_NAME", "Field names must be unique and not empty");
}

/** @throws ApiError 422 `DUPLICATE_TABLE_NAME` */
export function checkTableName(
  base: SandboxBase,
  name: unknown,
  except?: SandboxTable,
): asserts name is string {
  const folded = typeof name === "string" ? name.trim().toLowerCase() : "";
  const isTaken = [...base.tables.values()].some(
    (table) => table !== except && table.name.toLowerCase() === folded,
  );
  if (folded === "" || isTaken)
    throw apiError(422, "DUPLICATE_TABLE_NAME", "Table names must be unique and not empty");
}

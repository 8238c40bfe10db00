/**
 * The in-memory model of a base. Cells are stored as the API's JSON, keyed by field id; empty cells are absent.
 */

/** Incremented by every change that may show in an answer; caches compare it. */
export type Version = number;

export type Cells = Record<string, unknown>;

export interface User {
  id: string;
  email?: string;
  name?: string;
}

export interface SandboxField {
  id: string;
  name: string;
  type: string;
  description?: string;
  /** As in the schema; absent if the type has none. */
  options?: Record<string, unknown> | null;
  /** The aggregation of a rollup. Airtable's schema does not contain it, so it is stored next to the options. */
  aggregation?: string;
  /** Computed cells of loaded records stay as given. */
  isFrozen?: boolean;
}

export interface View {
  id: string;
  name: string;
  type: string;
  visibleFieldIds?: string[];
  /** Only rows for which this formula is true are shown; all if absent. */
  filter?: string;
}

export interface Comment {
  id: string;
  author: User;
  text: string;
  createdTime: string;
  lastUpdatedTime: string | null;
  parentCommentId?: string;
}

export interface SandboxRow {
  id: string;
  /** ISO 8601 as the API shows it, in whole seconds unless given otherwise. */
  createdTime: string;
  cells: Cells;
  autoNumber: number;
  createdBy: User;
  modifiedBy: User;
  /** Latest change of a non-computed cell by a user, ms. */
  modifiedMs: number;
  /** The same per field id; a field without an entry was last touched at creation. */
  fieldModifiedMs: Record<string, number>;
  comments: Comment[];
  /** Was loaded with its computed cells (see `Field.isFrozen`). */
  isLoaded: boolean;
  version: Version;
  /** Values computed from the cells; owned by `computed.ts`. */
  cache?: RowCache;
}

export interface RowCache {
  rowVersion: Version;
  schemaVersion: Version;
  foreignVersion: Version;
  /** Computed cells by field id; `undefined` is a known empty cell. */
  computed: Map<string, unknown>;
}

export interface SandboxTable {
  id: string;
  name: string;
  description?: string;
  primaryFieldId: string;
  /** In the order of the schema. */
  fields: SandboxField[];
  views: View[];
  /** In the order of creation. */
  rows: Map<string, SandboxRow>;
  nextAutoNumber: number;
  /** Changes with every change of a row or field of this table. */
  version: Version;
  /** The row ids in order, shared by every list of the whole table until a row is added or deleted. */
  rowIds: string[] | undefined;
  dateDependencySettings?: unknown;
}

export interface SandboxBase {
  id: string;
  name: string;
  tables: Map<string, SandboxTable>;
  /** Changes with every change of a table, field or choice, and so with every rename. */
  schemaVersion: Version;
  version: Version;
  transactionNumber: number;
  /** The base whose tables these are, if several bases have them: they are copied before a change (`Store.open`). */
  sharedFrom: string | undefined;
}

/** Types whose cells cannot be written. */
const COMPUTED_TYPES = new Set([
  "formula",
  "rollup",
  "multipleLookupValues",
  "lookup",
  "count",
  "autoNumber",
  "createdTime",
  "lastModifiedTime",
  "createdBy",
  "lastModifiedBy",
  "button",
  "aiText",
  "externalSyncSource",
  "manualSort",
]);

/** Of those, the types whose cells are stored as given, because the sandbox cannot compute them. */
const KEPT_TYPES = new Set(["button", "aiText", "externalSyncSource", "manualSort"]);
const EVALUATED_TYPES = COMPUTED_TYPES.difference(KEPT_TYPES);

export function isComputed(field: SandboxField): boolean {
  return COMPUTED_TYPES.has(field.type);
}

/** Whether the cell is computed here (and not stored as given). */
export function isEvaluated(field: SandboxField): boolean {
  return EVALUATED_TYPES.has(field.type);
}

/** Whether the API treats the cell as empty and leaves it out of answers. Zero is not empty. */
export function isEmptyCell(value: unknown): boolean {
  return (
    value === undefined ||
    value === null ||
    value === "" ||
    value === false ||
    (Array.isArray(value) && value.length === 0)
  );
}

/** A text member of a field's options. */
export function textOption(field: SandboxField, name: string): string | undefined {
  const value = field.options?.[name];
  return typeof value === "string" ? value : undefined;
}

export interface SelectChoice {
  id: string;
  name: string;
  color?: string;
}

export function choicesOf(field: SandboxField): SelectChoice[] {
  const choices = field.options?.choices;
  return Array.isArray(choices) ? (choices as SelectChoice[]) : [];
}

export function fieldById(table: SandboxTable, fieldId: string): SandboxField | undefined {
  return table.fields.find((field) => field.id === fieldId);
}

/** A field by id or exact name; an id wins. */
export function findField(table: SandboxTable, nameOrId: string): SandboxField | undefined {
  return fieldById(table, nameOrId) ?? table.fields.find((field) => field.name === nameOrId);
}

/** A table by id or exact name; an id wins. */
export function tableByIdOrName(base: SandboxBase, nameOrId: string): SandboxTable | undefined {
  const byId = base.tables.get(nameOrId);
  if (byId) return byId;
  for (const table of base.tables.values()) if (table.name === nameOrId) return table;
  return undefined;
}

/** Finds fields for the formula language: names in any case, ids as they are; an id wins. */
export function fieldResolver(table: SandboxTable): (nameOrId: string) => string | undefined {
  return (nameOrId) => {
    const folded = nameOrId.toLowerCase();
    return (
      fieldById(table, nameOrId)?.id ??
      table.fields.find((field) => field.name.toLowerCase() === folded || field.id.toLowerCase() === folded)
        ?.id
    );
  };
}

/** The record ids of a link cell, whatever it contains. */
export function idsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((id): id is string => typeof id === "string") : [];
}

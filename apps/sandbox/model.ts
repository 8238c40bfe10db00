/**
 * What a base is made of in memory. Cells are kept as the API's JSON, keyed by field id; empty cells are absent.
 */

/** Bumped by every change that could show in an answer; caches compare them. Only ever grows. */
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
  /** As the schema gives them; absent where the type has none. */
  options?: Record<string, unknown> | null;
  /** How a rollup sums up. Airtable's schema does not say it, so it is kept beside the options. */
  aggregation?: string;
  /** Computed cells of loaded records stay as they were given. */
  isFrozen?: boolean;
}

export interface View {
  id: string;
  name: string;
  type: string;
  visibleFieldIds?: string[];
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
  /** ISO 8601 as the API shows it, whole seconds unless given otherwise. */
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
  /** Came with its computed cells (see `Field.isFrozen`). */
  isLoaded: boolean;
  version: Version;
  /** What has been worked out from the cells; owned by `computed.ts`. */
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
  /** Moves with every change of a row or field of this table. */
  version: Version;
  /** The row ids in order, shared by every list of the whole table until a row comes or goes. */
  rowIds: string[] | undefined;
  dateDependencySettings?: unknown;
}

export interface SandboxBase {
  id: string;
  name: string;
  tables: Map<string, SandboxTable>;
  /** Moves with every change of a table, field or choice, and so with every rename. */
  schemaVersion: Version;
  version: Version;
  transactionNumber: number;
}

/** Types whose cells nobody can write. */
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

/** Of those, the ones whose cells are kept as given, because nothing here can work them out. */
const KEPT_TYPES = new Set(["button", "aiText", "externalSyncSource", "manualSort"]);
const EVALUATED_TYPES = COMPUTED_TYPES.difference(KEPT_TYPES);

export function isComputed(field: SandboxField): boolean {
  return COMPUTED_TYPES.has(field.type);
}

/** Is the cell worked out here (and not kept as given)? */
export function isEvaluated(field: SandboxField): boolean {
  return EVALUATED_TYPES.has(field.type);
}

/** Empty as the API means it: such a cell is left out of answers. Zero is not empty. */
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

/** The record ids of a link cell, whatever stands in it. */
export function idsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((id): id is string => typeof id === "string") : [];
}

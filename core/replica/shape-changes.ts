/** Describes the changes between two shapes of a table, for the log that people read. */
import type { ColumnSpec, TableSpec } from "./spec";

export type ShapeChangeKind =
  | "table_added"
  | "table_dropped"
  | "table_renamed"
  | "table_rebuilt"
  | "field_added"
  | "field_dropped"
  | "field_renamed"
  | "field_retyped"
  /** Nothing has changed in SQL: a new table of the source is not copied until a person decides. */
  | "table_waiting";

/**
 * What a change means for SQL. `additive`: what worked still works. `rename`: a table or a column has another name.
 * `breaking`: a table or a column is gone, or has another type.
 */
export type Severity = "additive" | "rename" | "breaking";

export const severities = ["additive", "rename", "breaking"] as const satisfies readonly Severity[];

/** A table or a field at one time: its source name, its SQL name, and for a field its types. */
export interface ShapeName {
  source_name: string;
  name: string;
  source_type?: string;
  type?: string;
}

export interface ShapeChange {
  kind: ShapeChangeKind;
  /** SQL name of the table after the change; of a dropped one, its last name. */
  table: string;
  /** SQL name of the column, likewise; null for a change of the table. */
  field: string | null;
  before: ShapeName | null;
  after: ShapeName | null;
}

export function severityOf({
  kind,
  before,
  after,
}: Pick<ShapeChange, "kind" | "before" | "after">): Severity {
  switch (kind) {
    case "table_dropped":
    case "field_dropped":
      return "breaking";
    case "table_renamed":
    case "field_renamed":
      return before?.name === after?.name ? "additive" : "rename";
    case "field_retyped":
      return before?.type === after?.type ? "additive" : "breaking";
    case "table_added":
    case "field_added":
    case "table_rebuilt":
    case "table_waiting":
      return "additive";
  }
}

/**
 * Returns the changes from `before` to `after`; undefined stands for no table. Changes that people do not see
 * (descriptions, the order of fields) are left out.
 */
export function shapeChanges(before: TableSpec | undefined, after: TableSpec | undefined): ShapeChange[] {
  if (!after) return before ? [tableChange("table_dropped", before.name, before)] : [];
  if (!before) return [tableChange("table_added", after.name, undefined, after)];
  const old = new Map(before.columns.map((column) => [column.fieldId, column]));
  const kept = new Set(after.columns.map((column) => column.fieldId));
  return [
    ...(isRenamed(before, after) ? [tableChange("table_renamed", after.name, before, after)] : []),
    ...before.columns
      .filter((column) => !kept.has(column.fieldId))
      .map((column) => fieldChange("field_dropped", after, column)),
    ...after.columns.flatMap((column) => fieldChanges(after, old.get(column.fieldId), column)),
  ];
}

function fieldChanges(table: TableSpec, before: ColumnSpec | undefined, after: ColumnSpec): ShapeChange[] {
  if (!before) return [fieldChange("field_added", table, undefined, after)];
  const isRetyped = before.sourceType !== after.sourceType || before.columnType !== after.columnType;
  return [
    ...(isRenamed(before, after) ? [fieldChange("field_renamed", table, before, after)] : []),
    ...(isRetyped ? [fieldChange("field_retyped", table, before, after)] : []),
  ];
}

function isRenamed(
  before: Pick<TableSpec, "name" | "sourceName">,
  after: Pick<TableSpec, "name" | "sourceName">,
): boolean {
  return before.name !== after.name || before.sourceName !== after.sourceName;
}

function tableChange(
  kind: ShapeChangeKind,
  table: string,
  before?: TableSpec,
  after?: TableSpec,
): ShapeChange {
  return { kind, table, field: null, before: nameOf(before), after: nameOf(after) };
}

function fieldChange(
  kind: ShapeChangeKind,
  { name }: TableSpec,
  before?: ColumnSpec,
  after?: ColumnSpec,
): ShapeChange {
  return {
    kind,
    table: name,
    field: (after ?? before)!.name,
    before: nameOf(before),
    after: nameOf(after),
  };
}

function nameOf(spec: TableSpec | ColumnSpec | undefined): ShapeName | null {
  if (!spec) return null;
  const name = { source_name: spec.sourceName, name: spec.name };
  return "columnType" in spec ? { ...name, source_type: spec.sourceType, type: spec.columnType } : name;
}

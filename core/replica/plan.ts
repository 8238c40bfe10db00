/**
 * Compares what the replica has with what the source's schema and the base's settings want.
 *
 * Pure: names, types and the order of steps are decided here, and only carried out elsewhere. A table whose
 * columns keep their types is changed in place (renames, comments); any other difference rebuilds that table.
 */
import type { SourceField, SourceSchema, SourceTable } from "../source/types";
import { assignNames } from "./naming";
import type { ColumnSpec, TableSpec, TypeSettings } from "./spec";
import { columnTypeOf, readerOf } from "./type-map";

/** A table as the replica's catalog has it. */
export interface CatalogTable {
  spec: TableSpec;
  /** Counts up with every change of the columns. */
  shape: number;
}

/** By table id. */
export type Catalog = Map<string, CatalogTable>;

export interface SchemaPlan {
  /** Live tables whose names, or whose columns' names or comments, change in place: the shape they get. */
  inPlace: TableSpec[];
  /** Tables to read anew: new ones, and those whose columns come, go or change type. */
  rebuild: TableSpec[];
  /** Live tables that the source has no more. */
  drop: TableSpec[];
}

export function planSchema(catalog: Catalog, source: SourceSchema, settings: TypeSettings): SchemaPlan {
  const rememberedTables = new Map([...catalog].map(([id, { spec }]) => [id, spec]));
  const tableNames = assignNames(source.tables, { remembered: rememberedTables, kind: "table" });
  const plan: SchemaPlan = { inPlace: [], rebuild: [], drop: [] };
  for (const table of source.tables) {
    const live = catalog.get(table.id)?.spec;
    const wanted = tableSpec(table, tableNames.get(table.id)!, live, settings);
    if (!live) plan.rebuild.push(wanted);
    else if (hasSameColumns(live, wanted)) {
      const inOrder = {
        ...wanted,
        columns: live.columns.map((column) => columnById(wanted, column.fieldId)),
      };
      if (!Bun.deepEquals(live, inOrder)) plan.inPlace.push(inOrder);
    } else {
      plan.rebuild.push(wanted);
      const renamed = { ...live, name: wanted.name, sourceName: wanted.sourceName };
      if (live.name !== wanted.name) plan.inPlace.push(renamed);
    }
  }
  const wantedIds = new Set(source.tables.map((table) => table.id));
  for (const [id, { spec }] of catalog) if (!wantedIds.has(id)) plan.drop.push(spec);
  return plan;
}

function tableSpec(
  table: SourceTable,
  name: string,
  live: TableSpec | undefined,
  settings: TypeSettings,
): TableSpec {
  const remembered = new Map(live?.columns.map((column) => [column.fieldId, column]) ?? []);
  const names = assignNames(table.fields, { remembered, kind: "column" });
  return {
    tableId: table.id,
    name,
    sourceName: table.name,
    ...(table.description ? { description: table.description } : {}),
    columns: table.fields.map((field) => columnSpec(field, names.get(field.id)!, settings)),
  };
}

function columnSpec(field: SourceField, name: string, settings: TypeSettings): ColumnSpec {
  return {
    fieldId: field.id,
    name,
    sourceName: field.name,
    ...(field.description ? { description: field.description } : {}),
    type: field.type,
    sourceType: field.sourceType,
    ...(field.result ? { result: field.result } : {}),
    columnType: columnTypeOf(field, settings),
  };
}

/** Are they made of the same fields, whose cells become the same values? Order does not matter. */
function hasSameColumns(live: TableSpec, wanted: TableSpec): boolean {
  if (live.columns.length !== wanted.columns.length) return false;
  const before = new Map(live.columns.map((column) => [column.fieldId, column]));
  return wanted.columns.every((column) => {
    const old = before.get(column.fieldId);
    return (
      old?.columnType === column.columnType &&
      readerOf(old.type, old.columnType) === readerOf(column.type, column.columnType)
    );
  });
}

function columnById(spec: TableSpec, fieldId: string): ColumnSpec {
  return spec.columns.find((column) => column.fieldId === fieldId)!;
}

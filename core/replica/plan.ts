/**
 * Plans how to change the replica to match the source's schema and the base's settings.
 *
 * Pure: names, types and the order of steps are decided here and carried out elsewhere. A table whose columns keep
 * their types is changed in place (renames, comments); any other difference rebuilds the table.
 */

import type { SourceField, SourceSchema, SourceTable } from "../source";
import { mayHoldAttachments } from "../source";
import { COMMENT_FORM } from "./ddl";
import { storable } from "./map-record-text";
import { assignNames } from "./naming";
import type { ColumnSpec, ReadAs, TableSpec, TypeSettings } from "./spec";
import { cellReaderOf, columnTypeOf } from "./type-map";

/** More choices of a select are not stored: finding a value among them would be slow. */
const MAX_CHOICES = 200;

/** A table as recorded in the replica's catalog. */
export interface CatalogTable {
  spec: TableSpec;
  /** Increases with every change of the columns. */
  shape: number;
  readAs?: ReadAs | undefined;
}

/** By table id. */
export type Catalog = Map<string, CatalogTable>;

export interface SchemaPlan {
  /** Live tables whose names, or whose columns' names or comments, change in place, with their new shape. */
  inPlace: TableSpec[];
  /** Tables to read again: new ones, and those whose columns are added, removed or change type. */
  rebuild: TableSpec[];
  /** Live tables that no longer exist in the source. */
  drop: TableSpec[];
}

/** @param foreignNames names that a table cannot have, because objects that are not ours have them */
export function planSchema(
  catalog: Catalog,
  source: SourceSchema,
  settings: TypeSettings,
  foreignNames: readonly string[] = [],
): SchemaPlan {
  const rememberedTables = new Map([...catalog].map(([id, { spec }]) => [id, spec]));
  const tableNames = assignNames(source.tables, {
    remembered: rememberedTables,
    kind: "table",
    reserved: foreignNames,
  });
  const plan: SchemaPlan = { inPlace: [], rebuild: [], drop: [] };
  for (const table of source.tables) {
    const live = catalog.get(table.id)?.spec;
    const wanted = tableSpec(table, tableNames.get(table.id)!, live, settings);
    if (!live) plan.rebuild.push(wanted);
    else if (live.isDamaged) plan.rebuild.push(undamaged(live, wanted));
    else if (hasSameColumns(live, wanted)) {
      const inOrder = {
        ...wanted,
        columns: live.columns.map((column) => columnById(wanted, column.fieldId)),
      };
      if (!Bun.deepEquals(live, inOrder)) plan.inPlace.push(inOrder);
    } else {
      plan.rebuild.push(wanted);
      const renamed = renamedOnly(live, wanted);
      if (!Bun.deepEquals(live, renamed)) plan.inPlace.push(renamed);
    }
  }
  const wantedIds = new Set(source.tables.map((table) => table.id));
  for (const [id, { spec }] of catalog) if (!wantedIds.has(id)) plan.drop.push(spec);
  // A needed name may belong to a missing table, which cannot be renamed.
  if ([...catalog.values()].some(({ spec }) => spec.isDamaged)) plan.inPlace = [];
  return plan;
}

/**
 * Returns the spec to rebuild a damaged table by: unchanged where the source still has its fields. Renames follow
 * later.
 */
function undamaged(live: TableSpec, wanted: TableSpec): TableSpec {
  const { isDamaged: _, ...was } = live;
  return hasSameColumns(was, wanted) ? was : wanted;
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
    sourceName: storable(table.name),
    ...(table.description ? { description: storable(table.description) } : {}),
    commentForm: COMMENT_FORM,
    columns: table.fields.map((field) => columnSpec(field, names.get(field.id)!, settings)),
  };
}

function columnSpec(field: SourceField, name: string, settings: TypeSettings): ColumnSpec {
  return {
    fieldId: field.id,
    name,
    sourceName: storable(field.name),
    ...(field.description ? { description: storable(field.description) } : {}),
    type: field.type,
    sourceType: storable(field.sourceType),
    ...(field.result ? { result: field.result } : {}),
    ...(field.type === "single_select" && field.choices && field.choices.length <= MAX_CHOICES
      ? { choices: field.choices.map((choice) => storable(choice)) }
      : {}),
    ...(field.linkedTableId ? { linkedTableId: storable(field.linkedTableId) } : {}),
    columnType: columnTypeOf(field, settings),
    ...(settings.attachmentUrls && mayHoldAttachments(field)
      ? { attachmentUrls: settings.attachmentUrls }
      : {}),
  };
}

/** Returns whether both have the same fields, whose cells become the same values. Order does not matter. */
export function hasSameColumns(live: TableSpec, wanted: TableSpec): boolean {
  return live.columns.length === wanted.columns.length && keepsCells(live, wanted);
}

/** Returns whether the table only gains columns, and the cells of its existing ones become the same values. */
export function onlyAddsColumns(live: TableSpec, wanted: TableSpec): boolean {
  return !live.isDamaged && live.columns.length < wanted.columns.length && keepsCells(live, wanted);
}

/** Returns whether the table only loses columns, and the cells of the others become the same values. */
export function onlyDropsColumns(live: TableSpec, wanted: TableSpec): boolean {
  return !live.isDamaged && wanted.columns.length < live.columns.length && keepsCells(wanted, live);
}

/**
 * Returns whether every column of the table stays, with its type. Its cells may become other values. For a damaged
 * table the columns must keep their names too.
 */
export function keepsColumns(live: TableSpec, wanted: TableSpec): boolean {
  const after = new Map(wanted.columns.map((column) => [column.fieldId, column]));
  return live.columns.every(({ fieldId, columnType, name }) => {
    const column = after.get(fieldId);
    return column?.columnType === columnType && (!live.isDamaged || column.name === name);
  });
}

function keepsCells(live: TableSpec, wanted: TableSpec): boolean {
  const after = new Map(wanted.columns.map((column) => [column.fieldId, column]));
  return live.columns.every((old) => {
    const column = after.get(old.fieldId);
    return (
      old.columnType === column?.columnType &&
      cellReaderOf(old.type, old.columnType) === cellReaderOf(column.type, column.columnType) &&
      Bun.deepEquals(old.attachmentUrls, column.attachmentUrls)
    );
  });
}

/**
 * Returns `live` with the names and comments of `wanted`, for the time until it is rebuilt. A column whose new name
 * still belongs to another column keeps its old one until then.
 */
function renamedOnly(live: TableSpec, wanted: TableSpec): TableSpec {
  const { columns: _, ...table } = wanted;
  const named = new Map(wanted.columns.map((column) => [column.fieldId, column]));
  let columns = live.columns.map((column): ColumnSpec => {
    const { name, sourceName, description } = named.get(column.fieldId) ?? column;
    const { description: _old, ...kept } = column;
    return { ...kept, name, sourceName, ...(description ? { description } : {}) };
  });
  for (let isFree = false; !isFree; ) {
    const holders = Map.groupBy(columns, (column) => column.name);
    isFree = holders.size === columns.length;
    columns = columns.map((column, index) =>
      holders.get(column.name)!.length > 1 ? live.columns[index]! : column,
    );
  }
  return { ...table, columns };
}

function columnById(spec: TableSpec, fieldId: string): ColumnSpec {
  return spec.columns.find((column) => column.fieldId === fieldId)!;
}

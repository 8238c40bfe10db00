/**
 * Plans how to change the replica to match the source's schema and the base's settings.
 *
 * Pure: names, types and the order of steps are decided here and carried out elsewhere. A table whose columns keep
 * their types is changed in place (renames, comments); any other difference rebuilds the table.
 */

import type { SourceField, SourceSchema, SourceTable } from "../source";
import { mayHoldAttachments } from "../source";
import { withFileColumns } from "./file-columns";
import { storable } from "./map-record-text";
import { assignNames, originOf } from "./naming";
import type { ColumnSpec, NameSettings, OwnName, ReadAs, RetiredName, TableSpec, TypeSettings } from "./spec";
import { cellReaderOf, columnTypeOf } from "./type-map";

/** More choices of a select are not stored: finding a value among them would be slow. */
const MAX_CHOICES = 200;

/** Of a table that loses fields again and again, the names of the latest ones are retired. */
const MAX_RETIRED = 500;

/** A table as recorded in the replica's catalog. */
export interface CatalogTable {
  spec: TableSpec;
  /** Increases with every change of the columns. */
  shape: number;
  readAs?: ReadAs | undefined;
  /** Why it must be neither read nor written: the table of its name belongs to another role. */
  taken?: string | undefined;
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
  /** The names of dropped tables are retired. */
  isPinned?: true;
}

type PlanSettings = TypeSettings & NameSettings;

/**
 * @param foreignNames names that a table cannot have, because objects that are not ours have them
 * @param retired the names of tables that were dropped while names were pinned, by table id
 */
export function planSchema(
  catalog: Catalog,
  source: SourceSchema,
  settings: PlanSettings,
  foreignNames: readonly string[] = [],
  retired: ReadonlyMap<string, string> = new Map(),
): SchemaPlan {
  const chosen = Map.groupBy(settings.ownNames ?? [], ({ tableId }) => tableId);
  const own = new Map(
    [...chosen].flatMap(([id, names]): [string, string][] =>
      names.filter(({ fieldId }) => fieldId === null).map(({ name }) => [id, name]),
    ),
  );
  const names = namesOf(source.tables, {
    kind: "table",
    known: [...catalog].map(([id, { spec }]) => ({ id, ...spec })),
    own,
    isPinned: settings.pinnedNames,
    retired: settings.pinnedNames ? retiredTableNames(catalog, source, retired) : [],
    reserved: foreignNames,
  });
  const plan: SchemaPlan = { inPlace: [], rebuild: [], drop: [] };
  if (settings.pinnedNames) plan.isPinned = true;
  for (const table of source.tables) {
    const { spec: live, taken } = catalog.get(table.id) ?? {};
    if (taken !== undefined) continue;
    const wanted = tableSpec(table, names.get(table.id)!, live, settings, chosen.get(table.id) ?? []);
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
  for (const [id, { spec, taken }] of catalog) {
    if (!wantedIds.has(id) && taken === undefined) plan.drop.push(spec);
  }
  plan.inPlace = withFreeNames(catalog, plan);
  return plan;
}

/** Returns the changes whose names are free: a needed one may belong to a table that is missing or taken, and keeps it. */
function withFreeNames(catalog: Catalog, { inPlace, drop }: SchemaPlan): TableSpec[] {
  const changing = new Set([...inPlace, ...drop].map(({ tableId }) => tableId));
  const kept = new Set([...catalog].flatMap(([id, { spec }]) => (changing.has(id) ? [] : [spec.name])));
  const free = inPlace.filter(({ name }) => !kept.has(name));
  // Those that are not changed keep their names, too.
  return free.length < inPlace.length ? withFreeNames(catalog, { inPlace: free, drop, rebuild: [] }) : free;
}

/**
 * Returns the spec to rebuild a damaged table by: unchanged where the source still has its fields. Renames follow
 * later.
 */
function undamaged(live: TableSpec, wanted: TableSpec): TableSpec {
  const { isDamaged: _, isReplaced: _replaced, ...was } = live;
  return hasSameColumns(was, wanted) ? was : wanted;
}

function tableSpec(
  table: SourceTable,
  named: Named,
  live: TableSpec | undefined,
  settings: PlanSettings,
  chosen: readonly OwnName[],
): TableSpec {
  const isPinned = settings.pinnedNames === true;
  const retired = isPinned ? retiredNames(table, live) : [];
  const names = namesOf(table.fields, {
    kind: "column",
    known: live?.columns.map((column) => ({ id: column.fieldId, ...column })) ?? [],
    own: new Map(
      chosen.flatMap(({ fieldId, name }): [string, string][] => (fieldId ? [[fieldId, name]] : [])),
    ),
    isPinned,
    // A field that comes back has its own name again.
    retired: (isPinned ? [...(live?.retired ?? []), ...retired] : []).map(({ fieldId, name }) => ({
      id: fieldId,
      name,
    })),
  });
  const columns = table.fields.map((field) => columnSpec(field, names.get(field.id)!, settings));
  return {
    tableId: table.id,
    ...named,
    sourceName: storable(table.name),
    ...(table.description ? { description: storable(table.description) } : {}),
    ...(retired.length > 0 ? { retired } : {}),
    ...(table.partial ? { partial: table.partial } : {}),
    columns: settings.attachmentViews ? withFileColumns(columns, live?.columns) : columns,
  };
}

/** Returns the names of tables that were dropped, and of those that are about to be. */
function retiredTableNames(
  catalog: Catalog,
  { tables }: SourceSchema,
  retired: ReadonlyMap<string, string>,
): { id: string; name: string }[] {
  const present = new Set(tables.map(({ id }) => id));
  const going = [...catalog].flatMap(([id, { spec }]) => (present.has(id) ? [] : [{ id, name: spec.name }]));
  return [...[...retired].map(([id, name]) => ({ id, name })), ...going];
}

/** Returns the names of fields that the table no longer has, the latest last. */
function retiredNames(table: SourceTable, live: TableSpec | undefined): RetiredName[] {
  if (!live) return [];
  const present = new Set(table.fields.map(({ id }) => id));
  const columns = live.columns.filter(({ filesOf }) => filesOf === undefined);
  const gone = [...(live.retired ?? []), ...columns].filter(({ fieldId }) => !present.has(fieldId));
  const names = new Map(gone.map(({ fieldId, name }) => [fieldId, name]));
  return [...names].map(([fieldId, name]) => ({ fieldId, name })).slice(-MAX_RETIRED);
}

/** A name, and what must be remembered with it. */
type Named = Pick<TableSpec, "name" | "namedFor" | "isOwnName">;

/** Returns the name of each entry, by id. */
function namesOf(
  entries: readonly { id: string; name: string }[],
  options: {
    kind: "table" | "column";
    known: readonly ({ id: string; sourceName: string } & Named)[];
    own: ReadonlyMap<string, string>;
    isPinned: boolean | undefined;
    retired: readonly { id: string; name: string }[];
    reserved?: readonly string[];
  },
): Map<string, Named> {
  const { kind, known, own, isPinned, retired, reserved = [] } = options;
  const sourceNames = new Map(entries.map(({ id, name }) => [id, name]));
  const remembered = new Map(known.map((one) => [one.id, one]));
  for (const { id, name } of retired) {
    const sourceName = sourceNames.get(id);
    if (sourceName !== undefined && !remembered.has(id)) remembered.set(id, { id, name, sourceName });
  }
  const chosen = new Set(own.values());
  const names = assignNames(entries, {
    kind,
    remembered,
    own,
    isPinned,
    reserved: [
      ...reserved,
      ...retired.filter(({ id, name }) => !sourceNames.has(id) && !chosen.has(name)).map(({ name }) => name),
    ],
  });
  return new Map(
    [...names].map(([id, name]) => [
      id,
      { name, ...originOf(name, sourceNames.get(id)!, remembered.get(id), own.get(id)) },
    ]),
  );
}

function columnSpec(field: SourceField, named: Named, settings: TypeSettings): ColumnSpec {
  return {
    fieldId: field.id,
    ...named,
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
  // Names are retired with their columns. Until the rebuild has brought what was missing, it is still missing.
  const { columns: _, retired: _later, partial = live.partial, ...table } = wanted;
  const named = new Map(wanted.columns.map((column) => [column.fieldId, column]));
  let columns = live.columns.map((column): ColumnSpec => {
    const { name, namedFor, isOwnName, sourceName, description } = named.get(column.fieldId) ?? column;
    const { description: _old, namedFor: _was, isOwnName: _own, ...kept } = column;
    return {
      ...kept,
      name,
      ...(namedFor === undefined ? {} : { namedFor }),
      ...(isOwnName ? { isOwnName } : {}),
      sourceName,
      ...(description ? { description } : {}),
    };
  });
  for (let isFree = false; !isFree; ) {
    const holders = Map.groupBy(columns, (column) => column.name);
    isFree = holders.size === columns.length;
    columns = columns.map((column, index) =>
      holders.get(column.name)!.length > 1 ? live.columns[index]! : column,
    );
  }
  return {
    ...table,
    ...(partial && { partial }),
    ...(live.retired ? { retired: live.retired } : {}),
    columns,
  };
}

function columnById(spec: TableSpec, fieldId: string): ColumnSpec {
  return spec.columns.find((column) => column.fieldId === fieldId)!;
}

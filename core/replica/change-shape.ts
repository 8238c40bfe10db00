/** Applies the in-place changes of a plan: renames, comments, dropped tables. No row is rewritten. */
import { isBasetideError } from "../errors";
import { CatalogReaders } from "./catalog-readers";
import { columnComment, comments, renameColumns, renameIssueFields, renameTables, retireTable } from "./ddl";
import { quoteIdent } from "./naming";
import type { Catalog, SchemaPlan } from "./plan";
import { asRefusal } from "./refusal";
import type { Replica } from "./replica";
import { type ShapeChange, shapeChanges } from "./shape-changes";
import type { ReadAs, TableSpec } from "./spec";

/** A row of `_tables`, as the SQL functions take it. */
interface CatalogRow {
  table_id: string;
  name: string;
  /** The table's current shape number; absent if it is not compared. The change assigns a new one. */
  shape?: number | undefined;
  spec: TableSpec;
  /** Absent: unchanged. */
  read_as?: ReadAs | undefined;
}

/**
 * Renames tables, updates their comments and drops tables as planned. Tables that exchange names change in one
 * transaction, every other table in its own, so that a query that holds one table does not delay the others.
 *
 * @param onChange receives the changes after each transaction
 * @throws BasetideError `replica_busy` if a query holds a table for longer than 100 ms (all others have
 *   changed; load the catalog and try again), `replica_refused` if an object of the customer's refuses a change (likewise),
 *   `shape_changed` if a table no longer matches the catalog, `lease_lost`
 */
export async function changeShape(
  replica: Replica,
  epoch: number,
  catalog: Catalog,
  plan: Pick<SchemaPlan, "inPlace" | "drop" | "isPinned">,
  onChange: (changes: ShapeChange[]) => void = () => {},
): Promise<void> {
  let blocked: unknown;
  for (const group of entangled(catalog, plan)) {
    try {
      await changeGroup(replica, epoch, catalog, group, plan.isPinned === true);
    } catch (error) {
      const refusal = asRefusal(error);
      if (!refusal && !isBasetideError(error, "replica_busy")) throw error;
      if (refusal) blocked = refusal;
      else blocked ??= error;
      continue;
    }
    onChange([
      ...group.drop.flatMap((spec) => shapeChanges(spec, undefined)),
      ...group.inPlace.flatMap((spec) => shapeChanges(catalog.get(spec.tableId)!.spec, spec)),
    ]);
  }
  if (blocked) throw blocked;
}

type Group = Pick<SchemaPlan, "inPlace" | "drop">;

/** Groups the changes so that no two groups share a name. */
function entangled(catalog: Catalog, { inPlace, drop }: Group): Group[] {
  const changes = [
    ...drop.map((spec) => ({ names: [spec.name], inPlace: [] as TableSpec[], drop: [spec] })),
    ...inPlace.map((spec) => ({
      names: [catalog.get(spec.tableId)!.spec.name, spec.name],
      inPlace: [spec],
      drop: [] as TableSpec[],
    })),
  ];
  const groups: typeof changes = [];
  for (const change of changes) {
    const related = groups.filter((group) => group.names.some((name) => change.names.includes(name)));
    for (const group of related) groups.splice(groups.indexOf(group), 1);
    const all = [...related, change];
    groups.push({
      names: all.flatMap((one) => one.names),
      inPlace: all.flatMap((one) => one.inPlace),
      drop: all.flatMap((one) => one.drop),
    });
  }
  return groups;
}

async function changeGroup(
  replica: Replica,
  epoch: number,
  catalog: Catalog,
  { inPlace, drop }: Group,
  isPinned: boolean,
): Promise<void> {
  const { schema, sql, swap } = replica;
  const changes = inPlace.map((spec) => {
    const live = catalog.get(spec.tableId)!;
    return { spec, live, columns: columnRenames(live.spec, spec) };
  });
  const renamed = changes.filter(({ spec, live }) => spec.name !== live.spec.name);
  const tables = renameTables(
    { schema, swap },
    renamed.map(({ spec, live }) => [live.spec.name, spec.name]),
  );
  const notes = [
    ...tables.notes,
    ...changes.flatMap(({ spec, columns }) => renameIssueFields(swap, spec.name, columns)),
    ...(isPinned ? drop.map((spec) => retireTable(swap, spec)) : []),
  ];
  const locked = changes.filter((one) => renamed.includes(one) || one.columns.length > 0);
  const statements = [
    ...tables.ddl,
    ...changes.flatMap(({ spec, columns }) => renameColumns(schema, spec.name, columns)),
    ...changes.flatMap(({ spec, live }) => recomments(schema, spec, live.spec)),
  ];
  const rows = changes.map(({ spec, live }) => catalogRow(spec, live.shape));
  const touched = [...locked.map(({ live }) => live.spec), ...drop];
  await new CatalogReaders(replica).change(
    touched.map(({ name }) => `${schema}.${quoteIdent(name)}`),
    (settled) => sql`select ${sql.unsafe(swap)}.change_shape(
      ${epoch}, ${notes}::text[], ${locked.map(({ live }) => live.spec.name)}::text[],
      ${statements}::text[], ${JSON.stringify(rows)}::text::jsonb, ${drop.map((spec) => spec.tableId)}::text[],
      ${settled}::text[])`,
  );
}

/** Returns the catalog row of a table that is, or will be, live. */
export function catalogRow(spec: TableSpec, shape?: number): CatalogRow {
  return { table_id: spec.tableId, name: spec.name, shape, spec };
}

/** Returns [old name, new name] of the columns that both shapes have under different names. */
export function columnRenames(before: TableSpec, after: TableSpec): [string, string][] {
  const names = new Map(before.columns.map((column) => [column.fieldId, column.name]));
  return after.columns.flatMap(({ fieldId, name }): [string, string][] => {
    const old = names.get(fieldId);
    return old === undefined || old === name ? [] : [[old, name]];
  });
}

/** Returns the COMMENT statements for those comments of `after` that differ from `before`. */
export function recomments(schema: string, after: TableSpec, before: TableSpec): string[] {
  const table = `${schema}.${quoteIdent(after.name)}`;
  const old = new Map(before.columns.map((column) => [column.fieldId, column]));
  const isOther = (a: Pick<TableSpec, "sourceName" | "description">, b: typeof a | undefined) =>
    a.sourceName !== b?.sourceName || a.description !== b.description;
  return [
    ...(isOther(after, before) ? comments(schema, after.name, after, []) : []),
    ...after.columns
      .filter((column) => {
        const known = old.get(column.fieldId);
        // A column with another type is a new one.
        const isSameType = column.sourceType === known?.sourceType && column.columnType === known.columnType;
        return isOther(column, known) || !isSameType;
      })
      .map((column) => columnComment(table, column)),
  ];
}

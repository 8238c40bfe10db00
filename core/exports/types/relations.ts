/**
 * Relations between records, for the languages that have them. Two underscores in a row occur in no column, so the name
 * of a relation never meets one.
 *
 * An array of links or attachments is a relation through its view, if the base has such views. A column with a single link is a
 * relation by itself.
 */
import type { TypedColumn, TypedTable, TypedView, TypeModel } from "./model";

/** One side of a relation, as a property of the table that it belongs to. */
export interface Side {
  /** `projects__tasks` */
  name: string;
  /** The name that both sides share. */
  relation: string;
  /** The side that holds the other's id. */
  own?: { column: string; isNullable: boolean };
  table: string;
}

/**
 * Returns the sides by the key of a table or view.
 *
 * @param name the name of the type or variable of a table or view in this language
 */
export function relationsOf(
  { tables, views }: TypeModel,
  name: (one: TypedTable | TypedView) => string,
): (key: string) => Side[] {
  const sides = new Map<string, Side[]>();
  const add = (key: string, side: Side) => sides.set(key, [...(sides.get(key) ?? []), side]);
  for (const table of tables) {
    for (const column of table.columns.filter(isSingleLink)) {
      const to = column.linked!;
      const relation = `${table.id} ${column.fieldId}`;
      const own = { column: column.name, isNullable: true };
      add(table.id, { name: `${column.name}__record`, relation, own, table: name(to) });
      add(to.id, { name: `${table.name}__${column.name}`, relation, table: name(table) });
    }
  }
  for (const view of views) {
    const [fromId, toId] = view.columns;
    const relation = `${view.from.id} ${view.column.fieldId}`;
    const ends = [
      { to: view.from, column: fromId, suffix: "" },
      ...(view.to ? [{ to: view.to, column: toId, suffix: "__linked" }] : []),
    ];
    for (const { to, column, suffix } of ends) {
      const both = `${relation}${suffix}`;
      const own = { column, isNullable: false };
      add(view.key, { name: `${column}__record`, relation: both, own, table: name(to) });
      add(to.id, { name: `${view.name}${suffix}`, relation: both, table: name(view) });
    }
  }
  return (key) => sides.get(key) ?? [];
}

function isSingleLink({ linked, isList }: TypedColumn): boolean {
  return linked !== undefined && !isList;
}

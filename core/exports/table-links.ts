/** The links between tables, for diagrams: the two sides of a link are one line. */
import type { ColumnSpec, TableSpec } from "../replica";

export interface TableLink {
  from: TableSpec;
  column: ColumnSpec;
  to: TableSpec;
  /** The column of the same links in `to`, if there is one. */
  inverse?: ColumnSpec | undefined;
}

/**
 * Returns every link between two live tables once. The source reports both sides of a link as two fields; which belong
 * together is not stored, so the first links from A to B are paired with the first from B to A, in the order of fields.
 */
export function tableLinks(tables: TableSpec[]): TableLink[] {
  const byId = new Map(tables.map((table) => [table.tableId, table]));
  const links: TableLink[] = [];
  /** Links that have no other side yet, by the pair of tables. */
  const open = new Map<string, TableLink[]>();
  for (const from of tables) {
    for (const column of from.columns) {
      const to = column.type === "links" ? byId.get(column.linkedTableId ?? "") : undefined;
      if (!to) continue;
      const other = to === from ? undefined : open.get(`${to.tableId} ${from.tableId}`)?.shift();
      if (other) {
        other.inverse = column;
        continue;
      }
      const link = { from, column, to };
      links.push(link);
      const pair = `${from.tableId} ${to.tableId}`;
      open.set(pair, [...(open.get(pair) ?? []), link]);
    }
  }
  return links;
}

/** A cell may hold several links, unless the column stores only the first. */
export function isMany({ columnType }: ColumnSpec): boolean {
  return columnType === "text[]";
}

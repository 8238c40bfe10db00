/** The link views of tables, as a replica with the setting `link_views` has them. */
import { type LinkView, quoteIdent, type TableSpec } from "../../core/replica";

export function linkViewsOf(tables: TableSpec[]): LinkView[] {
  const byId = new Map(tables.map((table) => [table.tableId, table]));
  return tables.flatMap((table) =>
    table.columns
      .filter(({ type, columnType }) => type === "links" && columnType === "text[]")
      .map((column): LinkView => {
        const linked = byId.get(column.linkedTableId ?? "")?.name ?? column.name;
        const to = linked === table.name ? `linked_${linked}_id` : `${linked}_id`;
        const name = Buffer.from(`${table.name}__${column.name}`)
          .subarray(0, 63)
          .toString()
          .replaceAll("\ufffd", "");
        return { name, tableId: table.tableId, fieldId: column.fieldId, columns: [`${table.name}_id`, to] };
      }),
  );
}

/** Statements that create these views. */
export function createLinkViews(tables: TableSpec[]): string {
  const views = linkViewsOf(tables).map(({ name, tableId, fieldId, columns: [from, to] }) => {
    const table = tables.find((one) => one.tableId === tableId)!;
    const column = table.columns.find((one) => one.fieldId === fieldId)!;
    return `create view ${quoteIdent(name)} as
      select t.id as ${quoteIdent(from)}, l.position::int as position, l.id as ${quoteIdent(to)}
      from ${quoteIdent(table.name)} as t, unnest(t.${quoteIdent(column.name)}) with ordinality as l (id, position);`;
  });
  return views.join("\n");
}

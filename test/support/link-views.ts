/** The views of tables, as a replica with the settings `link_views` and `attachment_views` has them. */
import { type AttachmentView, type LinkView, quoteIdent, type TableSpec } from "../../core/replica";

export function linkViewsOf(tables: TableSpec[]): LinkView[] {
  const byId = new Map(tables.map((table) => [table.tableId, table]));
  return tables.flatMap((table) =>
    table.columns
      .filter(({ type, columnType }) => type === "links" && columnType === "text[]")
      .map(({ fieldId, linkedTableId, name }): LinkView => {
        const linked = byId.get(linkedTableId ?? "")?.name ?? name;
        const to = linked === table.name ? `linked_${linked}_id` : `${linked}_id`;
        return viewOf(table, fieldId, name, to);
      }),
  );
}

/** Of tables that were planned with the setting. */
export function attachmentViewsOf(tables: TableSpec[]): AttachmentView[] {
  return tables.flatMap((table) =>
    table.columns.flatMap(({ filesOf }) => {
      const column = table.columns.find(({ fieldId }) => fieldId === filesOf);
      return column ? [viewOf(table, column.fieldId, column.name, "attachment_id")] : [];
    }),
  );
}

function viewOf({ tableId, name: table }: TableSpec, fieldId: string, column: string, to: string): LinkView {
  const name = Buffer.from(`${table}__${column}`).subarray(0, 63).toString().replaceAll("\ufffd", "");
  return { name, tableId, fieldId, columns: [`${table}_id`, to] };
}

/** Statements that create these views. */
export function createViews(tables: TableSpec[]): string {
  const statement = ({ name, tableId, fieldId, columns: [from, to] }: LinkView) => {
    const table = tables.find((one) => one.tableId === tableId)!;
    const column = quoteIdent(table.columns.find((one) => one.fieldId === fieldId)!.name);
    const files = table.columns.find(({ filesOf }) => filesOf === fieldId);
    const [key, source] = [
      `${quoteIdent(name)} as select t.id as ${quoteIdent(from)}`,
      quoteIdent(table.name),
    ];
    if (!files) {
      return `create view ${key}, l.position::int as position, l.id as ${quoteIdent(to)}
        from ${source} as t, unnest(t.${column}) with ordinality as l (id, position);`;
    }
    return `create view ${key}, f.nth::int as position, f.file ->> 'id' as ${quoteIdent(to)},
        f.file ->> 'filename' as filename, f.file ->> 'type' as type, (f.file ->> 'size')::bigint as size,
        (f.file ->> 'width')::int as width, (f.file ->> 'height')::int as height, t.${column}[f.nth::int] as url
      from ${source} as t cross join lateral jsonb_array_elements(t.${quoteIdent(files.name)}) with ordinality as f (file, nth);`;
  };
  return [...linkViewsOf(tables), ...attachmentViewsOf(tables)].map(statement).join("\n");
}

/** What the types of a base are generated from: its columns, and the choices of selects as Airtable has them. */
import { type Base, type ManagementContext, type replicaShape, sourceTables } from "../../core/control/bases";
import type { TypesInput } from "../../core/exports";

type Shape = Awaited<ReturnType<typeof replicaShape>>;

export async function typesInput(
  { db }: Pick<ManagementContext, "db">,
  base: Base,
  { tables, linkViews, attachmentViews }: Shape,
): Promise<TypesInput> {
  const ids = tables.map(({ tableId }) => tableId);
  const shown = await sourceTables(db, base.id, ids);
  return {
    base,
    tables,
    linkViews,
    attachmentViews,
    choicesOf(tableId, fieldId) {
      const { colors } = shown.get(tableId)?.fields[fieldId] ?? {};
      // The control plane keeps them in no order.
      return colors && Object.keys(colors).sort();
    },
  };
}

/** API route for the names of a base's tables and columns in SQL. */
import { Elysia } from "elysia";
import { getBase, type ManagementContext, replicaShape } from "../../../core/control/bases";
import type { TableSpec } from "../../../core/replica";
import { bearerAuth } from "../bearer-auth";
import * as schemas from "../schemas";
import { raises } from "../schemas/parts";

export function nameRoutes(ctx: ManagementContext) {
  const { db } = ctx;
  return new Elysia({ prefix: "/api/v1/bases", tags: ["Bases"] }).use(bearerAuth(db)).get(
    "/:id/names",
    async ({ account, params }) => {
      const base = await getBase(db, params.id, account.id);
      const { tables } = await replicaShape(ctx, base);
      return {
        tables: tables.map((table) => ({
          table_id: table.tableId,
          ...nameJson(table),
          columns: table.columns.map((column) => ({ field_id: column.fieldId, ...nameJson(column) })),
        })),
      };
    },
    {
      params: schemas.idParams,
      response: { 200: schemas.names },
      detail: {
        summary: "Names in Airtable and in SQL",
        description: "Change the base to pin names (`pinned_names`) or to choose them (`own_names`).",
        ...raises("replica_unavailable"),
      },
    },
  );
}

function nameJson({ sourceName, name, isOwnName }: Pick<TableSpec, "sourceName" | "name" | "isOwnName">) {
  return { source_name: sourceName, name, is_own: isOwnName === true };
}

/** API routes for the names of a base's tables and columns in SQL, and for the old names that still work. */
import { Elysia } from "elysia";
import { getBase, type ManagementContext, replicaShape } from "../../../core/control/bases";
import type { Alias, TableSpec } from "../../../core/replica";
import { oldNames } from "../../../core/sql-editor";
import { bearerAuth } from "../bearer-auth";
import * as schemas from "../schemas";
import { raises } from "../schemas/parts";

export function nameRoutes(ctx: ManagementContext) {
  const { db } = ctx;
  return new Elysia({ prefix: "/api/v1/bases", tags: ["Bases"] })
    .use(bearerAuth(db))
    .get(
      "/:id/names",
      async ({ account, params }) => {
        const base = await getBase(db, params.id, account.id);
        const { tables } = await replicaShape(ctx, base);
        return {
          tables: tables.map((table) => ({
            table_id: table.tableId,
            ...nameJson(table),
            columns: table.columns
              .filter(({ filesOf }) => filesOf === undefined)
              .map((column) => ({ field_id: column.fieldId, ...nameJson(column) })),
          })),
        };
      },
      {
        params: schemas.idParams,
        response: { 200: schemas.nameList },
        detail: {
          summary: "Names in Airtable and in SQL",
          description: "Change the base to pin names (`pinned_names`) or to choose them (`own_names`).",
          ...raises("replica_unavailable"),
        },
      },
    )
    .get(
      "/:id/old-names",
      async ({ account, params }) => {
        const base = await getBase(db, params.id, account.id);
        const { aliases, lost, uses, knowsStatements } = await oldNames(ctx, base);
        return {
          old_names: aliases.map(detailJson),
          lost_names: lost.map((alias) => ({ ...detailJson(alias), reason: alias.obstacle })),
          uses: uses.map(({ kind, name, text, calls, aliases: used }) => ({
            kind,
            name,
            text,
            calls: calls ?? null,
            old_names: used.map(oldNameJson),
          })),
          knows_statements: knowsStatements,
        };
      },
      {
        params: schemas.idParams,
        response: { 200: schemas.oldNameList },
        detail: {
          summary: "Old names that still work, and what uses them",
          description:
            "After a rename, the old name of a table or a column works for some days (`alias_days`). Lists saved queries, views, functions, triggers and statements that still use it, and old names that are not kept.",
          ...raises("replica_unavailable"),
        },
      },
    );
}

function detailJson(alias: Alias) {
  return {
    ...oldNameJson(alias),
    table: alias.table,
    column: alias.column,
    renamed_at: alias.madeAt.toISOString(),
    expires_at: alias.expiresAt.toISOString(),
  };
}

function oldNameJson({ tableId, fieldId, name }: Alias) {
  return { table_id: tableId, field_id: fieldId, name };
}

function nameJson({ sourceName, name, isOwnName }: Pick<TableSpec, "sourceName" | "name" | "isOwnName">) {
  return { source_name: sourceName, name, is_own: isOwnName === true };
}

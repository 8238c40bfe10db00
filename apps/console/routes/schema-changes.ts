/** API route for the schema changes of a base's replica. */
import { Elysia } from "elysia";
import { getBase, listSchemaChanges, type ManagementContext } from "../../../core/control/bases";
import { bearerAuth } from "../bearer-auth";
import * as schemas from "../schemas";

const DEFAULT_CHANGES = 100;

export function schemaChangeRoutes({ db }: Pick<ManagementContext, "db">) {
  return new Elysia({ prefix: "/api/v1/bases", tags: ["Bases"] }).use(bearerAuth(db)).get(
    "/:id/schema-changes",
    async ({ account, params, query }) => {
      const base = await getBase(db, params.id, account.id);
      const changes = await listSchemaChanges(db, base.id, query.limit ?? DEFAULT_CHANGES, query.severity);
      return changes.map((change) => ({ ...change, seen_at: change.seen_at.toISOString() }));
    },
    {
      params: schemas.idParams,
      query: schemas.schemaChangesQuery,
      response: { 200: schemas.schemaChanges },
      detail: {
        summary: "Schema changes in Airtable, newest first",
        description: "A change is listed once it is applied to the database. Changes are kept for a year.",
      },
    },
  );
}

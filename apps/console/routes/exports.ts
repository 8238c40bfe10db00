/** API route for descriptions of a base's replica, for use in analysts' tools. */
import { Elysia } from "elysia";
import { getBase, type ManagementContext, replicaShape } from "../../../core/control/bases";
import { dbtSources, erDiagram } from "../../../core/exports";
import { bearerAuth } from "../bearer-auth";
import * as schemas from "../schemas";

export function analystRoutes(ctx: ManagementContext) {
  const { db } = ctx;
  return new Elysia({ prefix: "/api/v1/bases", tags: ["Bases"] })
    .use(bearerAuth(db))
    .get(
      "/:id/dbt-sources",
      async ({ account, params }) => {
        const base = await getBase(db, params.id, account.id);
        return text("text/yaml", dbtSources(base, await replicaShape(ctx, base)));
      },
      {
        params: schemas.idParams,
        detail: {
          summary: "The tables as dbt sources",
          description: "A sources.yml: tables, columns with their types and descriptions, tests of the ids.",
          responses: {
            200: { description: "YAML", content: { "text/yaml": { schema: { type: "string" } } } },
          },
        },
      },
    )
    .get(
      "/:id/er-diagram",
      async ({ account, params }) => {
        const base = await getBase(db, params.id, account.id);
        return text("text/plain", erDiagram((await replicaShape(ctx, base)).tables));
      },
      {
        params: schemas.idParams,
        detail: {
          summary: "The tables and their links as a diagram",
          description: "An entity-relationship diagram in Mermaid syntax.",
          responses: {
            200: { description: "Mermaid", content: { "text/plain": { schema: { type: "string" } } } },
          },
        },
      },
    );
}

function text(type: string, body: string): Response {
  return new Response(body, { headers: { "content-type": `${type}; charset=utf-8` } });
}

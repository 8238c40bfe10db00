/** API routes for descriptions of a base's replica, for use in analysts' tools and in code. */
import { Elysia, t } from "elysia";
import { getBase, type ManagementContext, replicaShape } from "../../../core/control/bases";
import { BasetideError } from "../../../core/errors";
import { dbtSources, erDiagram, typesIn, typesLanguages } from "../../../core/exports";
import { bearerAuth } from "../bearer-auth";
import * as schemas from "../schemas";
import { named } from "../schemas/parts";
import { typesInput } from "../types-input";

const typesQuery = t.Object({
  lang: t.Optional(
    t.Union(
      typesLanguages.map(({ lang }) => t.Literal(lang)),
      { description: "The language or tool. Default: ts" },
    ),
  ),
});

const typesFiles = named(
  "TypesFiles",
  t.Object({
    lang: t.String({ examples: ["ts"] }),
    files: t.Array(
      t.Object({
        path: t.String({ description: "A name for the file", examples: ["basetide.ts"] }),
        text: t.String({ examples: ["export interface ProjectsRow {}"] }),
      }),
    ),
  }),
);

const typesFileParams = t.Object({
  ...schemas.idParams.properties,
  lang: t.String({ maxLength: 20, description: "The language or tool, as in the list" }),
  file: t.String({ maxLength: 200, description: "The path of the file, as in the list" }),
});

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
    )
    .get(
      "/:id/types",
      async ({ account, params, query }) => {
        const base = await getBase(db, params.id, account.id);
        const input = await typesInput(ctx, base, await replicaShape(ctx, base));
        const { lang = "ts" } = query;
        return { lang, files: typesIn(lang, input) };
      },
      {
        params: schemas.idParams,
        query: typesQuery,
        response: { 200: typesFiles },
        detail: {
          summary: "The tables as types and schemas of a programming language",
          description:
            "The same tables give the same files, byte by byte, so they can be committed. Only dbt has several files.",
        },
      },
    )
    .get(
      "/:id/types/:lang/:file",
      async ({ account, params }) => {
        const base = await getBase(db, params.id, account.id);
        const language = typesLanguages.find(({ lang }) => lang === params.lang);
        const input = await typesInput(ctx, base, await replicaShape(ctx, base));
        const found = language && typesIn(language.lang, input).find(({ path }) => path === params.file);
        if (!found) throw new BasetideError("not_found", `There is no file ${params.lang}/${params.file}`);
        return text("text/plain", found.text);
      },
      {
        params: typesFileParams,
        detail: {
          summary: "One file of types",
          description: "The text of one file of the list, for example ts/basetide.ts.",
          responses: {
            200: { description: "Code", content: { "text/plain": { schema: { type: "string" } } } },
          },
        },
      },
    );
}

function text(type: string, body: string): Response {
  return new Response(body, { headers: { "content-type": `${type}; charset=utf-8` } });
}

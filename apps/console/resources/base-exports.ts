/** Descriptions of a base's tables, for analysts' tools and for code. */
import { t } from "elysia";
import { replicaShape } from "../../../core/control/bases";
import { BasetideError } from "../../../core/errors";
import { dbtSources, erDiagram, typesIn, typesLanguages } from "../../../core/exports";
import { ofBase, resource } from "../resource-kit/resource";
import { idParams } from "../schemas";
import { named, oneOf } from "../schemas/parts";
import { typesInput } from "../types-input";

const API = "/api/v1/bases/:id";

export const baseExports = resource({
  tag: "Bases",
  params: t.Object({
    ...idParams.properties,
    lang: t.String({ maxLength: 20, description: "The language or tool, as in the list" }),
    file: t.String({ maxLength: 200, description: "The path of the file, as in the list" }),
  }),
  scope: ofBase,
  /** One file of types. */
  async find(ctx, base, { lang: id, file }) {
    const language = typesLanguages.find(({ lang }) => lang === id);
    const input = await typesInput(ctx, base, await replicaShape(ctx, base));
    const found = language && typesIn(language.lang, input).find(({ path }) => path === file);
    if (!found) throw new BasetideError("not_found", `There is no file ${id}/${file}`);
    return found;
  },
})
  .all({
    api: `GET ${API}/dbt-sources`,
    summary: "The tables as dbt sources",
    description: "A sources.yml: tables, columns with their types and descriptions, tests of the ids.",
    text: { type: "text/yaml", description: "YAML" },
    run: async (ctx, base) => dbtSources(base, await replicaShape(ctx, base)),
  })
  .all({
    api: `GET ${API}/er-diagram`,
    summary: "The tables and their links as a diagram",
    description: "An entity-relationship diagram in Mermaid syntax.",
    text: { type: "text/plain", description: "Mermaid" },
    run: async (ctx, base) => erDiagram((await replicaShape(ctx, base)).tables),
  })
  .all({
    api: `GET ${API}/types`,
    summary: "The tables as types and schemas of a programming language",
    description:
      "The same tables give the same files, byte by byte, so they can be committed. Only dbt has several files.",
    query: t.Object({
      lang: t.Optional(
        oneOf(
          typesLanguages.map(({ lang }) => lang),
          { description: "The language or tool. Default: ts" },
        ),
      ),
    }),
    answer: named(
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
    ),
    async run(ctx, base, { lang = "ts" }) {
      const input = await typesInput(ctx, base, await replicaShape(ctx, base));
      return { lang, files: typesIn(lang, input) };
    },
  })
  .one({
    api: `GET ${API}/types/:lang/:file`,
    summary: "One file of types",
    description: "The text of one file of the list, for example ts/basetide.ts.",
    text: { type: "text/plain", description: "Code" },
    run: async (_, { text }) => text,
  });

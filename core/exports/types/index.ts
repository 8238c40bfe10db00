/** The tables of a base as types and schemas of programming languages; the same tables give the same bytes. */
import { dbtProject } from "./dbt-models";
import { drizzleTables } from "./drizzle";
import { hasuraMetadata } from "./hasura";
import { jsonSchema } from "./json-schema";
import { kyselyTypes } from "./kysely";
import { type TypeModel, type TypesInput, typeModel } from "./model";
import { postgraphileTags } from "./postgraphile";
import { postgrestFunctions } from "./postgrest";
import { prismaSchema } from "./prisma";
import { pydanticModels } from "./pydantic";
import { sqlalchemyModels } from "./sqlalchemy";
import { typescript } from "./ts";
import { zodSchemas } from "./zod";

export type { TypesInput } from "./model";

export interface TypesFile {
  path: string;
  text: string;
}

interface Language {
  /** For people. */
  title: string;
  files: (model: TypeModel, input: TypesInput) => TypesFile[];
}

const single = (title: string, path: string, write: (model: TypeModel) => string): Language => ({
  title,
  files: (model) => [{ path, text: write(model) }],
});

const languages = {
  ts: single("TypeScript", "basetide.ts", typescript),
  zod: single("Zod", "basetide-zod.ts", zodSchemas),
  kysely: single("Kysely", "basetide-kysely.ts", kyselyTypes),
  drizzle: single("Drizzle", "basetide-drizzle.ts", drizzleTables),
  prisma: single("Prisma", "schema.prisma", prismaSchema),
  pydantic: single("Pydantic", "basetide_pydantic.py", pydanticModels),
  sqlalchemy: single("SQLAlchemy", "basetide_sqlalchemy.py", sqlalchemyModels),
  jsonschema: single("JSON Schema", "basetide.schema.json", jsonSchema),
  postgrest: single("PostgREST", "postgrest.sql", postgrestFunctions),
  postgraphile: single("PostGraphile", "postgraphile.tags.json5", postgraphileTags),
  hasura: single("Hasura", "hasura-metadata.json", hasuraMetadata),
  dbt: { title: "dbt", files: (model: TypeModel, input: TypesInput) => dbtProject(input, model) },
} satisfies Record<string, Language>;

export type TypesLanguage = keyof typeof languages;

export const typesLanguages = Object.entries(languages).map(([lang, { title }]) => ({
  lang: lang as TypesLanguage,
  title,
}));

/** Returns the files of one language; all but dbt have a single one. */
export function typesIn(lang: TypesLanguage, input: TypesInput): [TypesFile, ...TypesFile[]] {
  return languages[lang].files(typeModel(input), input) as [TypesFile, ...TypesFile[]];
}

/** The schema page of a base, and its descriptions as files. */
import { Elysia } from "elysia";
import type { CurrentUser } from "../../../../core/control/accounts";
import type { Base } from "../../../../core/control/bases";
import { BasetideError, isBasetideError } from "../../../../core/errors";
import {
  dbtSources,
  diagramOf,
  erDiagram,
  sqlDefinitions,
  type TypesFile,
  type TypesLanguage,
  typesIn,
  typesLanguages,
} from "../../../../core/exports";
import type { TableSpec } from "../../../../core/replica";
import { isHtmx, securityHeaders } from "../../../../views/render";
import {
  SchemaDiagram,
  SchemaPage,
  SchemaTables,
  SchemaText,
  SchemaTypes,
  type SchemaView,
  type ShownTable,
  schemaViews,
} from "../../../../views/schema/schema-page";
import { schemaScript } from "../../assets";
import { onOneBase } from "../../base-page";
import type { ConsoleContext } from "../../page-kit";
import { requireReadable } from "../../readable";
import { cachedSample, cachedShape } from "../../shape-cache";
import { typesInput } from "../../types-input";

export function schemaPages(ctx: ConsoleContext) {
  const types = new WeakMap<Shape, Map<string, Promise<TypesFile[]>>>();

  /** By shape, like the other texts. */
  function typesOf(base: Base, shape: Shape, lang: TypesLanguage): Promise<TypesFile[]> {
    const known = types.get(shape) ?? new Map<string, Promise<TypesFile[]>>();
    types.set(shape, known);
    const key = `${lang} ${base.name}`;
    const files =
      known.get(key) ?? typesInput(ctx, base, shape).then((input): TypesFile[] => typesIn(lang, input));
    known.set(key, files);
    // A failure is not kept.
    files.catch(() => known.delete(key));
    return files;
  }

  /** The table with its examples; the page is of use without them. */
  async function showTable(
    currentUser: CurrentUser,
    base: Base,
    spec: TableSpec,
    slots: ShownTable["slots"],
  ): Promise<ShownTable> {
    try {
      await requireReadable(ctx, currentUser, base);
      return { spec, slots, sample: await cachedSample(ctx, base, spec) };
    } catch (error) {
      if (!isBasetideError(error)) throw error;
      return { spec, slots, sample: undefined };
    }
  }

  return new Elysia({ name: "schema-pages", detail: { hide: true } })
    .use(onOneBase(ctx))
    .get("/bases/:id/schema", async ({ request, currentUser, page, base, basePage, query }) => {
      const shape = await cachedShape(ctx, base);
      const { tables } = shape;
      const view = viewOf(query.as);
      const shown = (content: preact.VNode | null) =>
        basePage(
          { place: "schema", title: "Schema" },
          <SchemaPage base={base} tables={tables} view={view}>
            {content}
          </SchemaPage>,
        );
      if (tables.length === 0) return shown(null);
      if (view === "types") {
        const lang = languageOf(query.lang) ?? "ts";
        const files = await typesOf(base, shape, lang);
        return shown(<SchemaTypes base={base} lang={lang} languages={typesLanguages} files={files} />);
      }
      if (view !== "diagram")
        return shown(<SchemaText base={base} view={view} code={textOf(base, shape, view)} />);
      const spec = query.table === undefined ? tables[0] : tables.find(({ name }) => name === query.table);
      if (!spec) throw new BasetideError("not_found", `There is no table ${query.table} in this database`);
      const slots = shape.slots.find(({ name }) => name === spec.name);
      const table = await showTable(currentUser, base, spec, slots);
      const columns = <SchemaTables base={base} tables={tables} shown={table} />;
      if (isHtmx(request)) return page({ title: spec.name }, columns);
      return shown(
        <>
          <SchemaDiagram base={base} diagram={diagramOf(tables)} script={schemaScript} />
          {columns}
        </>,
      );
    })
    .get("/bases/:id/schema.sql", async ({ base }) => {
      const shape = await cachedShape(ctx, base);
      return file("schema.sql", "text/plain", textOf(base, shape, "sql"));
    })
    .get("/bases/:id/dbt-sources.yml", async ({ base }) => {
      const shape = await cachedShape(ctx, base);
      return file("sources.yml", "text/yaml", textOf(base, shape, "dbt"));
    })
    .get("/bases/:id/types/:lang/:file", async ({ base, params }) => {
      const lang = languageOf(params.lang);
      const shape = await cachedShape(ctx, base);
      const files = lang ? await typesOf(base, shape, lang) : [];
      const found = files.find(({ path }) => path === params.file);
      if (!found) throw new BasetideError("not_found", `There is no file ${params.lang}/${params.file}`);
      return file(found.path, "text/plain", found.text);
    })
    .get("/bases/:id/er-diagram.mmd", async ({ base }) => {
      const shape = await cachedShape(ctx, base);
      return file("er-diagram.mmd", "text/plain", textOf(base, shape, "mermaid"));
    });
}

function viewOf(as: unknown): SchemaView {
  return schemaViews.find((view) => view.as === as)?.as ?? "diagram";
}

function languageOf(lang: unknown): TypesLanguage | undefined {
  return typesLanguages.find((one) => one.lang === lang)?.lang;
}

type Shape = Awaited<ReturnType<typeof cachedShape>>;

/** By shape, which is kept for some seconds: the YAML of 200 tables takes a tenth of a second. */
const texts = new WeakMap<Shape, Map<string, string>>();

function textOf(base: Base, shape: Shape, view: Exclude<SchemaView, "diagram" | "types">): string {
  const known = texts.get(shape) ?? new Map<string, string>();
  texts.set(shape, known);
  const key = `${view} ${base.name}`;
  const text = known.get(key) ?? writeText(base, shape, view);
  known.set(key, text);
  return text;
}

function writeText(base: Base, shape: Shape, view: Exclude<SchemaView, "diagram" | "types">): string {
  if (view === "dbt") return dbtSources(base, shape);
  return view === "sql" ? sqlDefinitions(base.database.schema, shape.tables) : erDiagram(shape.tables);
}

function file(name: string, type: string, text: string): Response {
  return new Response(text, {
    headers: {
      ...securityHeaders,
      "cache-control": "no-store",
      "content-type": `${type}; charset=utf-8`,
      "content-disposition": `attachment; filename="${name.replace(/[^\w.-]/g, "_")}"; filename*=UTF-8''${encodeURIComponent(name)}`,
    },
  });
}

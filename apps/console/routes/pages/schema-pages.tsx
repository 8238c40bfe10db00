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
import { TimedCache } from "../../timed-cache";
import { typesInput } from "../../types-input";

export function schemaPages(ctx: ConsoleContext) {
  const typesOf = (base: Base, shape: Shape, lang: TypesLanguage): Promise<TypesFile[]> =>
    kept(shape, `types ${lang} ${base.name}`, async () => typesIn(lang, await typesInput(ctx, base, shape)));

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

  const pages = new Elysia({ name: "schema-pages", detail: { hide: true } })
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
        return shown(<SchemaText base={base} view={view} code={await textOf(base, shape, view)} />);
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
    .get("/bases/:id/types/:lang/:file", async ({ base, params }) => {
      const lang = languageOf(params.lang);
      const shape = await cachedShape(ctx, base);
      const files = lang ? await typesOf(base, shape, lang) : [];
      const found = files.find(({ path }) => path === params.file);
      if (!found) throw new BasetideError("not_found", `There is no file ${params.lang}/${params.file}`);
      return file(found.path, "text/plain", found.text);
    });
  for (const { path, name = path, type, view } of FILES) {
    pages.get(`/bases/:id/${path}`, async ({ base }) =>
      file(name, type, await textOf(base, await cachedShape(ctx, base), view)),
    );
  }
  return pages;
}

type TextView = Exclude<SchemaView, "diagram" | "types">;

/** The texts of the page as files. */
const FILES: { path: string; name?: string; type: string; view: TextView }[] = [
  { path: "schema.sql", type: "text/plain", view: "sql" },
  { path: "dbt-sources.yml", name: "sources.yml", type: "text/yaml", view: "dbt" },
  { path: "er-diagram.mmd", type: "text/plain", view: "mermaid" },
];

function viewOf(as: unknown): SchemaView {
  return schemaViews.find((view) => view.as === as)?.as ?? "diagram";
}

function languageOf(lang: unknown): TypesLanguage | undefined {
  return typesLanguages.find((one) => one.lang === lang)?.lang;
}

type Shape = Awaited<ReturnType<typeof cachedShape>>;

/** By shape, which is kept for some seconds: the YAML of 200 tables takes a tenth of a second. */
const made = new WeakMap<Shape, TimedCache<unknown>>();

function kept<T>(shape: Shape, key: string, make: () => Promise<T>): Promise<T> {
  const known = made.get(shape) ?? new TimedCache<unknown>({ most: 100 });
  made.set(shape, known);
  return known.get(key, make) as Promise<T>;
}

function textOf(base: Base, shape: Shape, view: TextView): Promise<string> {
  return kept(shape, `${view} ${base.name}`, async () => {
    if (view === "dbt") return dbtSources(base, shape);
    return view === "sql" ? sqlDefinitions(base.database.schema, shape.tables) : erDiagram(shape.tables);
  });
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

/** The documentation at `/docs`. Public, the same for everyone, and readable while the control plane is away. */
import { extname } from "node:path";
import { Elysia } from "elysia";
import type { VNode } from "preact";
import { BasetideError } from "../../../../core/errors";
import { ApiReference, apiSections } from "../../../../views/docs/api";
import { DocFiles } from "../../../../views/docs/files";
import { DocsHome } from "../../../../views/docs/home";
import { DocView } from "../../../../views/docs/page";
import { DocsSearch } from "../../../../views/docs/search";
import { pageHeaders, pageText, renderPage, securityHeaders } from "../../../../views/render";
import { SitePage, type SiteProps } from "../../../../views/site/frame";
import { siteAssetUrls } from "../../assets";
import { searchDocs, sectionsOf, termsOf } from "../../docs/search";
import { DOCS_PATH, loadDocs } from "../../docs/site";
import type { ApiDescription } from "../../openapi";
import type { ConsoleContext } from "../../page-kit";

const DESCRIPTION = "Documentation of Basetide: Airtable bases as live, read-only Postgres databases.";
const MAX_QUERY_LENGTH = 200;

const TYPES: Record<string, string> = {
  ".json": "application/json; charset=utf-8",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".webp": "image/webp",
};

export function docsPages({ config }: Pick<ConsoleContext, "config">, api: ApiDescription) {
  const site = loadDocs();
  const { groups } = site;
  const sections = [...site.pages.values()].flatMap(sectionsOf);
  // The description is complete only after all routes are.
  const allSections = () => [...sections, ...apiSections(api.document)];
  const texts = new Map<string, string>();

  const whole = (title: string, view: VNode, page: Partial<SiteProps>) => (
    <SitePage
      title={`${title} · Basetide docs`}
      description={DESCRIPTION}
      active="docs"
      canSignUp={config.signUps === "open"}
      assets={siteAssetUrls}
      {...page}
    >
      {view}
    </SitePage>
  );

  /** Pages do not change while the process runs, so each is rendered once. */
  function show(path: string, title: string, view: VNode, page: Partial<SiteProps> = {}): Response {
    const text = texts.get(path) ?? pageText(whole(title, view, page));
    texts.set(path, text);
    return new Response(text, { headers: pageHeaders });
  }

  function file(path: string): Response {
    const content = site.files.get(path);
    if (content) {
      const type = TYPES[extname(path)] ?? "text/plain; charset=utf-8";
      return new Response(content, { headers: { ...securityHeaders, "content-type": type } });
    }
    const names = [...site.files.keys()].filter((name) => name.startsWith(`${path}/`));
    if (names.length === 0) throw new BasetideError("not_found", "This page does not exist");
    return show(`files/${path}`, path, <DocFiles folder={path} names={names} groups={groups} />);
  }

  return new Elysia({ detail: { hide: true } })
    .get(DOCS_PATH, () => show("", "Start", <DocsHome groups={groups} path={DOCS_PATH} />))
    .get(`${DOCS_PATH}/search`, ({ query }) => {
      const text = String(query.q ?? "")
        .slice(0, MAX_QUERY_LENGTH)
        .toWellFormed()
        .trim();
      const matches = searchDocs(allSections(), text);
      const view = <DocsSearch query={text} terms={termsOf(text)} matches={matches} groups={groups} />;
      return renderPage(whole("Search", view, {}));
    })
    .get(`${DOCS_PATH}/api`, () =>
      show("api", "API reference", <ApiReference api={api.document} groups={groups} />, { active: "api" }),
    )
    .get(`${DOCS_PATH}/files/*`, ({ params }) => file(params["*"]))
    .get(`${DOCS_PATH}/*`, ({ params }) => {
      const slug = params["*"].replace(/\/$/, "");
      const page = site.pages.get(slug);
      if (!page) throw new BasetideError("not_found", "This page does not exist");
      return show(slug, page.title, <DocView page={page} groups={groups} path={`${DOCS_PATH}/${slug}`} />, {
        description: page.summary,
      });
    });
}

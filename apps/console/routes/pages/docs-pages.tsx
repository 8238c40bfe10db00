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
import { hasSessionCookie } from "../../auth/resign";
import { searchDocs, sectionsOf, termsOf } from "../../docs/search";
import { DOCS_PATH, loadDocs } from "../../docs/site";
import type { ApiDescription } from "../../openapi";
import type { ConsoleContext } from "../../page-kit";
import { themeOf } from "../../theme-cookie";

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

  const whole = (request: Request, title: string, view: VNode, page: Partial<SiteProps> = {}) => (
    <SitePage
      title={`${title} · Basetide docs`}
      description={DESCRIPTION}
      active="docs"
      theme={themeOf(request)}
      canSignUp={config.signUps === "open"}
      isSignedIn={hasSessionCookie(request)}
      assets={siteAssetUrls}
      {...page}
    >
      {view}
    </SitePage>
  );

  /** Pages do not change while the process runs, so each is rendered once per theme, for visitors and for users. */
  function show(request: Request, path: string, title: string, view: VNode, page: Partial<SiteProps> = {}) {
    const key = `${themeOf(request)} ${hasSessionCookie(request)} ${path}`;
    const text = texts.get(key) ?? pageText(whole(request, title, view, page));
    texts.set(key, text);
    return new Response(text, { headers: pageHeaders });
  }

  function file(request: Request, path: string): Response {
    const content = site.files.get(path);
    if (content) {
      const type = TYPES[extname(path)] ?? "text/plain; charset=utf-8";
      return new Response(content, { headers: { ...securityHeaders, "content-type": type } });
    }
    const names = [...site.files.keys()].filter((name) => name.startsWith(`${path}/`));
    if (names.length === 0) throw new BasetideError("not_found", "This page does not exist");
    return show(request, `files/${path}`, path, <DocFiles folder={path} names={names} groups={groups} />);
  }

  return new Elysia({ detail: { hide: true } })
    .get(DOCS_PATH, ({ request }) =>
      show(request, "", "Start", <DocsHome groups={groups} path={DOCS_PATH} />),
    )
    .get(`${DOCS_PATH}/search`, ({ request, query }) => {
      const text = String(query.q ?? "")
        .slice(0, MAX_QUERY_LENGTH)
        .toWellFormed()
        .trim();
      const matches = searchDocs(allSections(), text);
      const view = <DocsSearch query={text} terms={termsOf(text)} matches={matches} groups={groups} />;
      return renderPage(whole(request, "Search", view));
    })
    .get(`${DOCS_PATH}/api`, ({ request }) =>
      show(request, "api", "API reference", <ApiReference api={api.document} groups={groups} />, {
        active: "api",
      }),
    )
    .get(`${DOCS_PATH}/files/*`, ({ request, params }) => file(request, params["*"]))
    .get(`${DOCS_PATH}/*`, ({ request, params }) => {
      const slug = params["*"].replace(/\/$/, "");
      const page = site.pages.get(slug);
      if (!page) throw new BasetideError("not_found", "This page does not exist");
      return show(
        request,
        slug,
        page.title,
        <DocView page={page} groups={groups} path={`${DOCS_PATH}/${slug}`} />,
        {
          description: page.summary,
        },
      );
    });
}

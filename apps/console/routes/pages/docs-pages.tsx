/** The documentation at `/docs`. Public, the same for everyone, and readable while the control plane is away. */
import { extname } from "node:path";
import { Elysia } from "elysia";
import type { VNode } from "preact";
import { cutText } from "../../../../core/cut-text";
import { BasetideError } from "../../../../core/errors";
import { ApiReference, apiSections } from "../../../../views/docs/api";
import { DocsHome } from "../../../../views/docs/home";
import { DocFiles, DocView } from "../../../../views/docs/page";
import { DocsSearch } from "../../../../views/docs/search";
import { pageHeaders, pageText, renderPage, securityHeaders } from "../../../../views/render";
import { SitePage, type SiteProps } from "../../../../views/site/frame";
import { siteAssetUrls } from "../../assets";
import { hasSessionCookie } from "../../auth/resign";
import { themeOf } from "../../cookies";
import { allSections, searchDocs, termsOf } from "../../docs/search";
import { DOCS_PATH, llmsText, loadDocs, SKILL_PATH, skillText } from "../../docs/site";
import type { ApiDescription } from "../../openapi";
import type { ConsoleContext } from "../../page-kit";
import { MAX_QUERY_LENGTH } from "../../search/search";

const DESCRIPTION = "Documentation of Basetide: Airtable bases as live, read-only Postgres databases.";
/** A new version of the service may bring other files under the same names. */
const FILE_CACHE = "public, max-age=3600";

const TYPES: Record<string, string> = {
  ".json": "application/json; charset=utf-8",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".webp": "image/webp",
};

function served(content: string | Uint8Array<ArrayBuffer>, type: string): Response {
  const headers = { ...securityHeaders, "content-type": type, "cache-control": FILE_CACHE };
  return new Response(content, { headers });
}

const MARKDOWN = "text/markdown; charset=utf-8";
const PLAIN = "text/plain; charset=utf-8";

export function docsPages({ config }: Pick<ConsoleContext, "config">, api: ApiDescription) {
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
    const { files, groups } = loadDocs();
    const content = files.get(path);
    if (content) return served(content, TYPES[extname(path)] ?? PLAIN);
    const names = [...files.keys()].filter((name) => name.startsWith(`${path}/`));
    if (names.length === 0) throw new BasetideError("not_found", "This page does not exist");
    return show(request, `files/${path}`, path, <DocFiles folder={path} names={names} groups={groups} />);
  }

  return new Elysia({ detail: { hide: true } })
    .get(DOCS_PATH, ({ request }) =>
      show(request, "", "Start", <DocsHome groups={loadDocs().groups} path={DOCS_PATH} />),
    )
    .get(`${DOCS_PATH}/search`, ({ request, query }) => {
      const text = cutText(String(query.q ?? ""), MAX_QUERY_LENGTH).trim();
      const matches = searchDocs([...allSections(), ...apiSections(api.document)], text);
      const { groups } = loadDocs();
      const view = <DocsSearch query={text} terms={termsOf(text)} matches={matches} groups={groups} />;
      return renderPage(whole(request, "Search", view));
    })
    .get(`${DOCS_PATH}/api`, ({ request }) =>
      show(request, "api", "API reference", <ApiReference api={api.document} groups={loadDocs().groups} />, {
        active: "api",
      }),
    )
    .get("/llms.txt", () => served(llmsText(loadDocs(), new URL(config.consoleUrl).origin), PLAIN))
    .get(SKILL_PATH, () => served(skillText(config), MARKDOWN))
    .get(`${DOCS_PATH}/files/*`, ({ request, params }) => file(request, params["*"]))
    .get(`${DOCS_PATH}/*`, ({ request, params }) => {
      const [, slug = "", isMarkdown] = /^(.*?)(\.md)?\/?$/s.exec(params["*"]) ?? [];
      const { pages, groups } = loadDocs();
      const page = pages.get(slug);
      if (page && isMarkdown) return served(page.markdown, MARKDOWN);
      if (!page) throw new BasetideError("not_found", "This page does not exist");
      const view = <DocView page={page} groups={groups} path={`${DOCS_PATH}/${slug}`} />;
      return show(request, slug, page.title, view, { description: page.summary });
    });
}

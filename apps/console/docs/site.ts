/**
 * The documentation, read once per process: the pages of the contents, and the files next to them that pages link to.
 *
 * D1. A link leads to a page or a file that is served, or to another site; otherwise it is shown as text.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { lexer, type Token, type Tokens, walkTokens } from "marked";
import { appPath } from "../../../core/app-path";
import type { Config } from "../../../core/config";
import { anchorMaker, plainText } from "../../../views/docs/text";
import type { DocGroup, DocHeading, DocPage } from "../../../views/docs/types";
import { MCP_PATH } from "../mcp/path";
import { contents } from "./contents";

const ROOT = appPath();
const FOLDER = "docs";
export const DOCS_PATH = "/docs";
export const SKILL_PATH = "/skills/basetide/SKILL.md";
const FILES_PATH = `${DOCS_PATH}/files`;

interface DocSite {
  groups: DocGroup[];
  /** By slug, in the order of the contents. */
  pages: Map<string, DocPage>;
  /** The files that are not pages, by their path below `docs/`. */
  files: Map<string, Uint8Array<ArrayBuffer>>;
}

let loaded: DocSite | undefined;

/** Reads the documentation at the first call: the start of a console does not wait for it. */
export function loadDocs(): DocSite {
  loaded ??= readDocs();
  return loaded;
}

function readDocs(): DocSite {
  const files = filesIn(FOLDER);
  const slugs = new Map(contents.flatMap((group) => group.pages.map(({ file }) => [file, slugOf(file)])));
  const pages = new Map<string, DocPage>();
  const groups = contents.map(({ title: groupTitle, pages: ofGroup }): DocGroup => {
    const entries = ofGroup.map(({ file, title, about }) => {
      const markdown = readFileSync(join(ROOT, file), "utf8");
      const slug = slugs.get(file)!;
      const page = { ...makePage(file, markdown, { slugs, files }), slug, name: title, summary: about };
      pages.set(page.slug, page);
      return { href: `${DOCS_PATH}/${page.slug}`, title, summary: about };
    });
    return { title: groupTitle, entries };
  });
  return { groups, pages, files };
}

/** `docs/platforms/README.md` → `platforms`. */
function slugOf(file: string): string {
  if (file === "README.md") return "quick-start";
  return file
    .replace(/^docs\//, "")
    .replace(/(?:\/README)?\.md$/, "")
    .toLowerCase();
}

/** The files that pages are made of and lead to. */
interface Served {
  /** The slugs of the pages, by file. */
  slugs: Map<string, string>;
  files: DocSite["files"];
}

/** @param file its path in the repository, which its links are relative to */
export function makePage(
  file: string,
  markdown: string,
  served: Served,
): Omit<DocPage, "slug" | "name" | "summary"> {
  const tokens = lexer(markdown);
  const anchors = new Map<Token, string>();
  const headings: DocHeading[] = [];
  const links = new Map<string, string>();
  const anchorOf = anchorMaker();
  walkTokens(tokens, (token) => {
    if (token.type === "heading") {
      const text = plainText(token.tokens);
      const anchor = anchorOf(text);
      anchors.set(token, anchor);
      headings.push({ level: token.depth, text, anchor });
    }
    if (token.type === "link" || token.type === "image") {
      const target = targetOf(file, token.href, served);
      if (target !== undefined) links.set(token.href, target);
    }
  });
  const title = tokens.find(
    (token): token is Tokens.Heading => token.type === "heading" && token.depth === 1,
  );
  return {
    title: title ? plainText(title.tokens) : file,
    tokens: tokens.filter((token) => token !== title),
    headings: headings.filter(({ level }) => level > 1),
    anchors,
    links,
    markdown: withLinks(markdown, links),
  };
}

/** Returns the text with links as the site serves them; those to pages lead to their Markdown. */
function withLinks(markdown: string, links: ReadonlyMap<string, string>): string {
  return markdown.replaceAll(/\]\(([^()\s]+)\)/g, (whole, href: string) => {
    const [path = "", anchor] = (links.get(href) ?? "").split("#");
    const isPage = path.startsWith(`${DOCS_PATH}/`) && !path.startsWith(`${FILES_PATH}/`);
    if (path === "") return whole;
    return `](${isPage ? markdownPath(path) : path}${anchor === undefined ? "" : `#${anchor}`})`;
  });
}

/** The path of a page as Markdown. */
function markdownPath(path: string): string {
  return `${path}.md`;
}

/** Returns `/llms.txt`: what the service is, and its documentation as Markdown, for programs that read it. */
export function llmsText({ groups }: DocSite, origin: string): string {
  const sections = groups.map(({ title, entries }) => {
    const lines = entries.map(
      (entry) => `- [${entry.title}](${origin}${markdownPath(entry.href)}): ${entry.summary}`,
    );
    return `## ${title}\n\n${lines.join("\n")}\n`;
  });
  return [
    "# Basetide\n",
    "> Live, read-only Postgres copies of Airtable bases, and a proxy for Airtable's API that shows each write in SQL before it answers.\n",
    ...sections,
    `## Agents\n\n- [Model Context Protocol](${origin}${MCP_PATH}): SQL over the copies, and proposals of changes that a person approves. A token is made by a member under Agents.\n- [Skill](${origin}${SKILL_PATH}): how to use the tools, SQL, proposals and the proxy.\n`,
    `## API\n\n- [OpenAPI](${origin}/openapi): the management API, as JSON.\n`,
  ].join("\n");
}

let skill: string | undefined;

/** Returns the skill with which an agent learns to use this service. */
export function skillText({ consoleUrl, proxyUrl }: Pick<Config, "consoleUrl" | "proxyUrl">): string {
  skill ??= readFileSync(appPath("apps/console/docs/skill.txt"), "utf8");
  return skill
    .replaceAll("{CONSOLE_URL}", new URL(consoleUrl).origin)
    .replaceAll("{PROXY_URL}", proxyUrl.replace(/\/$/, ""));
}

/** Where a link of `file` leads on the site. */
function targetOf(file: string, href: string, { slugs, files }: Served): string | undefined {
  if (/^(?:https?|mailto):/.test(href)) return href;
  const [path = "", anchor] = href.split("#");
  const fragment = anchor === undefined ? "" : `#${anchor}`;
  if (path === "") return fragment;
  const target = normalize(join(dirname(file), path)).replace(/\/$/, "");
  const slug = slugs.get(target) ?? slugs.get(`${target}/README.md`);
  if (slug !== undefined) return `${DOCS_PATH}/${slug}${fragment}`;
  const below = target.startsWith(`${FOLDER}/`) ? target.slice(FOLDER.length + 1) : undefined;
  if (below === undefined) return undefined;
  const isServed = files.has(below) || [...files.keys()].some((name) => name.startsWith(`${below}/`));
  return isServed ? `${FILES_PATH}/${below}` : undefined;
}

/** All files that are not pages, with their content. */
function filesIn(folder: string): DocSite["files"] {
  const root = join(ROOT, folder);
  if (!existsSync(root)) return new Map();
  const names = readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.name.endsWith(".md"))
    .map((entry) => join(entry.parentPath, entry.name));
  return new Map(
    names.sort().map((path) => [path.slice(root.length + 1), new Uint8Array(readFileSync(path))] as const),
  );
}

/** D1: the documentation as the console serves it: every page, every link, the search, and no markup from Markdown. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { renderToString } from "preact-render-to-string";
import { expect, test } from "vitest";
import { siteAssetUrls } from "../../apps/console/assets";
import { contents } from "../../apps/console/docs/contents";
import { allSections, searchDocs } from "../../apps/console/docs/search";
import { loadDocs, makePage } from "../../apps/console/docs/site";
import { highlight } from "../../views/docs/highlight";
import { Markdown } from "../../views/docs/markdown";
import { SitePage } from "../../views/site/frame";
import { Landing } from "../../views/site/landing";
import { publicConsole } from "../support/api-description";
import { repoFiles, repoRoot } from "../support/source-files";

const files = contents.flatMap((group) => group.pages.map(({ file }) => file));
const sections = allSections();

test("every Markdown file is a page, once", () => {
  expect(files.toSorted()).toEqual(
    repoFiles()
      .filter((path) => path.endsWith(".md"))
      .toSorted(),
  );
});

test("the image contains every page", () => {
  const dockerfile = readFileSync(join(repoRoot, "Dockerfile"), "utf8");
  const ignored = readFileSync(join(repoRoot, ".dockerignore"), "utf8").split("\n");
  for (const file of files) {
    const folder = file.includes("/") ? file.slice(0, file.indexOf("/")) : file;
    expect(dockerfile.includes(file) || dockerfile.includes(`COPY ${folder} ${folder}`), file).toBe(true);
    expect(ignored, file).toContain(`!${folder}`);
  }
});

async function get(path: string) {
  const headers = { accept: "text/html" };
  const answer = await publicConsole.handle(new Request(`http://console${path}`, { headers }));
  return { status: answer.status, headers: answer.headers, text: await answer.text() };
}

test("no internal link of the public pages is dead, none has inline styles or scripts, and no heading shares its anchor", async () => {
  const [found, faults] = [new Map<string, string>(), [] as string[]];
  const open = ["/"];
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    const { status, headers, text } = await get(path);
    found.set(path, text);
    if (status !== 200) faults.push(`${path}: ${status}`);
    if (!headers.get("content-type")?.includes("html")) continue;
    if (/\sstyle=|<style|<script(?![^>]* src=)|\son\w+=/.test(text))
      faults.push(`${path}: inline style or script`);
    const ids = [...text.matchAll(/\sid="([^"]*)"/g)].map(([, id]) => id);
    if (new Set(ids).size < ids.length) faults.push(`${path}: an id is there twice`);
    // Only the public pages are followed; sign-in and sign-up are tested elsewhere.
    const links = [...text.matchAll(/\s(?:href|src)="(\/[^"#]*)/g)].map(([, link]) => link!);
    for (const link of links)
      if (/^\/(docs|openapi|assets|$)/.test(link) && !found.has(link)) open.push(link);
  }
  for (const [path, text] of found) {
    for (const [, page = "", anchor = ""] of text.matchAll(/\shref="(\/docs[^"#]*)?#([^"]+)"/g)) {
      const target = found.get(page === "" ? path : page);
      if (anchor !== "main" && !target?.includes(` id="${anchor}"`))
        faults.push(`${path}: ${page}#${anchor}`);
    }
  }
  expect(faults).toEqual([]);
  expect(found.size).toBeGreaterThan(files.length);
});

test("llms.txt lists every page as Markdown, whose links lead to pages as Markdown or to files", async () => {
  const { text, headers } = await get("/llms.txt");
  expect(headers.get("content-type")).toBe("text/plain; charset=utf-8");
  const listed = [...text.matchAll(/\]\(https?:\/\/[^/]+(\/docs\/[^)]+)\)/g)].map(([, path]) => path!);
  expect(listed).toHaveLength(files.length);
  const dead: string[] = [];
  for (const path of listed) {
    const page = await get(path);
    expect([path, page.status, page.headers.get("content-type")]).toEqual([
      path,
      200,
      "text/markdown; charset=utf-8",
    ]);
    expect(page.text).toMatch(/^# /);
    const links = [...page.text.matchAll(/\]\((\/docs[^)#]*)/g)].map(([, link]) => link!);
    for (const link of links) {
      const isServed = link.startsWith("/docs/files/")
        ? (await get(link)).status === 200
        : listed.includes(link);
      if (!isServed && link !== "/docs/api") dead.push(`${path}: ${link}`);
    }
  }
  expect(dead).toEqual([]);
  expect((await get("/docs/no-page.md")).status).toBe(404);
  expect((await get("/docs/sql")).text).toContain('href="/docs/sql.md"');
});

test("each link of a page leads somewhere", () => {
  const site = loadDocs();
  const dead = [...site.pages.values()].flatMap(({ slug, tokens, links }) => {
    const text = JSON.stringify(tokens);
    const targets = [...text.matchAll(/"type":"link"[^{}]*?"href":"([^"]+)"/g)].map(([, href]) => href!);
    return targets.filter((href) => !links.has(href)).map((href) => `${slug}: ${href}`);
  });
  expect(dead).toEqual([]);
});

test("every link of the console to the documentation leads to a page and a section", () => {
  const { pages } = loadDocs();
  const views = repoFiles("views")
    .map((path) => readFileSync(join(repoRoot, path), "utf8"))
    .join("\n");
  const links = [...views.matchAll(/"\/docs\/([\w./-]+)(?:#([\w-]+))?"/g)].filter(
    ([, slug]) => !/^(api|search|files)/.test(slug!),
  );
  expect(links.length).toBeGreaterThan(10);
  const dead = links.filter(([, slug, anchor]) => {
    const page = pages.get(slug!);
    return !page || (anchor !== undefined && !page.headings.some((heading) => heading.anchor === anchor));
  });
  expect(dead.map(([link]) => link)).toEqual([]);
});

test("a page that does not exist is 404, and so is a file outside of the folder", async () => {
  for (const path of [
    "/docs/nope",
    "/docs/files/../../package.json",
    "/docs/files/%2e%2e/package.json",
    "/docs/files/",
  ]) {
    expect((await get(path)).status, path).toBe(404);
  }
});

function rendered(markdown: string): string {
  const page = makePage("docs/x.md", markdown, { slugs: new Map(), files: new Map() });
  return renderToString(Markdown({ tokens: page.tokens, page }));
}

test("HTML and scripts in Markdown are not rendered", () => {
  const text = rendered(
    "# T\n\n<script>alert(1)</script>\n\nA <img src=x onerror=alert(1)> [a](javascript:alert(1)) ![b](data:x) `<b>`\n\n" +
      "| <i>x</i> |\n|---|\n| [y](vbscript:x) |\n\n```\n</code><script>\n```\n",
  );
  expect(text).not.toMatch(/<(script|i|b|img src)\b/);
  expect(text).not.toMatch(/javascript:|vbscript:|onerror/);
  expect(text).toContain("&lt;b>");
});

test("text and code keep their characters", () => {
  const text = rendered("a & b &lt; c \\* d **e _f_** ~~g~~\n\n1. one\n2. two\n\n> quote\n");
  expect(text).toContain("a &amp; b &lt; c * d <strong>e <em>f</em></strong> <del>g</del>");
  expect(text).toContain("<ol><li>one</li><li>two</li></ol>");
});

test("coloring a program loses no character of it", () => {
  const language = fc.constantFrom("sql", "sh", "js", "json", "python", "yaml", "none");
  const code = fc.string({ unit: fc.constantFrom(..."a1 \n\"'`#-/*$\\{}:select", "from ", "\ud83c\udf0a") });
  fc.assert(
    fc.property(code, language, (text, name) => {
      const parts = highlight(text, name).map((part) => (typeof part === "string" ? part : part.text));
      expect(parts.join("")).toBe(text);
    }),
  );
});

test.for([
  ["call budget", "/docs/syncing#the-call-budget"],
  ["SECRET_KEY", "/docs/configuration"],
  ["RDS", "/docs/platforms/rds"],
  ["pyairtable", "/docs/proxy#pyairtable"],
  ["lease", "/docs/glossary"],
])("the search for %j finds %s among the first", ([query, href]) => {
  const first = searchDocs(sections, query!).slice(0, 4);
  expect(first.map((match) => match.href)).toContain(href);
});

test("every match of a search is on a page with all words, and no query breaks it", async () => {
  expect(searchDocs(sections, "")).toEqual([]);
  expect(searchDocs(sections, "zzzyx lease")).toEqual([]);
  const textOf = (page: string) =>
    sections
      .filter(({ href }) => href.split("#")[0] === page)
      .map(({ heading, text }) => `${heading} ${text}`);
  const matches = searchDocs(sections, "lease epoch");
  expect(matches.length).toBeGreaterThan(3);
  for (const { href } of matches) {
    const text = textOf(href.split("#")[0]!).join(" ").toLowerCase();
    expect(text.includes("lease") && text.includes("epoch"), href).toBe(true);
  }
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(fc.string({ unit: "binary" }), fc.constantFrom("(", "[a-", "\\", "<b>", "%")),
      async (query) => {
        const { status, text } = await get(`/docs/search?${new URLSearchParams({ q: query })}`);
        expect(status).toBe(200);
        expect(text).not.toContain("<b>");
      },
    ),
    { numRuns: 50 },
  );
});

test("the reference names every call of the API, and the search finds it", async () => {
  const { text } = await get("/docs/api");
  expect(text).toContain('id="postBases"');
  expect(text.match(/class="api-operation"/g)?.length).toBeGreaterThan(30);
  expect((await get("/docs/search?q=connect+a+base")).text).toContain("/docs/api#postBases");
});

test("with closed registrations, the public pages offer sign-in only", () => {
  const offers = (canSignUp: boolean) => {
    const page = { title: "T", description: "D", theme: "system" as const, canSignUp, assets: siteAssetUrls };
    return renderToString(SitePage({ ...page, children: Landing({ canSignUp }) })).includes('href="/signup"');
  };
  expect([offers(true), offers(false)]).toEqual([true, false]);
});

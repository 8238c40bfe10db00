/** The public pages in a real browser: landing, documentation, search and the reference; they need no database. */
import { gzipSync } from "node:zlib";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { publicConsole } from "../support/api-description";
import { BROWSER_TEST_MS, newVisitor, noBrowser, openBrowser } from "../support/browser";
import { isFont, PAGE_WEIGHT } from "../support/page-weight";

const PAGES: [name: string, path: string][] = [
  ["landing", "/"],
  ["docs-home", "/docs"],
  ["docs-page", "/docs/quick-start"],
  ["docs-api", "/docs/api"],
  ["docs-search", "/docs/search?q=lease"],
];

let browser: Browser;
let server: Bun.Server<undefined>;

beforeAll(async () => {
  if (noBrowser) return;
  server = Bun.serve({ port: 0, fetch: (request) => publicConsole.handle(request) });
  browser = await openBrowser();
});
afterAll(async () => {
  await browser?.close();
  await server?.stop(true);
});

test.skipIf(noBrowser)(
  "each public page is accessible, light, and fits",
  { timeout: BROWSER_TEST_MS },
  async () => {
    await using visitor = await newVisitor(browser, {
      baseUrl: `http://localhost:${server.port}`,
      isTwofold: true,
    });
    let sizes: Promise<number>[] = [];
    visitor.page.on("response", (response) => {
      // Measured by itself (`console-pages.test.ts`). A page that preloads it from the browser's cache has no body of it.
      if (isFont(new URL(response.url()).pathname)) return;
      sizes.push(response.body().then((body) => gzipSync(body).length));
    });
    for (const [page, path] of PAGES) {
      sizes = [];
      await visitor.page.goto(path, { waitUntil: "networkidle" });
      // The page is idle before the browser has handed over every body.
      const bytes = (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
      expect(bytes, `${page}, in bytes`).toBeLessThan(PAGE_WEIGHT);
      await visitor.inspect(`public-${page}`);
    }
    visitor.expectNoProblems();
  },
);

test.skipIf(noBrowser)(
  "without scripts, a visitor searches the docs and opens a section",
  { timeout: BROWSER_TEST_MS },
  async () => {
    await using visitor = await newVisitor(browser, {
      baseUrl: `http://localhost:${server.port}`,
      hasScript: false,
    });
    const { page } = visitor;
    await page.goto("/");
    await page.getByRole("searchbox", { name: "Search the docs" }).fill("call budget");
    await page.getByRole("searchbox", { name: "Search the docs" }).press("Enter");
    await page.getByRole("link", { name: "The call budget" }).click();
    expect(new URL(page.url()).pathname + new URL(page.url()).hash).toBe("/docs/syncing#the-call-budget");
    await page.getByRole("heading", { name: "How it syncs", level: 1 }).waitFor();
    visitor.expectNoProblems();
  },
);

/**
 * Takes a picture of every page of the console in three widths, light and dark, to look at after a change of the styles:
 * `bun test/support/page-pictures.ts [folder]`. Without a folder, a new temporary one, whose name is printed.
 *
 * PICTURES_ONLY (a part of the address), PICTURES_DOCS=1 (also the pages of the documentation), PICTURES_WIDTHS (1280,1920,390).
 * What scrolls horizontally, or has an error, is printed. Needs the embedded Postgres, and a Chromium.
 */
import { mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openBrowser } from "./browser";
import { type PageVisit, pageVisits } from "./console-pages";
import { type ConsoleScene, consoleScene } from "./console-scene";
import { startFleet } from "./fleet";
import { startTestServer } from "./server";

const WIDTHS = (process.env.PICTURES_WIDTHS ?? "1280,1920,390").split(",").map(Number);
const ONLY = process.env.PICTURES_ONLY ?? "";
const HAS_DOCS = process.env.PICTURES_DOCS === "1";
/** The tables of a base of usual size. */
const TABLES = 6;

async function takePictures(folder: string, scene: ConsoleScene): Promise<void> {
  const browser = await openBrowser();
  await using _ = { [Symbol.asyncDispose]: () => browser.close() };
  const visits = pageVisits(scene.ids).filter(isWanted);
  const cookies = scene.cookie.split("; ").map((cookie) => {
    const at = cookie.indexOf("=");
    return { name: cookie.slice(0, at), value: cookie.slice(at + 1), url: scene.origin };
  });
  for (const colorScheme of ["light", "dark"] as const) {
    const context = await browser.newContext({ baseURL: scene.origin, colorScheme, reducedMotion: "reduce" });
    const page = await context.newPage();
    page.on("pageerror", (error) => console.log(`${page.url()}: ${error.message}`));
    for (const { path, isVisitor } of visits) {
      await context.clearCookies();
      if (!isVisitor) await context.addCookies(cookies);
      for (const width of WIDTHS) {
        await page.setViewportSize({ width, height: 900 });
        await page.goto(path, { waitUntil: "load" });
        await page.screenshot({
          path: join(folder, `${nameOf(path, scene)}-${width}-${colorScheme}.png`),
          fullPage: true,
        });
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        if (wide > 0) console.log(`${path} is ${wide} pixels wider than ${width}`);
      }
    }
    await context.close();
  }
}

function isWanted({ path, route, isFragment }: PageVisit): boolean {
  const isText = isFragment || route === "/llms.txt" || route.startsWith("/skills/");
  return !isText && path.includes(ONLY) && (HAS_DOCS || !/^\/docs\/./.test(path));
}

/** `bases-ID-freshness-range-1h`. */
function nameOf(path: string, { ids }: ConsoleScene): string {
  let name = path;
  for (const [kind, id] of Object.entries(ids)) name = name.replaceAll(id, kind === "table" ? "table" : "ID");
  return (
    name
      .replaceAll(/[^\w]+/g, "-")
      .replaceAll(/^-|-$/g, "")
      .slice(0, 80) || "landing"
  );
}

if (import.meta.main) {
  const folder = process.argv[2] ?? mkdtempSync(join(tmpdir(), "basetide-pages-"));
  mkdirSync(folder, { recursive: true });
  {
    await using releases = new AsyncDisposableStack();
    const server = await startTestServer();
    releases.defer(() => server.stop());
    const env = { REPLICA_URL: server.url };
    const fleet = releases.use(await startFleet({ databaseUrl: server.url, env, leavesBases: true }));
    const scene = await consoleScene(fleet, { bases: 12, tables: TABLES, rows: 120 });
    releases.defer(() => scene.stop());
    await takePictures(folder, scene);
  }
  console.log(folder);
}

/**
 * A real browser for tests: Chromium, if the machine has it (CHROMIUM names another path). Preferably the build without
 * windows: opening a page in it costs a fifth of the CPU time.
 *
 * A visitor records every violation of the Content-Security-Policy and every error of a page; a test ends with
 * `expectNoProblems`.
 */
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import type axe from "axe-core";
import { type Browser, chromium, type Page } from "playwright-core";
import { expect } from "vitest";
import { slowness } from "./machine-speed";
import { repoRoot } from "./source-files";

const CHROMIUM = "/usr/bin/chromium";
const WITHOUT_WINDOWS = "/usr/lib/chromium/chromium-headless-shell";
const executablePath = process.env.CHROMIUM ?? (existsSync(WITHOUT_WINDOWS) ? WITHOUT_WINDOWS : CHROMIUM);
const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
const SCREENSHOTS = join(repoRoot, "test/browser/screenshots");
/** Drawing and compressing them takes long, and in CI no one looks at them. */
const hasScreenshots = !process.env.CI;
/** The longest wait for something on a page, in ms; machines that run tests are busy. */
const TIMEOUT_MS = 30_000;
/** The longest time of a test of pages, in ms: ten times what most take on an idle machine. */
export const BROWSER_TEST_MS = 240_000;

/** Parsing the other form takes longer, on each page. */
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
/** Describing every element that passes would take half of the time, and no rule looks into style sheets. */
const AXE_OPTIONS: axe.RunOptions = { resultTypes: ["violations"], preload: false };

const DESKTOP = { width: 1200, height: 800 };
const PHONE = { width: 375, height: 740 };

export const noBrowser = existsSync(executablePath)
  ? undefined
  : `no Chromium at ${executablePath}: set CHROMIUM to where it is`;

export function openBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath, args: FLAGS });
}

export interface Visitor {
  page: Page;
  /**
   * Checks the page for accessibility, and takes a screenshot, `<name>.png`, except in CI; with `isTwofold`, once more in
   * the other size and colors, such as `<name>-phone-dark.png`.
   */
  inspect(name: string): Promise<void>;
  expectNoProblems(): void;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface VisitorOptions {
  baseUrl: string;
  /** Default: true. */
  hasScript?: boolean;
  isPhone?: boolean;
  isDark?: boolean;
  /** Checks what it inspects in the other size and colors, too: on a phone in the dark unless other options are set. */
  isTwofold?: boolean;
  /** Default: the machine's. */
  timeZone?: string;
}

/** A visitor with a separate browser context: no cookies, an empty cache. */
export async function newVisitor(browser: Browser, options: VisitorOptions): Promise<Visitor> {
  const { baseUrl, hasScript = true, isPhone = false, isDark = false, isTwofold, timeZone } = options;
  const context = await browser.newContext({
    baseURL: baseUrl,
    javaScriptEnabled: hasScript,
    viewport: isPhone ? PHONE : DESKTOP,
    hasTouch: isPhone,
    colorScheme: isDark ? "dark" : "light",
    reducedMotion: "reduce",
    ...(timeZone && { timezoneId: timeZone }),
    permissions: ["clipboard-read", "clipboard-write"],
  });
  const page = await context.newPage();
  page.setDefaultTimeout(TIMEOUT_MS * slowness());
  const problems: string[] = [];
  page.on("pageerror", (error) => problems.push(`${page.url()}: ${error.message}`));
  page.on("console", (message) => {
    // A 4xx answer to a form is not an error of the page.
    const isRefusal = /^Failed to load resource:.*status of 4\d\d/.test(message.text());
    if (message.type() === "error" && !isRefusal) problems.push(`${page.url()}: ${message.text()}`);
  });
  const inspectOnce = async (name: string) => {
    if (hasScreenshots) {
      mkdirSync(SCREENSHOTS, { recursive: true });
      await page.screenshot({ path: join(SCREENSHOTS, `${name}.png`), fullPage: true });
    }
    // axe waits for timers, which do not run if scripts are off.
    if (hasScript) await expectAccessible(page, name);
    await expectNoSideways(page, name);
  };
  return {
    page,
    async inspect(name) {
      await inspectOnce(name);
      if (!isTwofold) return;
      await page.setViewportSize(isPhone ? DESKTOP : PHONE);
      await page.emulateMedia({ colorScheme: isDark ? "light" : "dark" });
      await inspectOnce(`${name}-${isPhone ? "desktop" : "phone"}-${isDark ? "light" : "dark"}`);
      await page.emulateMedia({ colorScheme: isDark ? "dark" : "light" });
      await page.setViewportSize(isPhone ? PHONE : DESKTOP);
    },
    expectNoProblems: () => expect(problems).toEqual([]),
    [Symbol.asyncDispose]: () => context.close(),
  };
}

/** Loads axe's script through the debugger, which no policy restricts, once per page. */
async function expectAccessible(page: Page, name: string): Promise<void> {
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(AXE);
  const found = await page.evaluate(async (options) => {
    // Colors in between are not to be judged.
    for (const change of document.getAnimations()) if (change instanceof CSSTransition) change.finish();
    const { violations } = await (window as unknown as { axe: typeof axe }).axe.run(document, options);
    return violations.map(
      ({ id, help, nodes }) => `${id} (${help}): ${nodes.map(({ html }) => html).join(" ")}`,
    );
  }, AXE_OPTIONS);
  // axe leaves empty style attributes behind. htmx would copy them, and the policy would report them.
  await page.evaluate(() => {
    for (const touched of document.querySelectorAll("[style]")) touched.removeAttribute("style");
  });
  expect(found, `accessibility of ${name}`).toEqual([]);
}

/** Expects that the page does not scroll horizontally. */
async function expectNoSideways(page: Page, name: string): Promise<void> {
  const overflow = await page.evaluate(
    () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
  );
  expect(overflow, `${name} is wider than its window`).toBeLessThanOrEqual(0);
}

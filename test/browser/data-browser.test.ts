/** The data browser in a real browser: grid, filter, record panel, pages; with and without JavaScript, light and dark. */
import type { Browser, Cookie, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type RunningConsole, startConsole } from "../../apps/console/start";
import type { Base } from "../../core/control/bases";
import { BROWSER_TEST_MS, newVisitor, noBrowser, openBrowser, type VisitorOptions } from "../support/browser";
import { projectBase } from "../support/data-scene";
import { type Fleet, startFleet } from "../support/fleet";

const OWNER = { email: "fleet@example.org", password: "correct horse" };

let fleet: Fleet;
let base: Base;
let running: RunningConsole;
let browser: Browser | undefined;
let baseUrl: string;
let cookies: Cookie[] = [];

beforeAll(async () => {
  if (noBrowser) return;
  fleet = await startFleet({ sandbox: { settings: { rateLimitOff: true } } });
  base = await fleet.connect(projectBase(fleet.sandbox), { turbo: true, attachmentViews: true });
  await fleet.synced(base.id);
  running = await startConsole(fleet.ctx, { port: 0 });
  baseUrl = `http://localhost:${running.port}`;
  browser = await openBrowser();
}, BROWSER_TEST_MS);
afterAll(async () => {
  await browser?.close();
  await running?.stop();
  await fleet?.[Symbol.asyncDispose]();
});

async function visit(options: Omit<VisitorOptions, "baseUrl"> = {}) {
  const visitor = await newVisitor(browser!, { baseUrl, ...options });
  const context = visitor.page.context();
  await context.addCookies(cookies);
  if (cookies.length > 0) return visitor;
  await visitor.page.goto("/sign-in");
  await visitor.page.getByLabel("E-mail").fill(OWNER.email);
  await visitor.page.getByLabel("Password").fill(OWNER.password);
  await visitor.page.getByRole("button", { name: "Sign in" }).click();
  await visitor.page.getByRole("heading", { level: 1, name: "Bases" }).waitFor();
  cookies = await context.cookies();
  return visitor;
}

test.for([
  { name: "light", isDark: false, isPhone: false, hasScript: true },
  { name: "phone-dark-no-script", isDark: true, isPhone: true, hasScript: false },
])(
  "rows are shown, filtered, paged and opened: $name",
  { timeout: BROWSER_TEST_MS },
  async (options, { skip }) => {
    skip(noBrowser !== undefined, noBrowser);
    await using visitor = await visit(options);
    const { page } = visitor;
    const { hasScript, name } = options;
    await page.goto(`/bases/${base.id}`);
    await page.getByRole("link", { name: "Tasks", exact: true }).first().click();
    await page.getByRole("cell", { name: "Website" }).first().waitFor();
    await visitor.inspect(`data-grid-${name}`);
    if (hasScript) {
      // However long the name of another table is, the counts stay in sight.
      const [count, list] = await page.evaluate(() => {
        const nav = document.querySelector(".data-tables")!;
        nav.querySelector("a:nth-child(2) bdi")!.textContent = "A name that is longer than the list is wide";
        return [nav.querySelector("a .muted")!, nav].map((one) => one.getBoundingClientRect().right);
      });
      expect(count).toBeLessThan(list!);
    }
    if (hasScript) {
      await page.getByText("Filter", { exact: true }).click();
      await page.getByLabel("Filter 1: column").selectOption("due");
      await page.getByText("Days begin at midnight UTC").waitFor();
      const size = page.viewportSize()!;
      await page.emulateMedia({ colorScheme: "dark" });
      for (const width of [390, 1280, 1920]) {
        await page.setViewportSize({ width, height: 900 });
        await visitor.inspect(`data-filter-dark-${width}`);
      }
      await page.emulateMedia({ colorScheme: "light" });
      await page.setViewportSize(size);
      await page.getByText("Filter", { exact: true }).click();
    }

    await page.getByRole("link", { name: "Estimate" }).focus();
    await page.getByText("Hours of work.").waitFor();
    if (hasScript) await visitor.inspect(`data-description-${name}`);

    await page.getByText("Filter", { exact: true }).click();
    await page.getByLabel("Filter 1: column").selectOption("status");
    if (hasScript) await page.getByLabel("Filter 1: value").and(page.locator("select")).waitFor();
    // Without a script, the operators come with the next page.
    if (!hasScript) await page.getByRole("button", { name: "Apply" }).click();
    await page.getByLabel("Filter 1: operator").selectOption("is");
    await page.getByLabel("Filter 1: value").selectOption("Done");
    await page.getByLabel("Filter 1: operator").selectOption("not_empty");
    expect(await page.getByLabel("Filter 1: value").isVisible()).toBe(false);
    await page.getByLabel("Filter 1: operator").selectOption("is");
    await visitor.inspect(`data-filter-${name}`);
    await page.getByRole("button", { name: "Apply" }).click();
    await page.getByText("1–57 of 57").waitFor();
    expect(new URL(page.url()).search).toContain("f=status&o=is&v=Done");

    await page.getByText("1 filter", { exact: true }).click();
    await page.getByRole("link", { name: "Remove filter 1" }).click();
    await page.getByRole("link", { name: "Next" }).click();
    await page.getByText("101–200 of 230").waitFor();
    await page.getByRole("link", { name: "Previous" }).click();
    await page.getByText("1–100 of 230").waitFor();

    // A record opens at the side, or on its own page.
    const before = page.url();
    await page.getByRole("link", { name: "Draft landing page 0" }).click();
    await page.getByRole("heading", { level: 2, name: "Draft landing page 0" }).waitFor();
    expect(page.url()).not.toBe(before);
    await page.getByText("Values that do not fit their column").waitFor();
    const picture = page.getByRole("link", { name: "sketch-0.png" }).getByRole("img").last();
    await picture.scrollIntoViewIfNeeded();
    await expect
      .poll(() => picture.evaluate((image: HTMLImageElement) => image.complete && image.naturalWidth))
      .toBe(2);
    await visitor.inspect(`data-record-${name}`);
    // A chip leads to the linked record.
    await (hasScript ? page.locator("#record") : page.locator(".record"))
      .getByRole("link", { name: "Website" })
      .click();
    await page.getByRole("heading", { level: 2, name: "Website" }).waitFor();
    // Who opens the address sees the same, and closing it leaves the grid.
    await page.reload();
    await page.getByRole("heading", { level: 2, name: "Website" }).waitFor();
    if (hasScript) {
      expect(new URL(page.url()).search).toContain("record=projects_more%2FrecProject0000000");
      await visitor.inspect(`data-record-reloaded-${name}`);
      await page.keyboard.press("Escape");
      await expect.poll(() => page.url()).toBe(before);
      expect(await page.locator("#record").isVisible()).toBe(false);
      await moveOverCells(page);
    } else {
      await page.goto(`${before}&record=recTask0000000000`);
      await visitor.inspect(`data-record-open-${name}`);
      await page.locator("#record").getByRole("link", { name: "Close" }).click();
      expect(page.url()).toBe(before);
    }
    await page.getByLabel("Search all columns").fill("test onboarding");
    await page.getByLabel("Search all columns").press("Enter");
    await page.getByText("1–5 of 5").waitFor();
    await visitor.inspect(`data-search-${name}`);

    await page.goto(`/bases/${base.id}/data/tasks?f=estimate&o=gte&v=many&f=gone&o=is&v=x`);
    await page.getByText("“many” is not a number").waitFor();
    await page.getByText("The link filters by “gone”").waitFor();
    await visitor.inspect(`data-wrong-filter-${name}`);
    visitor.expectNoProblems();
  },
);

/** The cursor: arrows move it, Ctrl+C copies the cell's text, also what is clipped, Enter opens the record. */
async function moveOverCells(page: Page): Promise<void> {
  const copied = () => page.evaluate(() => navigator.clipboard.readText());
  const at = () => page.evaluate(() => document.activeElement?.textContent);
  const press = async (...keys: string[]) => {
    for (const key of keys) await page.keyboard.press(key);
  };
  await page.getByRole("group", { name: "Records of Tasks" }).focus();
  await press("ArrowDown");
  expect(await at()).toBe("Draft landing page 0");
  await press("ArrowUp", "ArrowLeft", "ArrowDown", "ArrowRight");
  expect(await at()).toBe("In progress");
  await press("ControlOrMeta+c");
  expect(await copied()).toBe("In progress");
  await press("ArrowRight", "ArrowDown", "ControlOrMeta+c");
  expect(await copied()).toBe("Engineering, Support");
  await press("End", "Home");
  expect(await at()).toBe("Ship import 2");
  await press("Enter");
  await page.getByRole("heading", { level: 2, name: "Ship import 2" }).waitFor();
  await press("Escape");
  await expect.poll(at).toBe("Ship import 2");

  await page.goto(`/bases/${base.id}/data/tasks?col=notes`);
  await page.getByRole("group", { name: "Records of Tasks" }).focus();
  await press("ArrowDown", "ArrowDown", "ArrowRight", "ControlOrMeta+c");
  const whole = `First line of task 1.\n${"More about it. ".repeat(12)}`.trim();
  await expect.poll(async () => (await copied()).trim()).toBe(whole);
  await page.goto(`/bases/${base.id}/data/tasks`);
}

/**
 * What an analyst does with a base that is connected, in a real browser: twenty tasks, and the way of somebody who has
 * never seen the console to a chart.
 */
import { readFile } from "node:fs/promises";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { type RunningConsole, startConsole } from "../../apps/console/start";
import type { Base } from "../../core/control/bases";
import { BROWSER_TEST_MS, newVisitor, noBrowser, openBrowser, type Visitor } from "../support/browser";
import { projectBase } from "../support/data-scene";
import { type Fleet, startFleet } from "../support/fleet";

vi.setConfig({ testTimeout: BROWSER_TEST_MS });

const MOST_CLICKS = 6;

let fleet: Fleet;
let base: Base;
let running: RunningConsole;
let browser: Browser | undefined;
let visitor: Visitor;
let page: Page;

beforeAll(async () => {
  if (noBrowser) return;
  fleet = await startFleet({ sandbox: { settings: { rateLimitOff: true } } });
  base = await fleet.connect(projectBase(fleet.sandbox), { turbo: true });
  await fleet.synced(base.id);
  running = await startConsole(fleet.ctx, { port: 0 });
  browser = await openBrowser();
  visitor = await newVisitor(browser, { baseUrl: `http://localhost:${running.port}` });
  page = visitor.page;
  await page.goto("/sign-in");
  await page.getByLabel("E-mail").fill("fleet@example.org");
  await page.getByLabel("Password").fill("correct horse");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { level: 1, name: "Bases" }).waitFor();
}, BROWSER_TEST_MS);
afterAll(async () => {
  await browser?.close();
  await running?.stop();
  await fleet?.[Symbol.asyncDispose]();
});

const open = (path: string) => page.goto(`/bases/${base.id}${path}`);
const shows = (text: string | RegExp) => page.getByText(text).first().waitFor();
const soon = <T>(read: () => T) => expect.poll(read, { timeout: BROWSER_TEST_MS });
/** The names of the records on the page. */
const names = () => page.locator(".grid tbody th").allInnerTexts();

async function filter(number: number, column: string, operator: string, value?: string): Promise<void> {
  const line = (part: string) => page.getByLabel(`Filter ${number}: ${part}`);
  await line("column").selectOption({ label: column });
  await page
    .locator(`select[aria-label="Filter ${number}: operator"] option:text-is("${operator}")`)
    .waitFor({ state: "attached" });
  await line("operator").selectOption({ label: operator });
  if (value === undefined) return;
  const choices = line("value").and(page.locator("select"));
  if ((await choices.count()) > 0) await choices.selectOption(value);
  else await line("value").fill(value);
}

/** The page's scripts must be there: a column that is chosen earlier brings no operators. */
async function openFilters(): Promise<void> {
  await page.waitForLoadState("load");
  await page.locator("summary", { hasText: /filter/i }).click();
}

const apply = () => page.getByRole("button", { name: "Apply" }).click();

async function download(name: "CSV" | "JSON"): Promise<string> {
  const coming = page.waitForEvent("download");
  await page.getByRole("link", { name, exact: true }).click();
  return readFile(await (await coming).path(), "utf8");
}

test.skipIf(noBrowser)(
  "rows: an analyst opens a table, sorts it, filters it twice, and takes the result away",
  async () => {
    // 1. Open a table.
    await open("");
    await page.getByRole("link", { name: "Tasks", exact: true }).first().click();
    await shows("1–100 of 230");

    // 2. Sort.
    await page.getByRole("columnheader", { name: "Budget" }).getByRole("link").click();
    await page
      .getByRole("columnheader", { name: "Budget" })
      .and(page.locator("[aria-sort=ascending]"))
      .waitFor();

    // 3. Two filters, one of them by a choice.
    await openFilters();
    await filter(1, "Status", "is", "Done");
    await apply();
    await shows("of 57");
    await openFilters();
    await filter(2, "Estimate", "≥", "30");
    await apply();
    await shows("2 filters");
    const found = await names();
    expect(found.length).toBeGreaterThan(3);

    // 4. Take the filtered rows away as a file, of either form.
    const csv = (await download("CSV")).trim().split("\r\n");
    expect(csv[0]).toMatch(/^id,/);
    expect(csv.length - 1).toBe(
      Number(/of (\d+)/.exec((await page.locator(".pager").textContent()) ?? "")?.[1]),
    );
    expect(JSON.parse(await download("JSON"))).toHaveLength(csv.length - 1);
    visitor.expectNoProblems();
  },
);

test.skipIf(noBrowser)(
  "rows: an analyst filters by links, days and texts without regard to case, and learns why a filter is wrong",
  async () => {
    // 5. Filter by the name of a linked record.
    await open("/data/tasks");
    await openFilters();
    await filter(1, "Project", "contains", "web");
    await apply();
    await shows("of 77");

    // 6. Learn why a filter is wrong.
    await open("/data/tasks");
    await openFilters();
    await filter(1, "Estimate", "≥", "abc");
    await apply();
    await shows("“abc” is not a number");

    // 7. Filter by days relative to today, and 8. without regard to case.
    await open("/data/tasks");
    await openFilters();
    await filter(1, "Due", "is in the last 30 days");
    await apply();
    await page.locator(".pager, .empty").first().waitFor();
    await open("/data/tasks");
    await openFilters();
    await filter(1, "Title", "is", "DRAFT landing PAGE 0");
    await apply();
    await shows("1–1 of 1");
    expect(await names()).toEqual(["Draft landing page 0"]);
    visitor.expectNoProblems();
  },
);

test.skipIf(noBrowser)(
  "rows: an analyst hides a column, opens a record at an address to share, and copies a cell",
  async () => {
    // 9. Hide columns, which stays so.
    await open("/data/tasks");
    await page.locator("summary", { hasText: "Columns" }).click();
    await page.getByRole("checkbox", { name: "Areas" }).uncheck();
    await page.getByRole("button", { name: "Show", exact: true }).click();
    await page.getByRole("columnheader", { name: "Areas" }).waitFor({ state: "detached" });
    await open("/data/tasks");
    expect(await page.getByRole("columnheader", { name: "Areas" }).count()).toBe(0);

    // 10. Open a record at an address to share, and copy a cell.
    await page.getByRole("link", { name: "Review pricing 1" }).click();
    await page.getByRole("heading", { level: 2, name: "Review pricing 1" }).waitFor();
    await soon(() => new URL(page.url()).searchParams.get("record")).toMatch(/rec\w+$/);
    await page.keyboard.press("Escape");
    await page.getByRole("group", { name: "Records of Tasks" }).focus();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ControlOrMeta+c");
    await soon(() => page.evaluate(() => navigator.clipboard.readText())).toBe("In progress");
    visitor.expectNoProblems();
  },
);

test.skipIf(noBrowser)(
  "SQL: an analyst groups, is corrected, runs a part, stops, explains, saves, and sees how tables are related",
  async () => {
    await open("/sql");
    const editor = page.getByRole("textbox", { name: "SQL", exact: true });
    const result = page.locator("#sql-result");
    const write = async (sql: string) => {
      await editor.focus();
      await page.keyboard.press("Control+a");
      await page.keyboard.insertText(sql);
    };
    const run = () => page.getByRole("button", { name: "Run" }).click();

    // 11. Group.
    await write("select status, count(*) from tasks group by 1 order by 1");
    await run();
    await result.getByText("4 rows").waitFor();

    // 12. A syntax error is shown where it is; 13. a wrong column, 14. a wrong table, and 15. a write say what to do.
    await write("select status from tasks wher done");
    await run();
    await result.getByText(/syntax error/).waitFor();
    expect(await page.locator(".cm-error").count()).toBe(1);
    await write("select statos from tasks");
    await run();
    await result.getByText(/Perhaps you meant.*status/).waitFor();
    await write("select * from taks");
    await run();
    await result.getByText('relation "taks" does not exist').waitFor();
    await result.getByText(/tasks/).first().waitFor();
    await write("update tasks set done = true");
    await run();
    await result
      .getByText(/read-only/)
      .first()
      .waitFor();
    await result
      .getByText(/Airtable/)
      .first()
      .waitFor();

    // 16. Two statements, of which a part is run.
    await write("select 1 as one;\nselect 2 as two");
    await run();
    await result.getByRole("columnheader", { name: "two" }).waitFor();
    await page.keyboard.press("Control+Home");
    await editor.focus();
    await page.keyboard.press("Control+Home");
    await page.keyboard.press("Shift+End");
    await page.keyboard.press("Control+Enter");
    await result.getByRole("columnheader", { name: "one" }).waitFor();

    // 17. Stop a query.
    await write("select pg_sleep(20)");
    await run();
    await page.getByText(/^Running \d+\.\d s$/).waitFor();
    await page.getByRole("button", { name: "Cancel" }).click();
    await result.getByText("Cancelled.").waitFor();

    // 18. Explain.
    await write("select * from tasks where done");
    await page.getByRole("button", { name: "Explain" }).click();
    await result.locator(".plan-step", { hasText: "tasks" }).first().waitFor();

    // 19. Save.
    await page.getByText("Save query").click();
    await page.getByRole("textbox", { name: "Name" }).fill("What is done");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByText("Query saved.").waitFor();

    // 20. See how the tables are related.
    await page.getByRole("link", { name: "Schema", exact: true }).first().click();
    await page.getByRole("group", { name: "Diagram of the tables and their links" }).waitFor();
    visitor.expectNoProblems();
  },
);

test.skipIf(noBrowser)(
  "from the overview to a chart of a grouped query: six clicks at most, and the values by keyboard",
  async () => {
    await page.evaluate(() => localStorage.clear());
    await open("");
    let clicks = 0;
    const click = async (role: "link" | "button", name: string | RegExp) => {
      clicks++;
      await page
        .getByRole(role, { name, exact: typeof name === "string" })
        .first()
        .click();
    };
    await click("link", "SQL");
    await click("button", "Queries");
    await click("link", "Tasks by Status");
    await click("button", "Run");
    await page.locator("#sql-result").getByText("4 rows").waitFor();
    await click("button", "Chart");
    const chart = page.getByRole("img", { name: "Bars of count by status" });
    await chart.locator("canvas").waitFor();
    expect(clicks).toBeLessThanOrEqual(MOST_CLICKS);
    await chart.focus();
    await page.keyboard.press("Home");
    const legend = chart.locator(".u-legend");
    await soon(() => legend.textContent()).toMatch(/In progress.*58|Planned.*58/);
    const before = await legend.textContent();
    await page.keyboard.press("End");
    await soon(() => legend.textContent()).not.toBe(before);
    await visitor.inspect("analyst-chart");
    visitor.expectNoProblems();
  },
);

test.skipIf(noBrowser)("a chart of the console shows its values by pointer and by keyboard", async () => {
  await page.goto("/account/workspaces");
  const chart = page.getByRole("img", { name: /^Calls to Airtable per day/ });
  const value = page.locator(".chart-value");
  await chart.focus();
  expect(await value.isVisible()).toBe(false);
  await page.keyboard.press("End");
  await value.getByText(/: sync \d+ calls?, /).waitFor();
  await page.keyboard.press("Escape");
  await value.waitFor({ state: "hidden" });
  await chart.locator("rect.slot").last().hover();
  await value.getByText(/: sync \d+ calls?, /).waitFor();
  await visitor.inspect("analyst-values");
  visitor.expectNoProblems();
});

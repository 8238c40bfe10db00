/** The SQL editor and the schema page in a real browser, with and without scripts. */
import { readFile } from "node:fs/promises";
import type { Browser, Cookie, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { type RunningConsole, startConsole } from "../../apps/console/start";
import type { Base } from "../../core/control/bases";
import { saveQuery } from "../../core/sql-editor";
import { BROWSER_TEST_MS, newVisitor, noBrowser, openBrowser, type VisitorOptions } from "../support/browser";
import { type Fleet, startFleet } from "../support/fleet";
import { until } from "../support/poll";

vi.setConfig({ testTimeout: BROWSER_TEST_MS });

let fleet: Fleet;
let running: RunningConsole;
let browser: Browser | undefined;
let baseUrl: string;
let base: Base;
let helpers: Base;
let cookies: Cookie[] = [];

beforeAll(async () => {
  if (noBrowser) return;
  fleet = await startFleet({ sandbox: { settings: { rateLimitOff: true } } });
  const { control } = fleet.sandbox;
  const sourceId = control.createBase({
    name: "Shop",
    tables: [
      {
        name: "Items",
        fields: [
          { name: "Name", type: "singleLineText" },
          { name: "Price", type: "number", options: { precision: 1 } },
        ],
        records: [{ fields: { Name: "bolt", Price: 2 } }, { fields: { Name: "nut" } }],
      },
      { name: "Orders", fields: [{ name: "Name", type: "singleLineText" }], records: [] },
    ],
  });
  const [items, orders] = control.dump(sourceId).tables;
  const options = { linkedTableId: items!.id };
  control.addField(sourceId, orders!.id, { name: "Items", type: "multipleRecordLinks", options });
  const text = (name: string) => ({ name, type: "singleLineText" });
  const helpersId = control.createBase({
    name: "Helpers",
    tables: [
      { name: "Volunteers", fields: ["Name", "Status", "Started", "Straße"].map(text), records: [] },
      { name: "Events", fields: ["Name", "Starts at", "Größe"].map(text), records: [] },
    ],
  });
  running = await startConsole(fleet.ctx, { port: 0 });
  baseUrl = `http://localhost:${running.port}`;
  const connected = (id: string) => fleet.connect(id).then(({ id }) => fleet.synced(id));
  [browser, base, helpers] = await Promise.all([openBrowser(), connected(sourceId), connected(helpersId)]);
}, BROWSER_TEST_MS);
afterAll(async () => {
  await browser?.close();
  await running?.stop();
  await fleet?.[Symbol.asyncDispose]();
});

async function visit(path: string, options: Omit<VisitorOptions, "baseUrl"> = {}, { id } = base) {
  const visitor = await newVisitor(browser!, { baseUrl, ...options });
  const context = visitor.page.context();
  await context.addCookies(cookies);
  if (cookies.length === 0) {
    await visitor.page.goto("/sign-in");
    await signIn(visitor.page);
    await visitor.page.getByRole("heading", { level: 1, name: "Bases" }).waitFor();
    cookies = await context.cookies();
  }
  await visitor.page.goto(`/bases/${id}/${path}`);
  return visitor;
}

async function signIn(page: Page) {
  await page.getByLabel("E-mail").fill("fleet@example.org");
  await page.getByLabel("Password").fill("correct horse");
  await page.getByRole("button", { name: "Sign in" }).click();
}

/** The parts of the SQL page. */
function workbench(page: Page) {
  const editor = page.getByRole("textbox", { name: "SQL", exact: true });
  const write = async (sql: string) => {
    await editor.focus();
    await page.keyboard.press("Control+a");
    await page.keyboard.insertText(sql);
  };
  return { editor, write, result: page.locator("#sql-result") };
}

const clipboard = (page: Page) => page.evaluate(() => navigator.clipboard.readText());

test.skipIf(noBrowser)(
  "a query is written with completion, run, cancelled, saved and downloaded",
  async () => {
    await using visitor = await visit("sql");
    const { page } = visitor;
    const { editor, result, write } = workbench(page);
    await write("select name, price from ite");
    // The names arrive after the page, and a list that has just opened ignores a click.
    await until(
      async () => {
        if ((await editor.textContent()) === "select name, price from items") return true;
        await page.keyboard.press("Control+Space");
        await page.locator(".cm-tooltip-autocomplete li", { hasText: /^items$/ }).click({ timeout: 2000 });
      },
      { what: "the table's name is completed", timeoutMs: 30_000, retryErrors: true },
    );
    await page.keyboard.press("Control+Enter");
    await result.getByText("2 rows").waitFor();
    expect(await result.locator("tbody tr").allInnerTexts()).toEqual(["1\tbolt\t2", "2\tnut\tnull"]);
    await visitor.inspect("sql-result");

    await write("select 1;\nselect oops from items");
    await page.getByRole("button", { name: "Run" }).click();
    await result.getByText('column "oops" does not exist').waitFor();
    expect(await page.locator(".cm-error").textContent()).toBe("oops");
    await visitor.inspect("sql-error");

    const owner = await fleet.owner(base);
    const sessions = async () =>
      (await owner`select from pg_stat_activity where state = 'active' and query = 'select pg_sleep(100)'`)
        .length;
    for (const end of ["cancel", "leave"]) {
      await write("select pg_sleep(100)");
      await page.getByRole("button", { name: "Run" }).click();
      await until(sessions, { what: "the query runs", timeoutMs: 30_000 });
      await page.getByText(/^Running \d+\.\d s$/).waitFor();
      if (end === "cancel") await page.getByRole("button", { name: "Cancel" }).click();
      else await page.goto(`/bases/${base.id}`);
      await until(async () => (await sessions()) === 0, {
        what: `the query has ended by ${end}`,
        timeoutMs: 20_000,
      });
      if (end === "cancel") await result.getByText("Cancelled.").waitFor();
    }

    await page.goto(`/bases/${base.id}/sql`);
    // The tab is as it was left.
    await editor.getByText("select pg_sleep(100)").waitFor();
    await page.getByRole("button", { name: "Queries" }).click();
    await page.getByRole("link", { name: "Newest Items" }).click();
    await editor.getByText("created_time desc").waitFor();
    await page.getByText("Save query").click();
    await page.getByRole("textbox", { name: "Name" }).fill("Latest");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByText("Query saved.").waitFor();
    await page.getByRole("button", { name: "Queries" }).click();
    expect(await page.getByRole("link", { name: "Latest" }).getAttribute("aria-current")).toBe("true");
    const download = page.waitForEvent("download");
    await page.getByRole("button", { name: "Download CSV" }).click();
    expect(await readFile(await (await download).path(), "utf8")).toMatch(/^name,price,created_time\r\n/);
    await page.getByRole("button", { name: "Copy link" }).click();
    await page.getByRole("button", { name: "Copied" }).waitFor();
    expect(await clipboard(page)).toMatch(/\/sql\?saved=qry_\w+$/);
    await page.getByRole("button", { name: "Delete Latest" }).click();
    await page.getByText("Query deleted.").waitFor();
    await write("select 1 as one;\nselect 2 as two");
    await page.keyboard.press("Shift+Home");
    const part = page.waitForEvent("download");
    await page.getByRole("button", { name: "Download CSV" }).click();
    expect(await readFile(await (await part).path(), "utf8")).toBe("two\r\n2\r\n");
    await write("select oops from items");
    await page.getByRole("button", { name: "Download CSV" }).click();
    await page.getByText('column "oops" does not exist').waitFor();
    await editor.getByText("select oops from items").waitFor();
    expect(new URL(page.url()).pathname).toBe(`/bases/${base.id}/sql`);
    visitor.expectNoProblems();
  },
);

test.skipIf(noBrowser)(
  "tables, tabs, parameters, pages, charts, plans and the history are at hand",
  async () => {
    await using visitor = await visit("sql");
    const { page } = visitor;
    const { editor, result, write } = workbench(page);
    await page.getByRole("searchbox", { name: "Find tables and columns" }).fill("pri");
    await page.keyboard.press("ArrowDown");
    const tree = page.getByRole("tree");
    expect(
      await tree.getByRole("treeitem").evaluateAll((items) => items.map(({ ariaLabel }) => ariaLabel)),
    ).toEqual([...["items", "price, numeric"]]);
    await write("select ");
    await tree.getByText("price").click();
    await editor.getByText("select price").waitFor();
    await tree.getByRole("treeitem", { name: "items" }).focus();
    await page.keyboard.press("ArrowLeft");
    expect(await tree.getByRole("treeitem", { name: "items" }).getAttribute("aria-expanded")).toBe("false");

    const bar = page.getByRole("separator", { name: "Width of the tables" });
    const before = Number(await bar.getAttribute("aria-valuenow"));
    await bar.press("ArrowRight");
    expect(Number(await bar.getAttribute("aria-valuenow"))).toBe(before + 2);
    const { x, width } = (await page.locator("#sql-side").boundingBox())!;
    await bar.hover();
    await page.mouse.down();
    await page.mouse.move(x + width + 100, 300, { steps: 3 });
    await page.mouse.up();
    expect((await page.locator("#sql-side").boundingBox())!.width).toBeGreaterThan(width + 50);

    const many = "select n, case when n % 2 = 0 then 'it''s \"|\"' end as t, array['a,', null] as l";
    await write(`${many} from generate_series(1, :last) as n`);
    await page.getByLabel(":last").fill("1201");
    await page.keyboard.press("Enter");
    await result.getByText("there are more").waitFor();
    const range = result.locator("[data-range]");
    await result.getByRole("button", { name: "Next rows" }).click();
    await range.getByText("501–1,000 of 1,201").waitFor();
    await result.getByRole("button", { name: "Next rows" }).click();
    await range.getByText("1,001–1,201 of 1,201").waitFor();
    const last = result.locator("tbody tr").last().locator("td");
    expect(await last.allTextContents()).toEqual(["1201", "1201", "null", '{"a,",NULL}']);
    const copies = new Map<string, string[]>();
    for (const form of ["CSV", "JSON", "Markdown"]) {
      await result.getByRole("button", { name: `Copy as ${form}` }).click();
      await result.locator(`[data-copy-as="${form}"]`).getByText("Copied 1,201").waitFor();
      await page.getByText(`1,201 rows copied as ${form}`).waitFor();
      copies.set(form, (await clipboard(page)).trim().split(/\r?\n/));
    }
    expect(copies.get("CSV")!.slice(0, 3)).toEqual([
      "n,t,l",
      '1,,"{""a,"",NULL}"',
      `2,"it's ""|""","{""a,"",NULL}"`,
    ]);
    expect(JSON.parse(copies.get("JSON")!.join("\n")).slice(0, 2)).toEqual([
      { n: 1, t: null, l: ["a,", null] },
      { n: 2, t: `it's "|"`, l: ["a,", null] },
    ]);
    expect(copies.get("Markdown")!.slice(0, 4)).toEqual([
      ...[
        "| n | t | l |",
        "| ---: | --- | --- |",
        '| 1 |  | {"a,",NULL} |',
        `| 2 | it's "\\|" | {"a,",NULL} |`,
      ],
    ]);
    await result.getByRole("button", { name: "Chart" }).click();
    await result.getByRole("img", { name: "Bars of n by t" }).waitFor();
    await result.getByLabel("X axis").selectOption("Rows");
    await result.getByLabel("Type").selectOption("Line");
    await result.getByRole("img", { name: "Lines of n by row" }).locator("canvas").waitFor();
    await visitor.inspect("sql-chart");

    await page.getByRole("button", { name: "New query" }).click();
    await write("select repeat('x', 1000) as wide from generate_series(1, 40000)");
    await page.getByRole("button", { name: "Run" }).click();
    await result.getByRole("button", { name: "Next rows" }).click();
    // What has come of a result that is too large stays.
    await result.getByText("its result has more than 32 MB").waitFor();
    await result
      .locator("[data-range]:visible")
      .getByText(/^501–1,000 of 3\d,\d{3}$/)
      .waitFor();
    await page.getByRole("button", { name: /^Close select repeat/ }).click();

    await page.getByRole("button", { name: "New query" }).click();
    await write("select o.name from orders as o join items as i on i.id = any (o.items) order by 1");
    for (const [button, said] of [
      ["Explain", /the query did not run$/],
      ["Analyze", /ran [\d.]+ ms$/],
    ] as const) {
      await page.getByRole("button", { name: button }).click();
      await result.getByText(said).waitFor();
      await result.locator(".plan-step", { hasText: /Scan.* on orders as o/ }).waitFor();
    }
    await visitor.inspect("sql-plan");
    await page.getByRole("button", { name: "Copy link" }).click();
    await page.getByRole("button", { name: "Copied" }).waitFor();
    const shared = await clipboard(page);
    expect(new URL(shared).search).toBe("");
    await page.getByRole("button", { name: /^Close select o\.name/ }).click();
    await editor.getByText(":last").waitFor();
    expect(await result.locator(".plan").count()).toBe(0);
    await page.context().clearCookies();
    await page.goto("about:blank");
    await page.goto(shared);
    await signIn(page);
    await editor.getByText("select o.name from orders").waitFor();
    // It has not run.
    expect(await result.locator(".sql-panel:visible *").count()).toBe(0);

    await page.getByRole("button", { name: "History" }).click();
    const history = page.getByRole("region", { name: "History" });
    expect(await history.getByRole("link").allInnerTexts()).toContainEqual(
      expect.stringMatching(/^select n, case.*:last.*\n.* · 500 rows$/),
    );
    await visitor.inspect("sql-history");
    await history.getByRole("link", { name: /^select n, case/ }).click();
    await page.getByLabel(":last").waitFor();
    await history.getByRole("button", { name: "Clear history" }).click();
    await page.getByText("History cleared.").waitFor();
    expect(await page.locator("#sql-history").textContent()).toMatch(/for you alone/);
    visitor.expectNoProblems();
  },
);

test.skipIf(noBrowser)("columns of the tables that the query names are completed first", async () => {
  await using visitor = await visit("sql", {}, helpers);
  const { page } = visitor;
  const editor = page.getByRole("textbox", { name: "SQL", exact: true });
  const options = page.locator(".cm-tooltip-autocomplete li .cm-completionLabel");
  /** Writes a query, and returns the first of what is offered where `|` is. */
  const offered = async (query: string, count: number) => {
    const [before, after] = query.split("|") as [string, string];
    await editor.focus();
    await page.keyboard.press("Control+a");
    await page.keyboard.insertText(before + after);
    for (let left = after.length; left > 0; left--) await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("Control+Space");
    await options.first().waitFor();
    return (await options.allTextContents()).slice(0, count);
  };
  await until(async () => (await offered("select st| from volunteers", 2))[0] === "status", {
    what: "the names have arrived",
    timeoutMs: 30_000,
  });
  expect(await offered("select st| from volunteers", 4)).toEqual([
    ...["status", "started", "straße", "starts_at"],
  ]);
  await visitor.inspect("sql-completion");
  const joined = "from volunteers as v join events as e on v.name = e.name";
  expect(await offered(`select st| ${joined}`, 4)).toEqual(["status", "started", "straße", "starts_at"]);
  expect(await offered(`select e.| ${joined}`, 3)).toEqual(["name", "starts_at", "größe"]);
  expect(await offered(`select 1 ${joined} where gr|`, 1)).toEqual(["größe"]);
  // A list that has just opened ignores a click.
  await until(
    async () => {
      if ((await editor.textContent()) === `select 1 ${joined} where "größe"`) return true;
      await options.first().click({ timeout: 2000 });
    },
    { what: "the name is quoted", timeoutMs: 10_000, retryErrors: true },
  );
  visitor.expectNoProblems();
});

test.skipIf(noBrowser)("the editor and the schema work without scripts", async () => {
  await using visitor = await visit("sql?sample=1", { hasScript: false });
  const { page } = visitor;
  const sql = "select count(*) from items where price > :least";
  await page.getByRole("textbox", { name: "SQL" }).fill(sql);
  await page.getByRole("button", { name: "Run" }).click();
  await page.getByText("Enter values for :least").waitFor();
  await page.getByLabel(":least").fill("1");
  await page.getByRole("button", { name: "Run" }).click();
  await page.getByText("1 row", { exact: true }).waitFor();
  expect(await page.locator("tbody td").allTextContents()).toEqual(["1", "1"]);
  expect(await page.getByRole("textbox", { name: "SQL" }).inputValue()).toBe(sql);
  await page.getByRole("link", { name: sql }).click();
  expect(await page.getByRole("textbox", { name: "SQL" }).inputValue()).toBe(sql);
  await visitor.inspect("sql-noscript");
  await page.getByRole("button", { name: "Explain" }).click();
  await page.getByText("the query did not run").waitFor();
  await page.goto(`/bases/${base.id}/schema`);
  await page.getByRole("link", { name: /^orders name/ }).click();
  await page.getByRole("heading", { name: "orders" }).waitFor();
  await visitor.inspect("schema-noscript");
});

test.skipIf(noBrowser)("the diagram zooms and moves, and leads to the columns of a table", async () => {
  await using visitor = await visit("schema", { isDark: true });
  const { page } = visitor;
  const svg = page.getByRole("group", { name: "Diagram of the tables and their links" });
  const view = () => svg.getAttribute("viewBox");
  const seen = new Set([await view()]);
  const change = async (what: string, act: () => Promise<unknown>) => {
    await act();
    const now = await view();
    expect([what, seen.has(now)]).toEqual([what, false]);
    seen.add(now);
  };
  await change("zoom", () => page.getByRole("button", { name: "Zoom in" }).click());
  const box = (await page.locator(".er-scroll").boundingBox())!;
  await change("drag", async () => {
    await page.mouse.move(box.x + 30, box.y + 30);
    await page.mouse.down();
    await page.mouse.move(box.x + 90, box.y + 70, { steps: 3 });
    await page.mouse.up();
  });
  await page.locator(".er-scroll").focus();
  await change("key", () => page.keyboard.press("ArrowLeft"));
  await visitor.inspect("schema-dark");
  await page.getByRole("navigation", { name: "Tables" }).getByRole("link", { name: "items" }).click();
  await page.getByRole("heading", { name: "items" }).waitFor();
  expect(await page.getByRole("row", { name: /^price/ }).textContent()).toMatch(/50 %2$/);
  await page.getByRole("link", { name: "SQL", exact: true }).last().click();
  await page.getByText('create table "public"."orders"').waitFor();
  await visitor.inspect("schema-sql");
  visitor.expectNoProblems();
});

test.skipIf(noBrowser)("both fit on a phone", async () => {
  await using visitor = await visit("sql", { isPhone: true });
  await visitor.page.getByRole("button", { name: "Run" }).click();
  await visitor.page.locator("#sql-result").getByText("2 rows").waitFor();
  await visitor.inspect("sql-phone");
  await visitor.page.goto(`/bases/${base.id}/schema`);
  await visitor.inspect("schema-phone");
  visitor.expectNoProblems();
});

// Last: the others use the old name as the current one.
test.skipIf(noBrowser)(
  "the names page lists an old name, until when it works, and what still uses it",
  async () => {
    const query = { name: "Prices", sql: "select price from items" };
    await saveQuery(fleet.ctx, base, query);
    await saveQuery(fleet.ctx, base, { name: "Costs", sql: "select cost from items" });
    fleet.sandbox.control.renameField(base.sourceBaseId, "Items", "Price", "Cost");
    // The next check of the schema would be in a minute.
    await fleet.ctx.db`update bases set schema_check_requested_at = now() where id = ${base.id}`;
    const owner = await fleet.owner(base);
    await until(
      () => owner`create or replace view expensive as select i.price from items as i where i.cost > 1`,
      {
        what: "the column has its new name",
        timeoutMs: 60_000,
        retryErrors: true,
      },
    );
    await using visitor = await visit("names");
    const { page } = visitor;
    const row = page
      .getByRole("table", { name: "Old names that still work" })
      .getByRole("row", { name: "items.price" });
    expect(await row.textContent()).toMatch(/^items\.priceitems\.cost.*2 places$/);
    const uses = page.locator("#old-names li");
    expect(await uses.count()).toBe(2);
    await uses.filter({ hasText: "View" }).getByText("expensive").first().waitFor();
    await visitor.inspect("old-names");
    await uses.getByRole("link", { name: "Prices" }).click();
    await page.getByRole("textbox", { name: "SQL", exact: true }).getByText(query.sql).waitFor();
    visitor.expectNoProblems();
  },
);

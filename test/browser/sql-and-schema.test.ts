/** The SQL editor and the schema page in a real browser, with and without scripts. */
import { readFile } from "node:fs/promises";
import type { Browser, Cookie } from "playwright-core";
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
    await visitor.page.getByLabel("E-mail").fill("fleet@example.org");
    await visitor.page.getByLabel("Password").fill("correct horse");
    await visitor.page.getByRole("button", { name: "Sign in" }).click();
    await visitor.page.getByRole("heading", { level: 1, name: "Bases" }).waitFor();
    cookies = await context.cookies();
  }
  await visitor.page.goto(`/bases/${id}/${path}`);
  return visitor;
}

test.skipIf(noBrowser)(
  "a query is written with completion, run, cancelled, saved and downloaded",
  async () => {
    await using visitor = await visit("sql");
    const { page } = visitor;
    const editor = page.getByRole("textbox", { name: "SQL", exact: true });
    const result = page.locator("#sql-result");
    const write = async (sql: string) => {
      await editor.click();
      await page.keyboard.press("Control+a");
      await page.keyboard.insertText(sql);
    };
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
      if (end === "cancel") await page.getByRole("button", { name: "Cancel" }).click();
      else await page.goto(`/bases/${base.id}`);
      await until(async () => (await sessions()) === 0, {
        what: `the query has ended by ${end}`,
        timeoutMs: 20_000,
      });
      if (end === "cancel") await result.getByText("Cancelled.").waitFor();
    }

    await page.goto(`/bases/${base.id}/sql`);
    await page.getByRole("link", { name: "Newest Items" }).click();
    await page.getByText("Save this query").click();
    await page.getByLabel("Name").fill("Latest");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByText("Query saved.").waitFor();
    expect(await page.getByRole("link", { name: "Latest" }).getAttribute("aria-current")).toBe("true");
    const download = page.waitForEvent("download");
    await page.getByRole("button", { name: "Download CSV" }).click();
    expect(await readFile(await (await download).path(), "utf8")).toMatch(/^name,price,created_time\r\n/);
    await page.getByRole("button", { name: "Delete Latest" }).click();
    await page.getByText("Query deleted.").waitFor();
    visitor.expectNoProblems();

    const script = await page.locator("script[src*=sql-editor]").getAttribute("src");
    const response = await fetch(`${baseUrl}${script}`, { headers: { "accept-encoding": "gzip" } });
    expect(Bun.gzipSync(new Uint8Array(await response.arrayBuffer())).length).toBeLessThan(200_000);
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
    await editor.click();
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
  await page.getByRole("textbox", { name: "SQL" }).fill("select count(*) from items");
  await page.getByRole("button", { name: "Run" }).click();
  await page.getByText("1 row").waitFor();
  expect(await page.getByRole("textbox", { name: "SQL" }).inputValue()).toBe("select count(*) from items");
  await visitor.inspect("sql-noscript");
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

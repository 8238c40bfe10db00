/** The pages of names in SQL and of SQL users in a real browser: both schemes, both widths, with and without scripts. */
import type { Browser, Cookie } from "playwright-core";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { type RunningConsole, startConsole } from "../../apps/console/start";
import type { Base } from "../../core/control/bases";
import { getDatabase, listSqlUsers } from "../../core/control/placement";
import { recordSqlUsersSeen } from "../../core/control/placement/sql-user-rows";
import { sqlUserCredentials } from "../../core/control/placement/sql-users";
import { BROWSER_TEST_MS, newVisitor, noBrowser, openBrowser, type VisitorOptions } from "../support/browser";
import { type Fleet, startFleet } from "../support/fleet";
import { until } from "../support/poll";

vi.setConfig({ testTimeout: BROWSER_TEST_MS });

let fleet: Fleet;
let running: RunningConsole;
let browser: Browser | undefined;
let base: Base;
let cookies: Cookie[] = [];

beforeAll(async () => {
  if (noBrowser) return;
  fleet = await startFleet({ sandbox: { settings: { rateLimitOff: true } } });
  const fields = ["Name", "Unit price"].map((name) => ({ name, type: "singleLineText" }));
  const sourceId = fleet.sandbox.control.createBase({
    name: "Shop",
    tables: [
      { name: "Items", fields, records: [{ fields: { Name: "bolt" } }] },
      { name: "A table with a name that is long on a phone", fields, records: [] },
    ],
  });
  running = await startConsole(fleet.ctx, { port: 0 });
  [browser, base] = await Promise.all([
    openBrowser(),
    fleet.connect(sourceId, { turbo: true }).then(({ id }) => fleet.synced(id)),
  ]);
}, BROWSER_TEST_MS);
afterAll(async () => {
  await browser?.close();
  await running?.stop();
  await fleet?.[Symbol.asyncDispose]();
});

async function visit(options: Omit<VisitorOptions, "baseUrl">) {
  const visitor = await newVisitor(browser!, { baseUrl: `http://localhost:${running.port}`, ...options });
  const { page } = visitor;
  await page.context().addCookies(cookies);
  if (cookies.length > 0) return visitor;
  await page.goto("/sign-in");
  await page.getByLabel("E-mail").fill("fleet@example.org");
  await page.getByLabel("Password").fill("correct horse");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { level: 1, name: "Bases" }).waitFor();
  cookies = await page.context().cookies();
  return visitor;
}

const looks = [
  { name: "script", isTwofold: true },
  { name: "phone-no-script", isPhone: true, hasScript: false },
];

test.skipIf(noBrowser).each(looks)(
  "a SQL user is created, shown, rotated and revoked: $name",
  async ({ name, ...look }) => {
    await using visitor = await visit(look);
    const { page } = visitor;
    const user = `Metabase ${name}`;
    const database = await getDatabase(fleet.ctx.db, base.database.id);
    const known = async () =>
      (await listSqlUsers(fleet.ctx.db, database.id)).find((one) => one.name === user);
    const password = async () => (await sqlUserCredentials(fleet.ctx, database, (await known())!)).password;

    await page.goto(`/bases/${base.id}/connect`);
    await page.getByText("New SQL user", { exact: true }).click();
    await page.getByLabel("Name", { exact: true }).fill(user);
    await page.getByRole("button", { name: "Create SQL user" }).click();
    await page.getByText(`SQL user “${user}” created.`).waitFor();
    await page.getByRole("heading", { name: `Connect as ${user}` }).waitFor();
    const row = page.getByRole("row").filter({ hasText: user });
    await row.getByText("never").waitFor();
    await visitor.inspect(`sql-user-${name}`);

    await recordSqlUsersSeen(fleet.ctx.db, [(await known())!.role]);
    await page.goto(`/bases/${base.id}/connect`);
    expect(await row.getByText("never").count()).toBe(0);
    // The table shows no passwords, which are behind a link of their own.
    const first = await password();
    expect(await page.content()).not.toContain(first);

    await page.getByRole("link", { name: `Rotate the password of ${user}` }).click();
    await page.getByRole("button", { name: "Rotate" }).click();
    await page.getByText("The old password no longer works.").last().waitFor();
    expect(await password()).not.toBe(first);
    expect(await page.content()).not.toContain(await password());
    await page.getByRole("button", { name: "Show password" }).click();
    await page.locator("#connect-password").waitFor();
    expect(await page.content()).toContain(await password());

    await page.goto(`/bases/${base.id}/connect`);
    await page.getByRole("link", { name: `Revoke ${user}` }).click();
    await page.getByRole("button", { name: "Revoke" }).waitFor();
    await visitor.inspect(`sql-user-revoke-${name}`);
    await page.getByRole("button", { name: "Revoke" }).click();
    await page.getByText(`SQL user “${user}” revoked.`).waitFor();
    expect(await known()).toBeUndefined();
    visitor.expectNoProblems();
  },
);

test.skipIf(noBrowser).each(looks)(
  "names are refused with a reason, saved, and in SQL after the next sync: $name",
  async ({ name, ...look }) => {
    await using visitor = await visit(look);
    const { page } = visitor;
    const column = `price_${name.replaceAll("-", "_")}`;
    await page.goto(`/bases/${base.id}/schema`);
    await page.getByRole("link", { name: /^Names/ }).click();
    await page.getByRole("navigation", { name: "Tables" }).getByRole("link", { name: "items" }).click();
    await page.getByRole("heading", { name: "Names of items" }).waitFor();
    await visitor.inspect(`names-${name}`);

    const input = page.getByRole("row").filter({ hasText: "Unit price" }).getByRole("textbox");
    await input.fill("select");
    await page.getByRole("button", { name: "Save names" }).click();
    await page.getByText("Nothing was changed").waitFor();
    await page.getByText(/reserved word/).waitFor();
    expect(await input.inputValue()).toBe("select");
    await visitor.inspect(`names-refused-${name}`);

    await input.fill(column);
    await page.getByRole("button", { name: "Save names" }).click();
    await page.getByText("Saved. The new names are in SQL after the next sync.").waitFor();
    await until(
      async () => {
        await page.reload();
        return page
          .getByRole("row")
          .filter({ hasText: "Unit price" })
          .getByText(column, { exact: true })
          .isVisible();
      },
      { what: "the new name is in SQL", timeoutMs: 60_000, intervalMs: 500 },
    );
    visitor.expectNoProblems();
  },
);

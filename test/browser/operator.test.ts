/** The operator console in a real browser: what is quarantined, on a desktop and on a phone. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type RunningConsole, startConsole } from "../../apps/console/start";
import { createAccount } from "../../core/control/accounts";
import { BROWSER_TEST_MS, newVisitor, noBrowser, openBrowser } from "../support/browser";
import { type Fleet, startFleet } from "../support/fleet";

const PASSWORD = "correct horse";

let fleet: Fleet;
let running: RunningConsole;
let browser: Browser;

beforeAll(async () => {
  if (noBrowser) return;
  fleet = await startFleet({ workers: 0 });
  running = await startConsole(fleet.ctx, { port: 0 });
  browser = await openBrowser();
});
afterAll(async () => {
  await browser?.close();
  await running?.stop();
  await fleet?.[Symbol.asyncDispose]();
});

test.skipIf(noBrowser).each([
  ["desktop", false],
  ["phone", true],
])(
  "the fleet page with quarantined work is readable on a %s",
  { timeout: BROWSER_TEST_MS },
  async (name, isPhone) => {
    const email = `${name}@example.org`;
    await createAccount(fleet.ctx.db, { email, password: PASSWORD, isOperator: true });
    await fleet.ctx.db`
    insert into task_attempts (task, subject, unended, due_at)
    values ('deletion', 'bas_nxhvphn0ypqnqb61kmwf', 3, now()), ('move', 'dbs_k3v9qhm2x7c1p0dz4twy', 4, now())
    on conflict do nothing`;
    await using visitor = await newVisitor(browser, { baseUrl: `http://localhost:${running.port}`, isPhone });
    const { page } = visitor;
    await page.goto("/sign-in");
    await page.getByLabel("E-mail").fill(email);
    await page.getByLabel("Password").fill(PASSWORD);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.goto("/operator");
    await page.getByRole("heading", { name: "Quarantined" }).waitFor();
    const width = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    expect(width[0]).toBeLessThanOrEqual(width[1]!);
    await visitor.inspect(`operator-quarantined-${name}`);
    visitor.expectNoProblems();
  },
);

/** The review of an agent's proposal in a real browser, on a phone: what would change, what is stale, and the decision. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { type RunningConsole, startConsole } from "../../apps/console/start";
import { createAgent } from "../../core/control/agents";
import { type Base, getBase, updateSettings } from "../../core/control/bases";
import { getChangeSet, listChangeItems } from "../../core/control/change-sets";
import { agentClient } from "../support/agent-client";
import { BROWSER_TEST_MS, newVisitor, noBrowser, openBrowser } from "../support/browser";
import { type Fleet, startFleet } from "../support/fleet";

vi.setConfig({ testTimeout: BROWSER_TEST_MS });

const OWNER = { email: "fleet@example.org", password: "correct horse" };
const LONG = "https://example.org/".padEnd(300, "0123456789abcdef");

let fleet: Fleet;
let running: RunningConsole;
let browser: Browser | undefined;
let baseUrl: string;

beforeAll(async () => {
  if (noBrowser) return;
  fleet = await startFleet();
  running = await startConsole(fleet.ctx, { port: 0 });
  baseUrl = `http://localhost:${running.port}`;
  browser = await openBrowser();
});
afterAll(async () => {
  await browser?.close();
  await running?.stop();
  await fleet?.[Symbol.asyncDispose]();
});

/** A base of tasks, and a proposal to close three of them, of which one has changed since. */
async function proposed(): Promise<{ base: Base; id: string }> {
  const { ctx, sandbox } = fleet;
  const status = {
    name: "Status",
    type: "singleSelect",
    options: { choices: [{ name: "Open" }, { name: "Done" }] },
  };
  const fields = [{ name: "Name", type: "singleLineText" }, status, { name: "Link", type: "singleLineText" }];
  const records = ["Write", "Review", "Ship"].map((Name) => ({ fields: { Name, Status: "Open" } }));
  const sourceId = sandbox.control.createBase({ name: "Work", tables: [{ name: "Tasks", fields, records }] });
  const synced = await fleet.synced((await fleet.connect(sourceId)).id);
  await updateSettings(ctx, synced, { changeSets: true });
  const base = await getBase(ctx.db, synced.id);
  const actor = { kind: "user", name: OWNER.email } as const;
  const asked = { name: "Claude", mayPropose: true, bases: [{ baseId: base.id }] };
  const { token } = await createAgent({ ...ctx, actor }, base.accountId, asked);
  await using agent = await agentClient(baseUrl, token);
  const [table] = sandbox.control.dump(sourceId).tables;
  const operations = table!.records.map(({ id }, at) => ({
    operation: "update",
    table: "tasks",
    record: id,
    fields: { status: "Done", ...(at === 2 && { link: LONG }) },
  }));
  const { data } = await agent.call("propose_changes", { operations, note: "Close the tasks of June" });
  const changed = { id: table!.records[1]!.id, fields: { Status: null } };
  sandbox.control.updateRecords(sourceId, table!.id, [changed]);
  return { base, id: data.id };
}

test("a person sees on a phone what would change and what is stale, and approves a part", async ({
  skip,
}) => {
  skip(noBrowser !== undefined, noBrowser);
  const { base, id } = await proposed();
  await using visitor = await newVisitor(browser!, { baseUrl, isPhone: true, isTwofold: true });
  const { page } = visitor;
  await page.goto("/sign-in");
  await page.getByLabel("E-mail").fill(OWNER.email);
  await page.getByLabel("Password").fill(OWNER.password);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { level: 1, name: "Bases" }).waitFor();
  await page.goto(`/bases/${base.id}/changes/${id}`);
  await page.getByText("Close the tasks of June").waitFor();
  expect(await page.getByText("Changed since").count()).toBe(1);
  // In full: a text that is cut could carry data out unseen.
  await page.getByText(LONG).waitFor();
  await visitor.inspect("proposal");

  const boxes = page.getByRole("checkbox", { name: /^Change/ });
  expect(await boxes.count()).toBe(3);
  expect(await page.getByRole("checkbox", { name: /Review/ }).isChecked()).toBe(false);
  await page.getByText("it was Open when this was proposed").waitFor();
  await page.getByRole("checkbox", { name: /Write/ }).uncheck();
  await page.getByRole("checkbox", { name: /Ship/ }).uncheck();
  await page.getByRole("button", { name: "Approve checked" }).click();
  await page.getByText("Check at least one operation").waitFor();
  await page.getByRole("checkbox", { name: /Write/ }).check();
  await page.getByRole("checkbox", { name: /Ship/ }).uncheck();
  await page.getByRole("button", { name: "Approve checked" }).click();
  await page.getByText("Approved. The changes are being made.").waitFor();
  const items = await listChangeItems(fleet.ctx, id, { from: 0, limit: 10 });
  expect(items.map(({ state }) => state)).toEqual(["waiting", "not_applied", "not_applied"]);
  expect(await getChangeSet(fleet.ctx.db, base.id, id)).toMatchObject({
    state: "approved",
    decidedBy: OWNER.email,
  });
  visitor.expectNoProblems();
});

/** The page of agents in a real browser, on a phone: an owner creates one, connects it, limits it, and revokes it. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { type RunningConsole, startConsole } from "../../apps/console/start";
import { getBase, updateSettings } from "../../core/control/bases";
import { agentClient } from "../support/agent-client";
import { BROWSER_TEST_MS, newVisitor, noBrowser, openBrowser } from "../support/browser";
import { type Fleet, startFleet } from "../support/fleet";

vi.setConfig({ testTimeout: BROWSER_TEST_MS });

const OWNER = { email: "fleet@example.org", password: "correct horse" };

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

test("an owner creates an agent, connects it, limits it, lets a rule approve, and revokes it", async ({
  skip,
}) => {
  skip(noBrowser !== undefined, noBrowser);
  const status = {
    name: "Status",
    type: "singleSelect",
    options: { choices: [{ name: "Open" }, { name: "Done" }] },
  };
  const fields = [{ name: "Name", type: "singleLineText" }, status, { name: "Contact", type: "email" }];
  const records = [{ fields: { Name: "Write", Status: "Open", Contact: "ada@example.org" } }];
  const { control } = fleet.sandbox;
  const sourceId = control.createBase({ name: "Work", tables: [{ name: "Tasks", fields, records }] });
  const base = await fleet.synced((await fleet.connect(sourceId)).id);
  await using visitor = await newVisitor(browser!, { baseUrl, isPhone: true, isTwofold: true });
  const { page } = visitor;
  await page.goto("/sign-in");
  await page.getByLabel("E-mail").fill(OWNER.email);
  await page.getByLabel("Password").fill(OWNER.password);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { level: 1, name: "Bases" }).waitFor();

  await page.goto("/account/agents");
  await page.getByText("No agents yet").waitFor();
  await visitor.inspect("agents, none");
  await page.getByText("New agent", { exact: true }).click();
  await page.getByLabel("Name").fill("Claude");
  await page.getByRole("button", { name: "Create agent" }).click();
  await page.getByText("Choose at least one base.").waitFor();
  await page.getByRole("switch", { name: "Work" }).check();
  await page.getByRole("switch", { name: "May propose changes" }).check();
  await page.getByRole("button", { name: "Create agent" }).click();
  await page.getByText("Copy the token now").waitFor();
  const token = await page.locator("#agent-token").textContent();
  await visitor.inspect("agent, new");
  await page.getByText("It can propose nothing here").waitFor();
  await updateSettings(fleet.ctx, base, { changeSets: true });

  await using agent = await agentClient(baseUrl, token!);
  expect((await agent.call("query", { sql: "select name from tasks" })).isError).toBe(false);
  expect((await agent.call("query", { sql: "select contact from tasks" })).isError).toBe(true);
  await page.reload();
  expect(await page.getByText("Copy the token now").count()).toBe(0);
  await page.getByText("query_failed").waitFor();

  await page.getByText("Change access to Work").click();
  await page.getByLabel("Hidden fields").fill("tasks.nothing");
  await page.getByRole("button", { name: "Save" }).first().click();
  await page.getByText("There is no field tasks.nothing").waitFor();
  await page.getByLabel("Hidden fields").fill("");
  await page.getByLabel("Personal data and files").first().check();
  await page.getByRole("button", { name: "Save" }).first().click();
  await page.getByText("It holds from the next call on").waitFor();
  expect((await agent.call("query", { sql: "select contact from tasks" })).isError).toBe(false);

  await page.getByText("New rule", { exact: true }).click();
  await page.getByLabel("Table", { exact: true }).fill("tasks");
  await page.getByLabel("Fields", { exact: true }).fill("status");
  await page.getByLabel("Records an hour").fill("20");
  await page.getByRole("button", { name: "Allow" }).click();
  await page.getByRole("button", { name: "Remove the rule of tasks" }).waitFor();
  await visitor.inspect("agent");
  const [record] = control.dump(sourceId).tables[0]!.records;
  const operations = [
    { operation: "update", table: "tasks", record: record!.id, fields: { status: "Done" } },
  ];
  const { data } = await agent.call("propose_changes", { operations, note: "Close it" });
  expect(data.state).toBe("approved");
  await page.getByRole("button", { name: "Remove the rule of tasks" }).click();
  await page.getByText("No rules: a member approves every change.").waitFor();
  const later = await agent.call("propose_changes", { operations, note: "Close it again" });
  expect(later.data.state).toBe("proposed");
  await page.goto("/account/proposals");
  await page.getByRole("link", { name: "Close it again" }).waitFor();
  await visitor.inspect("proposals");

  await page.goto("/account/agents");
  await page.getByRole("link", { name: "Claude" }).click();
  await page.getByRole("link", { name: "Revoke agent…" }).click();
  await page.getByRole("button", { name: "Revoke agent" }).click();
  await page.getByText("Agent revoked.").waitFor();
  await expect(agent.call("list_bases")).rejects.toThrow();
  expect((await getBase(fleet.ctx.db, base.id)).state).toBe("active");
  visitor.expectNoProblems();
});

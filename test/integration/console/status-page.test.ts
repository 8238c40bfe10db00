/** SP1: an account's status page is public by its link, until it is turned off or replaced; and the list of bases. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { consoleApp } from "../../../apps/console/app";
import type { Account } from "../../../core/control/accounts";
import { type Base, createBase, recordRun } from "../../../core/control/bases";
import { asker, authByHeader } from "../../support/console";
import { GOOD_KEY, type TestControl, testControl } from "../../support/control-support";
import { countCalls } from "../../support/count-calls";

let control: TestControl;
let ask: ReturnType<typeof asker>;
let owner: Account;
let base: Base;
let other: Base;

beforeAll(async () => {
  control = await testControl();
  ask = asker(consoleApp(control.ctx, authByHeader()));
  owner = await control.addAccount("status@example.com");
  const made = { platform: "airtable", apiKey: GOOD_KEY };
  base = await createBase(control.ctx, owner.id, { ...made, sourceBaseId: "appOne" });
  other = await createBase(control.ctx, owner.id, { ...made, sourceBaseId: "appTwo" });
  const run = {
    kind: "sweep",
    seen: 3,
    inserted: 0,
    updated: 0,
    deleted: 0,
    requests: 2,
    waitMs: 0,
  } as const;
  const times = { startedAt: new Date(Date.now() - 400), completedAt: new Date() };
  const tables = [{ name: "secret_table", source_name: "Secret table", source_id: "tblOne", records: 7 }];
  for (const { id } of [base, other]) await recordRun(control.ctx.db, id, { ...run, ...times, tables });
  const error = { code: "source_key_refused", message: "RAW ANSWER" } as const;
  await recordRun(control.ctx.db, other.id, { ...run, ...times, completedAt: null, error });
  await control.ctx.db`update bases set created_at = now() - interval '10 days' where id = ${other.id}`;
  await control.ctx.db`
    insert into base_periods (base_id, kind, label, began_at, ended_at)
    values (${other.id}, 'outage', 'Key rejected', now() - interval '3 days', now() - interval '2 days 23 hours')`;
});
afterAll(() => control?.[Symbol.asyncDispose]());

const change = (value: string, from?: "cross-site") =>
  ask("/account/status", { account: owner, form: { change: value }, ...(from ? { from } : {}) });
const link = async () => {
  const { text } = await ask("/account/status", { account: owner });
  return /\/status\/[\w-]{43}/.exec(text)?.[0];
};

test("the page is off until it is turned on, shows freshness and nothing else, and a new link ends the old one", async () => {
  expect(await link()).toBeUndefined();
  expect((await change("on", "cross-site")).status).toBe(403);
  expect((await change("on")).status).toBe(303);
  const first = (await link())!;
  const page = await ask(first);
  expect(page.status).toBe(200);
  expect(page.headers.get("referrer-policy")).toBe("no-referrer");
  for (const shown of ["Inventory", "In sync", "Key rejected", "Data as of", "99.58 % without an outage"]) {
    expect(page.text).toContain(shown);
  }
  for (const hidden of [
    base.id,
    other.id,
    base.sourceBaseId,
    base.database.name,
    "ecret",
    "RAW ANSWER",
    "status@example.com",
    "API key",
  ])
    expect(page.text).not.toContain(hidden);
  await change("renew");
  const second = (await link())!;
  expect(second).not.toBe(first);
  expect([(await ask(first)).status, (await ask(second)).status]).toEqual([404, 200]);
  await change("off");
  expect((await ask(second)).status).toBe(404);
  for (const made of ["x", `${"a".repeat(32)}`, "%00", "null"]) {
    expect((await ask(`/status/${made}`)).status).toBe(404);
  }
});

test("the list is filtered by state, sorted, and counts the calls of the day", async () => {
  await countCalls(control.ctx.db, "airtable:appTwo", { sync: 41, client: 1 });
  const ids = async (search: string) => {
    const { text } = await ask(`/bases${search}`, { account: owner });
    return [...text.matchAll(/<tr id="(bas_\w+)"/g)].map(([, id]) => id);
  };
  expect(await ids("")).toEqual([base.id, other.id]);
  expect(await ids("?sort=state")).toEqual([other.id, base.id]);
  expect(await ids("?sort=calls")).toEqual([other.id, base.id]);
  expect(await ids("?state=problem")).toEqual([other.id]);
  expect(await ids("?state=current")).toEqual([base.id]);
  expect(await ids("?state=waiting")).toEqual([]);
  expect(await ids("?state=__proto__&sort=constructor")).toEqual([base.id, other.id]);
  const { text } = await ask("/bases?state=problem", { account: owner });
  expect(text).toContain('data-label="Calls today">42<');
  expect(text).toContain('hx-get="/bases?state=problem"');
});

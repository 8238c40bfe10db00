/** A row in the table of settings and a column are all that a new setting needs: one of each type, end to end. */
import { expect, test, vi } from "vitest";
import { consoleApp } from "../../../apps/console/app";
import { listChanges } from "../../../core/control/audit";
import { getBase, interruptedBy, syncFacts, updateSettings } from "../../../core/control/bases";
import type { BaseSettings } from "../../../core/control/bases/settings";
import { asker, authByHeader } from "../../support/console";
import { caller, GOOD_KEY, testControl } from "../../support/control-support";
import { settingsMarkdown } from "../../support/readme-tables";

vi.mock("../../../core/control/bases/settings", async (importOriginal) => {
  const original = await importOriginal<typeof import("../../../core/control/bases/settings")>();
  const texts = { section: "speed", effect: "Made for a test.", interrupts: "updates" } as const;
  return {
    ...original,
    settings: {
      ...original.settings,
      new_flag: { ...texts, type: "boolean", default: true, label: "A new flag", hint: "For `tests`." },
      new_number: {
        ...texts,
        type: "integer",
        default: 5,
        minimum: 2,
        maximum: 9,
        unit: "apples",
        label: "A new number",
        hint: "Of apples.",
      },
    },
  };
});

test("a row in the table and a column add a setting: to rows, API, reference, pages, audit log and docs", async () => {
  await using control = await testControl();
  const { db } = control.ctx;
  await db`alter table bases add column new_flag boolean not null default true, add column new_number integer not null default 5`;
  const app = consoleApp(control.ctx, authByHeader());
  const [call, ask] = [caller(app), asker(app)];
  const account = await control.addAccount("owner@example.com");
  const { token } = account;
  const settingsOf = async (id: string) => {
    const { settings } = await getBase(db, id);
    const { newFlag, newNumber } = settings as BaseSettings & { newFlag: boolean; newNumber: number };
    return [newFlag, newNumber];
  };

  const body = { platform: "airtable", api_key: GOOD_KEY, base_id: "appOne", settings: { new_number: 3 } };
  const created = await call("POST", "/api/v1/bases", { token, body });
  expect([created.status, created.body.settings]).toMatchObject([201, { new_flag: true, new_number: 3 }]);
  const { id } = created.body;
  expect(await settingsOf(id)).toEqual([true, 3]);

  const patch = (changes: object) => call("PATCH", `/api/v1/bases/${id}`, { token, body: changes });
  expect((await patch({ new_flag: false })).body.settings).toMatchObject({ new_flag: false, new_number: 3 });
  expect((await patch({ new_number: 10 })).status).toBe(422);
  const openApi = await call("GET", "/openapi");
  expect(JSON.stringify(openApi.body)).toContain("Made for a test. Default: true.");

  const page = await ask(`/bases/${id}/settings`, { account });
  expect(page.text).toMatch(/A new flag.*For <code>tests<\/code>\./s);
  expect(page.text).toMatch(/A new number.*value="3"/s);
  const form = (name: string, value: string) =>
    ask(`/bases/${id}/settings/${name}`, { account, form: { value } });
  expect((await form("new_flag", "on")).status).toBe(303);
  expect((await form("new_number", "8")).status).toBe(303);
  expect((await form("new_number", "1")).text).toContain("Enter a whole number of apples from 2 to 9");
  expect(await settingsOf(id)).toEqual([true, 8]);

  const [facts] = await syncFacts(db, [id]);
  expect(facts!.settings).toMatchObject({ newFlag: true, newNumber: 8 });
  const before = await getBase(db, id);
  const after = await updateSettings(control.ctx, before, { newFlag: false } as Partial<BaseSettings>);
  expect(interruptedBy(before.settings, after.settings)).toBe("updates");
  const [change] = await listChanges(db, { accountId: account.id, limit: 1 });
  expect(change!.details).toEqual({ new_flag: false });
  expect(settingsMarkdown()).toContain("| `new_number` | 5 | Made for a test. A running sync starts over");
}, 120_000);

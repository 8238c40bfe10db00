/** Problems of a base in the control plane, by the server's clock. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Base, createBase, getBase, recordProblems, saveProgress } from "../../../core/control/bases";
import { listBaseSummaries } from "../../../core/control/status";
import { GOOD_KEY, type TestControl, testControl } from "../../support/control-support";

let control: TestControl;
let base: Base;
beforeAll(async () => {
  control = await testControl();
  const { id } = await control.addAccount("problems@example.com");
  base = await createBase(control.ctx, id, {
    platform: "airtable",
    apiKey: GOOD_KEY,
    sourceBaseId: "appOne",
  });
});
afterAll(() => control?.[Symbol.asyncDispose]());

test("a base and its summary have the problems that were recorded last, with their times", async () => {
  const { db } = control.ctx;
  const one = {
    kind: "settings" as const,
    tableId: null,
    name: "",
    message: "gone\u0000",
    agoMs: 60_000,
    nextInMs: 5000,
  };
  await recordProblems(db, base.id, [one]);
  const problem = { kind: "settings", tableId: null, name: "", message: expect.stringMatching(/^gone/) };
  const found = await getBase(db, base.id);
  expect(found.problems).toMatchObject([problem]);
  const [{ since, nextAt }] = found.problems as [Base["problems"][number]];
  expect(nextAt!.getTime() - since.getTime()).toBe(65_000);
  const [summary] = await listBaseSummaries(db, base.accountId);
  expect(summary!.problems).toEqual(found.problems);
  await recordProblems(db, base.id, []);
  expect((await getBase(db, base.id)).problems).toEqual([]);
});

test("progress counts from when it last got further", async () => {
  const { db } = control.ctx;
  const progress = { kind: "first" as const, started_at: new Date().toISOString(), tables: [] };
  await saveProgress(db, base.id, progress);
  const first = (await getBase(db, base.id)).progressAt!;
  await saveProgress(db, base.id, progress, false);
  expect((await getBase(db, base.id)).progressAt).toEqual(first);
  await saveProgress(db, base.id, progress, true);
  expect((await getBase(db, base.id)).progressAt!.getTime()).toBeGreaterThan(first.getTime());
});

/** A repair that crashes the proxies which try it crashes three of them, and then few. */
import { Registry } from "prom-client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { quarantine } from "../../../core/control/jobs";
import { writeMetrics } from "../../../core/proxy/metrics";
import { Repairs } from "../../../core/proxy/repairs";
import { type TestControl, testControl } from "../../support/control-support";
import { addPlainBases } from "../../support/plain-bases";

let control: TestControl;
let repairs: Repairs;

beforeAll(async () => {
  control = await testControl();
  repairs = new Repairs(control.ctx, writeMetrics(control.ctx.metrics));
});
afterAll(async () => {
  const { db } = control.ctx;
  await db`delete from bases`;
  await db`delete from databases`;
  await control[Symbol.asyncDispose]();
});

test("after three unfinished claims, the repairs of a base are delayed longer each time, and reported", async () => {
  const { db } = control.ctx;
  const [id = "", other = ""] = await addPlainBases(control, 2);
  const claimed = async () => (await repairs.claim(false))?.base.id;
  const restSeconds = async () => {
    const [row] = await db<{ s: number }[]>`
      select max(extract(epoch from due_at - now()))::float8 as s from repairs where base_id = ${id}`;
    return Math.round(row!.s / 10) * 10;
  };
  await repairs.record({ base: { id }, tableRef: "Tasks", ids: ["rec1"] });
  const rests = [];
  for (let deaths = 0; deaths < 9; deaths++) {
    await db`update repairs set due_at = now()`;
    expect(await claimed()).toBe(id);
    rests.push(await restSeconds());
  }
  expect(rests).toEqual([60, 60, 120, 240, 480, 960, 1920, 3600, 3600]);
  expect((await quarantine(db)).repairs).toEqual([{ baseId: id, records: 1 }]);

  // New writes do not bring it forward; other bases continue.
  await repairs.record({ base: { id }, tableRef: "Tasks", ids: ["rec1", "rec2"] });
  expect(await claimed()).toBeUndefined();
  await repairs.record({ base: { id: other }, tableRef: "Tasks", ids: ["rec1"] });
  expect(await claimed()).toBe(other);

  // One that ends, successfully or not, starts over.
  await db`update repairs set due_at = now() where base_id = ${id}`;
  const claim = (await repairs.claim(false))!;
  await repairs.reschedule(claim);
  expect((await quarantine(db)).repairs).toEqual([]);
});

test("a claim that ends while the control plane is unreachable does not count as unfinished", async () => {
  const { ctx } = control;
  const { db } = ctx;
  let isAway = false;
  const cut = (...query: Parameters<typeof db>) =>
    isAway
      ? Promise.reject(Object.assign(new Error("connection refused"), { code: "ECONNREFUSED" }))
      : db(...query);
  const own = new Repairs({ ...ctx, db: Object.assign(cut, db) as typeof db }, writeMetrics(new Registry()));
  const [id = ""] = await addPlainBases(control, 1);
  await own.record({ base: { id }, tableRef: "Tasks", ids: ["rec1"] });
  for (let outages = 0; outages < 5; outages++) {
    await db`update repairs set due_at = now() where base_id = ${id}`;
    await db`update repairs set due_at = now() + interval '1 hour' where base_id <> ${id}`;
    const claim = (await own.claim(false))!;
    isAway = true;
    await own.reschedule(claim);
    await expect(own.flush()).rejects.toThrow("refused");
    isAway = false;
    await own.flush();
  }
  const rows =
    await db`select unsettled, due_at < now() + interval '30 s' as is_soon from repairs where base_id = ${id}`;
  expect(rows).toEqual([{ unsettled: 0, is_soon: true }]);
});

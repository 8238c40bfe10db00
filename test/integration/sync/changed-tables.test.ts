/** When the records of each table last changed, as the overview shows it: by syncs, clients of the proxy, and the feed. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Base, tableChanges } from "../../../core/control/bases";
import { connectLive, readOut, startLiveFleet } from "../../support/live-fleet";
import { until } from "../../support/poll";
import { type ProxyStack, proxyStack } from "../../support/proxy-stack";

const name = { name: "Name", type: "singleLineText" };
const tables = () => [
  { name: "Tasks", fields: [name], records: [{ fields: { Name: "a" } }, { fields: { Name: "b" } }] },
  { name: "Notes", fields: [name], records: [{ fields: { Name: "n" } }] },
];

let stack: ProxyStack;

beforeAll(async () => {
  stack = await proxyStack();
});
afterAll(() => stack?.[Symbol.asyncDispose]());

test("a table's last change is that of its records, and not the first sync or another table's", async () => {
  const { control } = stack.sandbox;
  const sourceBaseId = control.createBase({ name: "Changed", tables: tables() });
  const [tasks, notes] = control.dump(sourceBaseId).tables;
  const { base, sync } = await stack.connect(sourceBaseId);
  const changed = async () => [...(await tableChanges(stack.ctx.db, base.id)).keys()];
  const clear = () => stack.ctx.db`update source_tables set changed_at = null where base_id = ${base.id}`;
  await sync();
  expect(await changed()).toEqual([]);
  await sync();
  expect(await changed()).toEqual([]);

  control.updateRecords(sourceBaseId, "Tasks", [{ id: tasks!.records[0]!.id, fields: { Name: "changed" } }]);
  await sync();
  expect(await changed()).toEqual([tasks!.id]);
  await clear();
  control.deleteRecords(sourceBaseId, "Notes", [notes!.records[0]!.id]);
  await sync();
  expect(await changed()).toEqual([notes!.id]);
  await clear();

  // The row is as Airtable has it before the sync sees the record.
  const written = await fetch(`${stack.endpoint}/v0/${sourceBaseId}/Tasks/${tasks!.records[1]!.id}`, {
    method: "PATCH",
    headers: { authorization: `Bearer ${stack.sandbox.key}`, "content-type": "application/json" },
    body: JSON.stringify({ fields: { Name: "through the proxy" } }),
  });
  expect(written.status).toBe(200);
  await sync();
  expect(await changed()).toEqual([tasks!.id]);
});

test("in live mode, a table's last change is shown with the batch that the feed reports it in", async () => {
  await using fleet = await startLiveFleet();
  const { control } = fleet.sandbox;
  const base: Base = await connectLive(fleet, control.createBase({ name: "Live", tables: tables() }));
  const [tasks, notes] = control.dump(base.sourceBaseId).tables;
  const changedAt = async (id: string) => (await tableChanges(fleet.ctx.db, base.id)).get(id);
  expect(await changedAt(tasks!.id)).toBeUndefined();
  control.createRecords(base.sourceBaseId, "Tasks", [{ fields: { Name: "new" } }]);
  await readOut(fleet, base);
  const first = await until(() => changedAt(tasks!.id), { what: "the change of a table is recorded" });
  expect(await changedAt(notes!.id)).toBeUndefined();
  control.deleteRecords(base.sourceBaseId, "Notes", [notes!.records[0]!.id]);
  await readOut(fleet, base);
  const second = await until(() => changedAt(notes!.id), { what: "the deletion is recorded" });
  expect(second.getTime()).toBeGreaterThanOrEqual(first.getTime());
  expect(await changedAt(tasks!.id)).toEqual(first);
}, 120_000);

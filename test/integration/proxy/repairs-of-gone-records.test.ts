/** Repairs that include a deleted record, or one that the source fails to return. */
import { expect, test, vi } from "vitest";
import { until } from "../../support/poll";
import { type ProxyStack, proxyStack } from "../../support/proxy-stack";

vi.setConfig({ testTimeout: 60_000 });

const FIELDS = [{ name: "Name", type: "singleLineText" }];

/** A synced base with this many tasks. */
async function tasksOf(stack: ProxyStack, count: number) {
  const { control } = stack.sandbox;
  const records = Array.from({ length: count }, (_, index) => ({ fields: { Name: `Task ${index}` } }));
  const baseId = control.createBase({ name: "B", tables: [{ name: "Tasks", fields: FIELDS, records }] });
  const replicated = await stack.connect(baseId);
  await replicated.sync();
  const ids = control.dump(baseId).tables[0]!.records.map(({ id }) => id);
  return { ...replicated, baseId, ids };
}

/** As after an outage of the replica: written, and recorded. */
async function recordAll(stack: ProxyStack, { base, ids }: Awaited<ReturnType<typeof tasksOf>>) {
  await stack.ctx.db`
    insert into repairs (base_id, table_ref, record_id) select ${base.id}, 'Tasks', unnest(${ids}::text[])`;
}

const left = (stack: ProxyStack) =>
  stack.ctx.db<{ id: string }[]>`select record_id as id from repairs order by 1`.then((rows) =>
    rows.map(({ id }) => id),
  );

test.for([false, true])(
  "repairs are completed although one of the records was deleted, which the source reports with a 403: %s",
  async (isForbidden) => {
    await using stack = await proxyStack();
    const tasks = await tasksOf(stack, 150);
    const { control } = stack.sandbox;
    const [gone = "", ...others] = tasks.ids;
    control.deleteRecords(tasks.baseId, "Tasks", [gone]);
    const changed = others.map((id) => ({ id, fields: { Name: "changed" } }));
    control.updateRecords(tasks.baseId, "Tasks", changed);
    const path = `/${gone}(\\?|$)`;
    if (isForbidden) control.addFault({ kind: "forbidden", base: tasks.baseId, method: "GET", path });
    await recordAll(stack, tasks);
    await until(async () => (await left(stack)).length === 0, {
      what: "all are repaired",
      timeoutMs: 20_000,
    });
    const rows = await tasks.rows("tasks");
    expect(rows.map(({ id }) => id)).toEqual(others.toSorted());
    expect(new Set(rows.map(({ name }) => name))).toEqual(new Set(["changed"]));
  },
);

test("one record that the source fails to return delays itself, and none of the records that were claimed with it", async () => {
  await using stack = await proxyStack();
  const tasks = await tasksOf(stack, 100);
  const { control } = stack.sandbox;
  const [poison = "", ...others] = tasks.ids;
  control.deleteRecords(tasks.baseId, "Tasks", [poison]);
  control.updateRecords(
    tasks.baseId,
    "Tasks",
    others.map((id) => ({ id, fields: { Name: "changed" } })),
  );
  const path = `/${poison}(\\?|$)`;
  const { id } = control.addFault({ kind: "html_200", base: tasks.baseId, method: "GET", path });
  await recordAll(stack, tasks);
  await until(async () => (await left(stack)).length === 1, {
    what: "the others are repaired",
    timeoutMs: 20_000,
  });
  expect(await left(stack)).toEqual([poison]);
  const names = (await tasks.rows("tasks")).filter((row) => row.id !== poison).map(({ name }) => name);
  expect(new Set(names)).toEqual(new Set(["changed"]));
  // No wait is endless: the next attempt repairs it.
  control.clearFaults(id);
  await stack.ctx.db`update repairs set due_at = now()`;
  await until(async () => (await left(stack)).length === 0, {
    what: "the last is repaired",
    timeoutMs: 20_000,
  });
  expect((await tasks.rows("tasks")).map((row) => row.id)).toEqual(others.toSorted());
});

test("a repair that takes long delays none of another base", async () => {
  await using stack = await proxyStack();
  const [slow, other] = [await tasksOf(stack, 1), await tasksOf(stack, 1)];
  const { control } = stack.sandbox;
  const { id } = control.addFault({ kind: "hang", base: slow.baseId, delayMs: 20_000 });
  await recordAll(stack, slow);
  await until(() => control.log(slow.baseId).some(({ fault }) => fault === "hang"), { what: "it waits" });
  await recordAll(stack, other);
  await until(async () => (await left(stack)).every((one) => slow.ids.includes(one)), {
    what: "the other is repaired",
    timeoutMs: 8000,
  });
  expect(await left(stack)).toEqual(slow.ids);
  control.clearFaults(id);
});

test("a client's deletion that overlaps an update is in SQL, where the source answers 403 for deleted records", async () => {
  await using stack = await proxyStack();
  const tasks = await tasksOf(stack, 1);
  const { control } = stack.sandbox;
  const [id = ""] = tasks.ids;
  const send = (method: string, body?: unknown) =>
    fetch(`${stack.endpoint}/v0/${tasks.baseId}/Tasks/${id}`, {
      method,
      headers: { authorization: `Bearer ${stack.sandbox.key}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  control.addFault({ kind: "forbidden", base: tasks.baseId, method: "GET", path: `/${id}(\\?|$)` });
  // The deletion is answered first, and the update's answer is shown while it is in transit.
  control.addFault({ kind: "slow_body", base: tasks.baseId, method: "DELETE", delayMs: 60, count: 1 });
  const deletion = send("DELETE");
  await until(() => control.dump(tasks.baseId).tables[0]!.records.length === 0, { what: "it is deleted" });
  await stack.withOwner(tasks, async (sql) => {
    // Any image that was applied since the deletion's read version.
    await sql`
      update public_swap._recent_writes set applied_version = nextval('public_swap._versions') where record_id = ${id}`;
    await sql`
      insert into public_swap._recent_writes (table_id, record_id, applied_version, gone)
      select table_id, ${id}, nextval('public_swap._versions'), false from public_swap._tables
      on conflict do nothing`;
  });
  expect((await deletion).status).toBe(200);
  await until(async () => (await tasks.rows("tasks")).length === 0, {
    what: "the row is gone",
    timeoutMs: 15_000,
  });
  await until(async () => (await left(stack)).length === 0, { what: "nothing is left to repair" });
});

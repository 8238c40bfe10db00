/** I7: what the proxy does while a part of what it needs is away, and when it stops. */
import { expect, onTestFinished, test } from "vitest";
import { countRepairs } from "../../core/writes";
import { asAdmin } from "../support/admin";
import { until } from "../support/poll";
import { metricOf, type ProxyStack, proxyStack } from "../support/proxy-stack";

async function startStack(): Promise<ProxyStack> {
  const stack = await proxyStack({ UPSTREAM_TIMEOUT_MS: "5000" });
  onTestFinished(() => stack[Symbol.asyncDispose]());
  return stack;
}

/** A synced base with one record. */
async function synced(stack: ProxyStack) {
  const { control, key } = stack.sandbox;
  const baseId = control.createBase({
    name: "Notes",
    tables: [
      {
        name: "Notes",
        fields: [{ name: "Text", type: "singleLineText" }],
        records: [{ fields: { Text: "old" } }],
      },
    ],
  });
  const [id] = control.dump(baseId).tables[0]!.records.map((record) => record.id);
  const replicated = await stack.connect(baseId);
  await replicated.sync();
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  return {
    ...replicated,
    baseId,
    write: (Text: string, endpoint = stack.endpoint) =>
      fetch(`${endpoint}/v0/${baseId}/Notes/${id}`, {
        method: "PATCH",
        headers,
        body: JSON.stringify({ fields: { Text } }),
      }),
    read: () => fetch(`${stack.endpoint}/v0/${baseId}/Notes`, { headers }),
    texts: async () => (await replicated.rows("notes")).map((row) => row.text),
  };
}

/** Nobody gets into the database until the answer is called. */
async function shut(url: string): Promise<() => Promise<void>> {
  const database = new URL(url).pathname.slice(1);
  const allow = (isAllowed: boolean) =>
    asAdmin(async (admin) => {
      await admin.unsafe(`alter database ${database} allow_connections ${isAllowed}`);
      if (!isAllowed)
        await admin`select pg_terminate_backend(pid) from pg_stat_activity where datname = ${database}`;
    });
  await allow(false);
  return () => allow(true);
}

test("I7: without the control plane reads and writes go on, and writes to bases not known are shown when it is back", async () => {
  const stack = await startStack();
  const [known, unknown] = [await synced(stack), await synced(stack)];
  expect((await known.write("before")).status).toBe(200);
  stack.controlLine.cut();
  expect((await known.read()).status).toBe(200);
  expect((await known.write("meanwhile")).status).toBe(200);
  expect(await known.texts()).toEqual(["meanwhile"]);
  expect((await unknown.write("meanwhile")).status).toBe(200);
  expect(await unknown.texts()).toEqual(["old"]);
  stack.controlLine.mend();
  await until(async () => (await unknown.texts())[0] === "meanwhile", {
    what: "repaired",
    timeoutMs: 20_000,
  });
  await until(async () => (await metricOf(stack, "basetide_repairs_pending")) === 0, {
    what: "nothing is pending",
  });
});

test("I7: what one proxy noted for repair, another mends", async () => {
  const stack = await startStack();
  const at = await synced(stack);
  const another = await stack.startAnother();
  const open = await shut(at.ownerUrl);
  expect((await at.write("noted", another.endpoint)).status).toBe(200);
  expect(await countRepairs(stack.ctx.db, at.base.id)).toBe(1);
  await another[Symbol.asyncDispose]();
  await open();
  await until(async () => (await countRepairs(stack.ctx.db, at.base.id)) === 0, {
    what: "repaired",
    timeoutMs: 20_000,
  });
  expect(await at.texts()).toEqual(["noted"]);
});

test("a repair that is noted again while it is mended is mended again", async () => {
  const stack = await startStack();
  const at = await synced(stack);
  stack.sandbox.control.addFault({
    kind: "hang",
    method: "POST",
    path: "listRecords",
    delayMs: 600,
    count: 1,
  });
  const note = () => stack.ctx.db`
    insert into repairs (base_id, table_ref, record_id)
    select ${at.base.id}, 'Notes', id from unnest(${["recNobodyHasThis0"]}::text[]) as id
    on conflict (base_id, table_ref, record_id) do update set noted_at = clock_timestamp(), due_at = now()`;
  await note();
  const reads = () =>
    stack.sandbox.control.log(at.baseId).filter(({ path }) => path.includes("listRecords")).length;
  await until(() => reads() === 1, { what: "it is being mended" });
  await note();
  await until(async () => (await countRepairs(stack.ctx.db, at.base.id)) === 0, { what: "mended twice" });
  expect(reads()).toBe(2);
});

test("a proxy that is stopped finishes the writes under way, also those whose clients have gone", async () => {
  const stack = await startStack();
  const at = await synced(stack);
  const another = await stack.startAnother();
  stack.sandbox.control.addFault({ kind: "hang", method: "PATCH", delayMs: 500, count: 1 });
  const leave = new AbortController();
  const write = fetch(`${another.endpoint}/v0/${at.baseId}/Notes/${(await at.rows("notes"))[0]!.id}`, {
    method: "PATCH",
    headers: { authorization: `Bearer ${stack.sandbox.key}`, "content-type": "application/json" },
    body: '{"fields":{"Text":"late"}}',
    signal: leave.signal,
  }).catch(() => "gone");
  await until(() => stack.sandbox.control.log(at.baseId).some(({ method }) => method === "PATCH"), {
    what: "the write is at the source",
  });
  leave.abort();
  expect(await write).toBe("gone");
  await another[Symbol.asyncDispose]();
  expect(await at.texts()).toEqual(["late"]);
});

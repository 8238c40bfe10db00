/** I7: the proxy while one of its dependencies is unavailable, and when it stops. */
import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { writeMetrics } from "../../../core/proxy/metrics";
import { Repairs } from "../../../core/proxy/repairs";
import { shutDatabase } from "../../support/admin";
import { countRepairs } from "../../support/count-repairs";
import { until } from "../../support/poll";
import { metricOf, type ProxyStack, proxyStack } from "../../support/proxy-stack";

const startStack = (timeoutMs = 5000): Promise<ProxyStack> =>
  proxyStack({ UPSTREAM_TIMEOUT_MS: String(timeoutMs) });

/** A base with one record. */
function recordOf({ sandbox: { control } }: ProxyStack): { baseId: string; id: string } {
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
  return { baseId, id: control.dump(baseId).tables[0]!.records[0]!.id };
}

/** A synced base with one record. */
async function synced(stack: ProxyStack) {
  const { key } = stack.sandbox;
  const { baseId, id } = recordOf(stack);
  const replicated = await stack.connect(baseId);
  await replicated.sync();
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  return {
    ...replicated,
    baseId,
    id,
    write: (Text: string, more: object = {}, endpoint = stack.endpoint) =>
      fetch(`${endpoint}/v0/${baseId}/Notes/${id}`, {
        method: "PATCH",
        headers,
        body: JSON.stringify({ fields: { Text, ...more } }),
      }),
    read: () => fetch(`${stack.endpoint}/v0/${baseId}/Notes`, { headers }),
    texts: async () => (await replicated.rows("notes")).map((row) => row.text),
  };
}

/** How often records were read again by id. */
function readings({ sandbox }: ProxyStack, baseId: string): number {
  return sandbox.control.log(baseId).filter(({ path }) => path.includes("RECORD_ID()")).length;
}

test("I4: while the control plane is unavailable, a client whose base is not known to be connected uses only the proxy's own window", async () => {
  await using stack = await startStack(20_000);
  const [unknown, alone] = [await synced(stack), recordOf(stack)];
  const patch = (at: { baseId: string; id: string }) =>
    fetch(`${stack.endpoint}/v0/${at.baseId}/Notes/${at.id}`, {
      method: "PATCH",
      headers: { authorization: `Bearer ${stack.sandbox.key}`, "content-type": "application/json" },
      body: '{"fields":{"Text":"new"}}',
    });
  // No account has connected it, which is known.
  expect((await patch(alone)).status).toBe(200);
  stack.controlFaultProxy.cut();
  using _ = { [Symbol.dispose]: () => stack.controlFaultProxy.restore() };
  // A key that is not known waits for a moment only, and is then told to try again.
  const written = async (at: { baseId: string; id: string }) => {
    await until(async () => (await patch(at)).status === 200, { what: "it is written", timeoutMs: 60_000 });
  };
  await Promise.all(Array.from({ length: 6 }, () => [written(unknown), written(alone)]).flat());
  const arrivals = (baseId: string) =>
    stack.sandbox.control
      .log(baseId)
      .filter(({ method }) => method === "PATCH")
      .map(({ arrivalMs }) => arrivalMs);
  const metered = arrivals(unknown.baseId);
  expect(metered).toHaveLength(6);
  // Two in 1,025 ms, of which a stall may take some.
  for (const [index, at] of metered.slice(2).entries()) expect(at - metered[index]!).toBeGreaterThan(900);
  const [, first, ...rest] = arrivals(alone.baseId);
  // In less than two windows, which its own limit would not allow.
  expect(rest.at(-1)! - first!).toBeLessThan(2000);
});

test("a customer's lock on one table delays only the first writes of that table, and none of another", async () => {
  await using stack = await startStack();
  const { control, key } = stack.sandbox;
  const [name, locked] = ["Notes", "Locked"];
  const table = (of: string) => ({ name: of, fields: [{ name: "Text", type: "singleLineText" }] });
  const baseId = control.createBase({ name: "Two", tables: [table(name!), table(locked!)] });
  const base = await stack.connect(baseId);
  await base.sync();
  const create = async (of: string) => {
    const from = performance.now();
    const answer = await fetch(`${stack.endpoint}/v0/${baseId}/${of}`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ fields: { Text: "new" } }),
    });
    expect(answer.status).toBe(200);
    return { sql: answer.headers.get("x-basetide-sql"), ms: performance.now() - from };
  };
  await stack.withOwner(base, async (sql) => {
    const lock = await sql.reserve();
    try {
      await lock`begin`;
      await lock`lock table public.locked in access exclusive mode`;
      const first = await create(locked!);
      expect(first.sql).toBe("pending");
      const skipping = await create(locked!);
      expect(skipping.sql).toBe("pending");
      expect(skipping.ms).toBeLessThan(first.ms / 2);
      expect((await create(name!)).sql).toBeNull();
    } finally {
      await lock`rollback`;
      lock.release();
    }
  });
  await until(async () => (await base.rows("locked")).length === 2, { what: "both are shown" });
});

// The others time nothing.
test.concurrent("I7: without the control plane, reads and writes continue, and writes to unknown bases are shown when it is back", async () => {
  await using stack = await startStack(20_000);
  const [known, unknown] = [await synced(stack), await synced(stack)];
  expect((await known.write("before")).status).toBe(200);
  stack.controlFaultProxy.cut();
  expect((await known.read()).status).toBe(200);
  expect((await known.write("meanwhile")).status).toBe(200);
  expect(await known.texts()).toEqual(["meanwhile"]);
  // The replica does not have the field: the source's schema is requested, with the base's key.
  stack.sandbox.control.addField(known.baseId, "Notes", { name: "More", type: "singleLineText" });
  expect((await known.write("more", { More: "x" })).status).toBe(200);
  expect(await known.texts()).toEqual(["more"]);
  expect((await unknown.write("meanwhile")).status).toBe(200);
  expect(await unknown.texts()).toEqual(["old"]);
  stack.controlFaultProxy.restore();
  await until(async () => (await unknown.texts())[0] === "meanwhile", {
    what: "repaired",
    timeoutMs: 20_000,
  });
  await until(async () => (await metricOf(stack, "basetide_repairs_pending")) === 0, {
    what: "nothing is pending",
  });
  // Shown writes are not read again.
  expect(readings(stack, known.baseId)).toBe(0);
  expect(readings(stack, unknown.baseId)).toBe(1);
});

test.concurrent("I4: repairs of many deleted records leave sync its share of the requests", {
  timeout: 120_000,
}, async () => {
  await using stack = await startStack();
  const at = await synced(stack);
  const gone = Array.from({ length: 80 }, (_, index) => `recGone${String(index).padStart(10, "0")}`);
  await stack.ctx.db`
    insert into repairs (base_id, table_ref, record_id)
    select ${at.base.id}, 'Notes', id from unnest(${gone}::text[]) as id`;
  const byName = () =>
    stack.sandbox.control.log(at.baseId).filter(({ path }) => path.includes("/recGone")).length;
  await until(() => byName() > 5, { what: "they are requested", timeoutMs: 20_000 });
  for (let sync = 0; sync < 5; sync++) await at.sync();
  expect(byName()).toBeLessThan(gone.length);
  expect(await countRepairs(stack.ctx.db, at.base.id)).toBeGreaterThan(0);
  await until(async () => (await countRepairs(stack.ctx.db, at.base.id)) === 0, {
    what: "repaired",
    timeoutMs: 90_000,
  });
});

test.concurrent("a claim that takes long is renewed, except for records that are recorded again meanwhile", async () => {
  await using stack = await startStack();
  await stack.proxy.stop();
  const at = await synced(stack);
  const { db, log } = stack.ctx;
  const repairs = new Repairs({ db, log }, writeMetrics(new Registry()));
  const note = (...ids: string[]) => repairs.record({ base: at.base, tableRef: "Notes", ids });
  await note("recLong", "recAgain");
  const claim = await repairs.claim(false);
  expect(claim!.records).toHaveLength(2);
  await db`update repairs set due_at = now()`;
  await note("recAgain");
  await repairs.renew(claim!);
  expect((await repairs.claim(false))!.records.map(({ id }) => id)).toEqual(["recAgain"]);
  expect(await repairs.claim(false)).toBeNull();
});

test.concurrent("I7: what one proxy recorded for repair, another repairs", async () => {
  await using stack = await startStack();
  const at = await synced(stack);
  const another = await stack.startAnother();
  const open = await shutDatabase(at.ownerUrl);
  expect((await at.write("noted", {}, another.endpoint)).status).toBe(200);
  expect(await countRepairs(stack.ctx.db, at.base.id)).toBe(1);
  await another[Symbol.asyncDispose]();
  await open();
  await until(async () => (await countRepairs(stack.ctx.db, at.base.id)) === 0, {
    what: "repaired",
    timeoutMs: 20_000,
  });
  expect(await at.texts()).toEqual(["noted"]);
});

test.concurrent("a repair that is recorded again while it is processed is processed again", async () => {
  await using stack = await startStack();
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
    on conflict (base_id, table_ref, record_id) do update set recorded_at = clock_timestamp(), due_at = now()`;
  await note();
  const reads = () => readings(stack, at.baseId);
  await until(() => reads() === 1, { what: "it is being repaired" });
  await note();
  await until(async () => (await countRepairs(stack.ctx.db, at.base.id)) === 0, { what: "repaired twice" });
  expect(reads()).toBe(2);
});

test.concurrent("a proxy that is stopped finishes its current writes, also those whose clients have disconnected", async () => {
  await using stack = await startStack();
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

test.concurrent("a proxy stops while the control plane is unavailable", async () => {
  await using stack = await startStack();
  stack.controlFaultProxy.cut();
  await until(async () => (await metricOf(stack, "basetide_quota_fallback")) === 1, {
    what: "its outage is detected",
  });
  let isOver = false;
  void stack.proxy.stop().then(() => {
    isOver = true;
  });
  await until(() => isOver, { what: "it has stopped", timeoutMs: 12_000 });
});

/** `x-basetide-sql: pending`: only an answer to a write that SQL does not show yet has it. */
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test } from "vitest";
import { shutDatabase } from "../../support/admin";
import { countRepairs } from "../../support/count-repairs";
import { until } from "../../support/poll";
import { type ProxyStack, proxyStack, type Replicated } from "../../support/proxy-stack";

let stack: ProxyStack;

beforeAll(async () => {
  stack = await proxyStack({ UPSTREAM_TIMEOUT_MS: "5000" });
});
afterAll(() => stack?.[Symbol.asyncDispose]());
afterEach(() => stack.sandbox.control.clearFaults());

/** A base with one record, and requests to it. */
function notes() {
  const { control, key } = stack.sandbox;
  const baseId = control.createBase({
    name: "Notes",
    tables: [
      {
        name: "Notes",
        fields: [
          { name: "Text", type: "singleLineText" },
          { name: "Files", type: "multipleAttachments" },
        ],
        records: [{ fields: { Text: "old" } }],
      },
      { name: "Others", fields: [{ name: "Text", type: "singleLineText" }], records: [] },
    ],
  });
  const [table] = control.dump(baseId).tables;
  const id = table!.records[0]!.id;
  const call = async (method: string, path: string, body?: unknown, endpoint = stack.endpoint) => {
    const answer = await fetch(`${endpoint}/v0/${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: answer.status, sql: answer.headers.get("x-basetide-sql") };
  };
  const patch = (Text: string) => call("PATCH", `${baseId}/Notes/${id}`, { fields: { Text } });
  return { baseId, tableId: table!.id, id, call, patch };
}

async function synced() {
  const made = notes();
  const replicated = await stack.connect(made.baseId);
  await replicated.sync();
  return { ...made, ...replicated };
}

async function texts(replicated: Replicated): Promise<unknown[]> {
  return (await replicated.rows("notes")).map((row) => row.text).sort();
}

const SHOWN = { status: 200, sql: null };
const PENDING = { status: 200, sql: "pending" };

test("I1: the answer to a write that SQL shows has no header of ours", async () => {
  const at = await synced();
  const { baseId, id, call } = at;
  expect(await at.patch("new")).toEqual(SHOWN);
  expect(await call("POST", `${baseId}/Notes`, { fields: { Text: "more" } })).toEqual(SHOWN);
  const file = { contentType: "text/plain", filename: "a.txt", file: btoa("hello") };
  const upload = `${baseId}/${id}/Files/uploadAttachment`;
  expect(await call("POST", upload, file, stack.contentEndpoint)).toEqual(SHOWN);
  expect(await texts(at)).toEqual(["more", "new"]);
  expect(await call("DELETE", `${baseId}/Notes/${id}`)).toEqual(SHOWN);
  expect(await texts(at)).toEqual(["more"]);
});

test("neither has an answer that reports no write, or a write that no SQL will show", async () => {
  const at = await synced();
  const { baseId, id, call } = at;
  const nobodys = notes();
  expect(await nobodys.patch("new")).toEqual(SHOWN);
  expect(await call("GET", `${baseId}/Notes`)).toEqual(SHOWN);
  expect(await call("POST", `${baseId}/Notes/${id}/comments`, { text: "Hm" })).toMatchObject({ sql: null });
  expect(await call("PATCH", `${baseId}/Notes/${id}`, { fields: { Nonsense: 1 } })).toEqual({
    status: 422,
    sql: null,
  });
});

test("I1: the answer to a write that one of the replicas cannot show says so, until it is repaired", async () => {
  const at = await synced();
  const another = await stack.connect(at.baseId);
  await another.sync();
  const open = await shutDatabase(at.ownerUrl);
  expect(await at.patch("meanwhile")).toEqual(PENDING);
  expect(await texts(another)).toEqual(["meanwhile"]);
  await open();
  await until(async () => (await countRepairs(stack.ctx.db, at.base.id)) === 0, {
    what: "repaired",
    timeoutMs: 20_000,
  });
  expect(await texts(at)).toEqual(["meanwhile"]);
  expect(await at.patch("afterwards")).toEqual(SHOWN);
});

test("I1: a replica that does not answer in time is not waited for again, and the write's answer says so", async () => {
  const at = await synced();
  await stack.withOwner(at, (sql) =>
    sql.begin(async (tx) => {
      // Like a swap, but longer.
      await tx`select public_swap.lock_table(${at.tableId})`;
      expect(await at.patch("meanwhile")).toEqual(PENDING);
      expect(await texts(at)).toEqual(["old"]);
      // The next one does not wait as long again.
      const from = performance.now();
      expect(await at.patch("meanwhile")).toEqual(PENDING);
      expect(performance.now() - from).toBeLessThan(2000);
      // Those of other tables do not even notice.
      expect(await at.call("POST", `${at.baseId}/Others`, { fields: { Text: "new" } })).toEqual(SHOWN);
    }),
  );
  const isShown = async () => (await texts(at))[0] === "meanwhile";
  await until(isShown, { what: "SQL shows it", timeoutMs: 10_000 });
});

test("a write to a table that the first sync has not built yet is pending", async () => {
  const at = notes();
  const replicated = await stack.connect(at.baseId);
  expect(await at.patch("first")).toEqual(PENDING);
  await replicated.sync();
  expect(await texts(replicated)).toEqual(["first"]);
  expect(await at.patch("second")).toEqual(SHOWN);
});

test("a write whose answer is not understood is pending if the request names no record", async () => {
  const at = await synced();
  const { baseId, id, call } = at;
  stack.sandbox.control.addFault({ kind: "html_200", method: "POST", when: "after", count: 1 });
  expect(await call("POST", `${baseId}/Notes`, { fields: { Text: "more" } })).toEqual(PENDING);
  stack.sandbox.control.addFault({ kind: "html_200", method: "PATCH", when: "after", count: 1 });
  expect(await call("PATCH", `${baseId}/Notes/${id}`, { fields: { Text: "new" } })).toEqual(SHOWN);
  await at.sync();
  expect(await texts(at)).toEqual(["more", "new"]);
});

test("a new field is pending until the schema check", async () => {
  const { baseId, tableId, call } = await synced();
  const field = { name: "Made", type: "singleLineText" };
  expect(await call("POST", `meta/bases/${baseId}/tables/${tableId}/fields`, field)).toEqual(PENDING);
});

test("while it is unknown which accounts have connected a base, a write to it is pending; where it is known, it is shown", async () => {
  const at = await synced();
  const nobodys = notes();
  expect(await at.patch("before")).toEqual(SHOWN);
  expect(await nobodys.patch("before")).toEqual(SHOWN);
  stack.controlFaultProxy.cut();
  onTestFinished(() => stack.controlFaultProxy.restore());
  expect(await at.patch("meanwhile")).toEqual(PENDING);
  expect(await texts(at)).toEqual(["meanwhile"]);
  expect(await nobodys.patch("meanwhile")).toEqual(SHOWN);
});

/** Many clients that write to one record at the same time: the cost in requests, and the duration. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ProxyStack, proxyStack } from "../../support/proxy-stack";

const WRITES = 40;
const SOURCE_MS = 150;

let stack: ProxyStack;

beforeAll(async () => {
  stack = await proxyStack();
});
afterAll(() => stack?.[Symbol.asyncDispose]());

async function scene() {
  const { control, key } = stack.sandbox;
  const baseId = control.createBase({
    name: "Hot",
    tables: [
      {
        name: "Tasks",
        fields: [
          { name: "Name", type: "singleLineText" },
          { name: "Status", type: "singleLineText" },
        ],
        records: [{ fields: { Name: "hot" } }, { fields: { Name: "cold" } }],
      },
    ],
  });
  const base = await stack.connect(baseId);
  await base.sync();
  const ids = control.dump(baseId).tables[0]!.records.map((record) => record.id);
  const half = SOURCE_MS / 2;
  control.settings({
    latency: { before: { minMs: half, maxMs: half }, after: { minMs: half, maxMs: half } },
  });
  control.clearLog();
  const write = async (status: string, { endpoint = stack.endpoint, token = key } = {}) => {
    const answer = await fetch(`${endpoint}/v0/${baseId}/Tasks/${ids[0]}`, {
      method: "PATCH",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify({ fields: { Status: status } }),
    });
    return { status: answer.status, sql: answer.headers.get("x-basetide-sql") };
  };
  const status = () => control.dump(baseId).tables[0]!.records[0]!.fields;
  const row = async () => (await base.rows("tasks")).find((one) => one.id === ids[0])!;
  return { baseId, base, write, status, row, calls: () => control.log(baseId).length };
}

test(`${WRITES} concurrent writes to one record cost at most ${WRITES + 2} calls, and SQL shows each one when it is answered`, {
  timeout: 120_000,
}, async () => {
  const { write, status, row, calls } = await scene();
  const answers = await Promise.all(Array.from({ length: WRITES }, (_, index) => write(`s${index}`)));
  expect(new Set(answers.map((answer) => answer.status))).toEqual(new Set([200]));
  expect(answers.filter(({ sql }) => sql !== null)).toEqual([]);
  expect(calls()).toBeLessThanOrEqual(WRITES + 2);
  expect(Object.values(status())).toContain((await row()).status);
});

test("the same holds for writes through two proxies and with two keys", { timeout: 120_000 }, async () => {
  const { baseId, write, status, row, calls } = await scene();
  await using another = await stack.startAnother();
  const token = stack.sandbox.control.createKey({ bases: { [baseId]: "create" } });
  await write("proven", { token });
  const before = calls();
  const answers = await Promise.all(
    Array.from({ length: WRITES }, (_, index) =>
      write(`s${index}`, {
        ...(index % 2 === 0 ? { endpoint: another.endpoint } : {}),
        ...(index % 3 === 0 ? { token } : {}),
      }),
    ),
  );
  expect(new Set(answers.map((answer) => answer.status))).toEqual(new Set([200]));
  expect(answers.filter(({ sql }) => sql !== null)).toEqual([]);
  // One more for each queue of a proxy and key.
  expect(calls() - before).toBeLessThanOrEqual(WRITES + 2 + 4);
  expect(Object.values(status())).toContain((await row()).status);
});

test("clients that write one after the other cost at most one more request for every other write, and no write stays pending", {
  timeout: 120_000,
}, async () => {
  const { write, calls } = await scene();
  const clients = 5;
  const each = 6;
  await Promise.all(
    Array.from({ length: clients }, async (_, client) => {
      for (let turn = 0; turn < each; turn++) {
        expect(await write(`${client} ${turn}`)).toEqual({ status: 200, sql: null });
      }
    }),
  );
  expect(calls()).toBeLessThanOrEqual(clients * each * 1.5);
});

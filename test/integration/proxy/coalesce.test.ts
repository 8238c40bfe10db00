/** Write coalescing with real clients, the rate limit and a replica: what each was answered, SQL shows. */
import Airtable from "airtable";
import { afterAll, beforeAll, expect, test } from "vitest";
import { updateSettings } from "../../../core/control/bases";
import { metricOf, type ProxyStack, proxyStack, type Replicated } from "../../support/proxy-stack";

let stack: ProxyStack;
let base: Replicated;
let baseId: string;

beforeAll(async () => {
  stack = await proxyStack();
  baseId = stack.sandbox.control.createBase({
    name: "Tasks",
    tables: [
      {
        name: "Tasks",
        fields: [
          { name: "Name", type: "singleLineText" },
          { name: "Age", type: "number", options: { precision: 0 } },
        ],
        records: Array.from({ length: 20 }, (_, index) => ({ fields: { Name: `seed ${index}` } })),
      },
    ],
  });
  base = await stack.connect(baseId);
  await base.sync();
  await updateSettings(stack.managed, base.base, { coalesceWrites: true });
}, 60_000);
afterAll(() => stack?.[Symbol.asyncDispose]());

const table = () =>
  new Airtable({ apiKey: stack.sandbox.key, endpointUrl: stack.endpoint }).base(baseId)("Tasks");

async function rowOf(id: string): Promise<Record<string, unknown> | undefined> {
  const [row] = await base.reader`select id, name, age::int from tasks where id = ${id}`;
  return row;
}

test("I1: fifty clients of airtable.js need far fewer calls than writes, and SQL has each when it is answered", async () => {
  const ids = stack.sandbox.control.dump(baseId).tables[0]!.records.map(({ id }) => id);
  stack.sandbox.control.clearLog();
  const made = await Promise.all(
    Array.from({ length: 50 }, async (_, index) => {
      const fields = { Name: `client ${index}`, Age: index };
      const updated = ids[index];
      if (updated) await table().update(updated, fields);
      const created = async () =>
        index % 2 ? (await table().create(fields)).id : (await table().create([{ fields }]))[0]!.id;
      const id = updated ?? (await created());
      return { id, row: await rowOf(id), expected: { id, name: fields.Name, age: index } };
    }),
  );
  for (const { row, expected } of made) expect(row).toEqual(expected);
  expect(new Set(made.map(({ id }) => id)).size).toBe(50);
  const calls = stack.sandbox.control.log(baseId).filter(({ method }) => method !== "GET");
  expect(calls.length).toBeLessThan(25);
  expect(await metricOf(stack, "basetide_proxy_coalesced_writes_sum")).toBeGreaterThan(25);
}, 60_000);

test("a write that Airtable rejects fails for its own client only", async () => {
  const outcomes = await Promise.all(
    Array.from({ length: 10 }, async (_, index) => {
      const fields = index === 4 ? { Age: "no number" } : { Name: `one of ten, ${index}` };
      try {
        const { id } = await table().create(fields as Airtable.FieldSet);
        return (await rowOf(id))?.name;
      } catch (error) {
        return (error as Airtable.Error).error;
      }
    }),
  );
  expect(outcomes).toEqual(
    outcomes.map((_, index) => (index === 4 ? "INVALID_VALUE_FOR_COLUMN" : `one of ten, ${index}`)),
  );
}, 60_000);

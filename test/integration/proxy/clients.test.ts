/** Other vendors' clients, each with the one setting that the proxy guide names for it: their writes are in SQL. */
import { Base as QualifyzeBase } from "@qualifyze/airtable";
import Airtable from "airtable";
import { AirtableTs, type Table } from "airtable-ts";
import axios from "axios";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ProxyStack, proxyStack, type Replicated } from "../../support/proxy-stack";
import { repoRoot } from "../../support/source-files";
import { pinned, runs, type Tool } from "../../support/tools/table";

const TABLE = "My Tasks";

let stack: ProxyStack;
let base: Replicated;
let baseId: string;
let tableId: string;

let asyncAirtable: typeof import("asyncairtable/lib/asyncAirtable");

/** Loads a package for bundlers, which takes the `fetch` of the browser's window. */
async function loadAsyncAirtable(): Promise<typeof asyncAirtable> {
  Object.assign(globalThis, { window: globalThis });
  try {
    return await import("asyncairtable/lib/asyncAirtable");
  } finally {
    Reflect.deleteProperty(globalThis, "window");
  }
}

beforeAll(async () => {
  stack = await proxyStack();
  asyncAirtable = await loadAsyncAirtable();
  baseId = stack.sandbox.control.createBase({
    name: "Tasks",
    tables: [
      {
        name: TABLE,
        fields: [
          { name: "Name", type: "singleLineText" },
          { name: "Count", type: "number", options: { precision: 0 } },
        ],
        records: [{ fields: { Name: "seed", Count: 0 } }],
      },
    ],
  });
  tableId = stack.sandbox.control.dump(baseId).tables[0]!.id;
  base = await stack.connect(baseId);
  await base.sync();
}, 60_000);
afterAll(() => stack?.[Symbol.asyncDispose]());

interface Client {
  create(fields: { Name: string; Count: number }): Promise<string>;
  update(id: string, fields: { Name: string; Count: number }): Promise<unknown>;
  /** Names of all records. */
  list(): Promise<unknown[]>;
  remove(id: string): Promise<unknown>;
}

const clients: Record<string, () => Client> = {
  "airtable.js, endpointUrl": () => {
    const table = new Airtable({ apiKey: stack.sandbox.key, endpointUrl: stack.endpoint }).base(baseId)(
      TABLE,
    );
    return {
      create: async (fields) => (await table.create(fields)).id,
      update: (id, fields) => table.update(id, fields),
      list: async () => (await table.select().all()).map((record) => record.get("Name")),
      remove: (id) => table.destroy(id),
    };
  },
  "airtable.js, endpointUrl without a host": () => {
    const endpointUrl = `http://localhost:${stack.proxy.port}`;
    const table = new Airtable({ apiKey: stack.sandbox.key, endpointUrl }).base(baseId)(TABLE);
    return {
      create: async (fields) => (await table.create(fields)).id,
      update: (id, fields) => table.replace(id, fields),
      list: async () => (await table.select().all()).map((record) => record.get("Name")),
      remove: (id) => table.destroy([id]),
    };
  },
  "airtable-ts, endpointUrl": () => {
    const client = new AirtableTs({ apiKey: stack.sandbox.key, endpointUrl: stack.endpoint });
    const table: Table<{ id: string; Name: string; Count: number }> = {
      name: "task",
      baseId,
      tableId,
      schema: { Name: "string", Count: "number" },
    };
    return {
      create: async (fields) => (await client.insert(table, fields)).id,
      update: (id, fields) => client.update(table, { id, ...fields }),
      list: async () => (await client.scan(table)).map(({ Name }) => Name),
      remove: (id) => client.remove(table, id),
    };
  },
  "asyncairtable, baseURL": () => {
    const client = new asyncAirtable.AsyncAirtable(stack.sandbox.key, baseId, {
      baseURL: `${stack.endpoint}/v0`,
    });
    return {
      create: async (fields) => (await client.createRecord(TABLE, fields)).id,
      update: (id, fields) => client.updateRecord(TABLE, { id, fields }),
      list: async () => (await client.select(TABLE)).map(({ fields }) => fields.Name),
      remove: (id) => client.deleteRecord(TABLE, id),
    };
  },
  "@qualifyze/airtable, endpointUrl of its airtable.js": () => {
    const official = new Airtable({ apiKey: stack.sandbox.key, endpointUrl: stack.endpoint });
    const table = QualifyzeBase.fromOfficialClient(official, baseId).table(TABLE);
    return {
      create: async (fields) => (await table.create(fields)).id,
      update: (id, fields) => table.update({ id, fields }),
      list: async () => {
        const names: unknown[] = [];
        for await (const { data } of table.select()) names.push(data.Name);
        return names;
      },
      remove: (id) => table.destroy(id),
    };
  },
  "axios, baseURL": () => {
    const api = axios.create({
      baseURL: `${stack.endpoint}/v0/${baseId}/${encodeURIComponent(TABLE)}`,
      headers: { authorization: `Bearer ${stack.sandbox.key}` },
    });
    return {
      create: async (fields) => (await api.post("", { records: [{ fields }] })).data.records[0].id,
      update: (id, fields) => api.patch(`/${id}`, { fields }),
      list: async () =>
        (await api.get("")).data.records.map((record: { fields: { Name: string } }) => record.fields.Name),
      remove: (id) => api.delete("", { params: { records: [id] } }),
    };
  },
};

for (const [name, open] of Object.entries(clients)) {
  test(name, runs(toolOf(name)), async () => {
    const client = open();
    const rowOf = async (id: string) => (await base.rows("my_tasks")).find((row) => row.id === id);
    const id = await client.create({ Name: name, Count: 1 });
    expect(await rowOf(id)).toMatchObject({ name });
    expect((await client.list()).sort()).toEqual(["seed", name].sort());
    await client.update(id, { Name: `${name}, changed`, Count: 2 });
    expect(await rowOf(id)).toMatchObject({ name: `${name}, changed` });
    expect(String((await rowOf(id))!.count)).toBe("2");
    await client.remove(id);
    expect(await rowOf(id)).toBeUndefined();
    expect(stack.sandbox.control.log(baseId).some(({ status }) => status >= 400)).toBe(false);
  });
}

/** The library with which a client's name begins. */
function toolOf(name: string): Tool {
  const [library = ""] = name.split(",");
  return pinned(repoRoot, library === "airtable.js" ? "airtable" : library, library);
}

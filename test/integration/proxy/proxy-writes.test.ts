/** I1 through the proxy: SQL shows what was answered with 2xx. */
import Airtable from "airtable";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { pause } from "../../../core/control/bases";
import { asAdmin } from "../../support/admin";
import { countRepairs } from "../../support/count-repairs";
import { until } from "../../support/poll";
import { metricOf, type ProxyStack, proxyStack, type Replicated } from "../../support/proxy-stack";

let stack: ProxyStack;

beforeAll(async () => {
  stack = await proxyStack();
});
afterAll(() => stack?.[Symbol.asyncDispose]());
afterEach(() => {
  stack.sandbox.control.clearFaults();
  stack.sandbox.control.settings({ latency: NO_LATENCY });
});

const NO_LATENCY = { before: { minMs: 0, maxMs: 0 }, after: { minMs: 0, maxMs: 0 } };
/** A name that must be escaped in a path. */
const TABLE = "People & Co/1";
const SQL_TABLE = "people_co_1";

/** A base with one table and two records. */
function people(): { baseId: string; tableId: string; ids: [string, string] } {
  const { control } = stack.sandbox;
  const baseId = control.createBase({
    name: "People",
    tables: [
      {
        name: TABLE,
        fields: [
          { name: "Name", type: "singleLineText" },
          { name: "Age", type: "number", options: { precision: 0 } },
          { name: "Done", type: "checkbox" },
          { name: "Files", type: "multipleAttachments" },
          { name: "Loud", type: "formula", options: { formula: "UPPER({Name})" } },
        ],
        records: [{ fields: { Name: "Ada", Age: 36 } }, { fields: { Name: "Bob" } }],
      },
    ],
  });
  const [table] = control.dump(baseId).tables;
  const [ada, bob] = table!.records;
  return { baseId, tableId: table!.id, ids: [ada!.id, bob!.id] };
}

/** A base that is connected and synced. */
async function synced() {
  const made = people();
  const replicated = await stack.connect(made.baseId);
  await replicated.sync();
  return { ...made, ...replicated, rows: () => replicated.rows(SQL_TABLE), table: client(made.baseId) };
}

function client(baseId: string, table = TABLE) {
  return new Airtable({ apiKey: stack.sandbox.key, endpointUrl: stack.endpoint }).base(baseId)(table);
}

function call(method: string, path: string, body?: unknown, endpoint = stack.endpoint) {
  return fetch(`${endpoint}/v0/${path}`, {
    method,
    headers: { authorization: `Bearer ${stack.sandbox.key}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

const escaped = encodeURIComponent(TABLE);
const row = (cells: Record<string, unknown>) => expect.objectContaining(cells);

type Synced = Awaited<ReturnType<typeof synced>>;

/** Each kind of write, and the rows that SQL shows right after its answer. */
const writes: [name: string, write: (at: Synced) => Promise<unknown>, expected: (at: Synced) => unknown[]][] =
  [
    [
      "create one",
      ({ table }) => table.create({ Name: "Cleo", Age: 7, Done: true }),
      () => [
        row({ name: "Ada" }),
        row({ name: "Bob" }),
        row({ name: "Cleo", age: 7, done: true, loud: "CLEO" }),
      ],
    ],
    [
      "create many",
      ({ table }) => table.create([{ fields: { Name: "Cleo" } }, { fields: { Name: "Dan" } }]),
      () => ["Ada", "Bob", "Cleo", "Dan"].map((name) => row({ name, loud: name.toUpperCase() })),
    ],
    [
      "update one: cells that are not named stay",
      ({ table, ids }) => table.update(ids[0], { Name: "Adele" }),
      () => [row({ name: "Adele", age: 36, loud: "ADELE" }), row({ name: "Bob" })],
    ],
    [
      "update one: a cleared cell is empty",
      ({ table, ids }) => table.update(ids[0], { Age: null as unknown as undefined }),
      () => [row({ name: "Ada", age: null }), row({ name: "Bob" })],
    ],
    [
      "replace one: cells that are not named are cleared",
      ({ table, ids }) => table.replace(ids[0], { Name: "Adele" }),
      () => [row({ name: "Adele", age: null }), row({ name: "Bob" })],
    ],
    [
      "update many",
      ({ table, ids }) => table.update(ids.map((id, index) => ({ id, fields: { Age: index } }))),
      () => [row({ name: "Ada", age: 0 }), row({ name: "Bob", age: 1 })],
    ],
    [
      "upsert",
      ({ baseId }) =>
        call("PATCH", `${baseId}/${escaped}`, {
          performUpsert: { fieldsToMergeOn: ["Name"] },
          records: [{ fields: { Name: "Bob", Age: 5 } }, { fields: { Name: "Cleo", Age: 6 } }],
        }),
      () => [row({ name: "Ada" }), row({ name: "Bob", age: 5 }), row({ name: "Cleo", age: 6 })],
    ],
    ["delete one", ({ table, ids }) => table.destroy(ids[0]), () => [row({ name: "Bob" })]],
    ["delete many", ({ table, ids }) => table.destroy([...ids]), () => []],
    [
      "an answer keyed by field id, in a table named by id",
      ({ baseId, tableId }) =>
        call("POST", `${baseId}/${tableId}`, {
          fields: { Name: "Cleo", Age: 7 },
          returnFieldsByFieldId: true,
        }),
      () => [row({ name: "Ada" }), row({ name: "Bob" }), row({ name: "Cleo", age: 7, loud: "CLEO" })],
    ],
    [
      "characters that Postgres does not know",
      ({ table }) => table.create({ Name: "nul\u0000 half\ud800" }),
      () => [row({ name: "Ada" }), row({ name: "Bob" }), row({ name: "nul\ufffd half\ufffd" })],
    ],
  ];

test.for(writes)("I1: %s", async ([, write, expected]) => {
  const at = await synced();
  const answer = await write(at);
  if (answer instanceof Response) expect(answer.status).toBe(200);
  expect(sorted(await at.rows())).toEqual(expected(at));
});

/** In the order in which people are named here. */
function sorted(rows: Record<string, unknown>[]) {
  return rows.toSorted((a, b) => String(a.name).localeCompare(String(b.name)));
}

test("I1: a write is in the replicas of all accounts that have connected the base, also paused ones", async () => {
  const { baseId } = people();
  const replicas: Replicated[] = [];
  for (let accounts = 0; accounts < 3; accounts++) replicas.push(await stack.connect(baseId));
  for (const replica of replicas) await replica.sync();
  await pause(stack.managed, replicas[2]!.base);
  await client(baseId).create({ Name: "Cleo" });
  for (const replica of replicas) expect(await replica.rows(SQL_TABLE)).toContainEqual(row({ name: "Cleo" }));
});

test("an upload is in SQL when it is answered", async () => {
  const { baseId, ids, rows } = await synced();
  const path = `${baseId}/${ids[0]}/Files/uploadAttachment`;
  const file = { contentType: "text/plain", filename: "a.txt", file: btoa("hello") };
  const answer = await call("POST", path, file, stack.contentEndpoint);
  expect(answer.status).toBe(200);
  expect(await rows()).toContainEqual(row({ name: "Ada", files: [expect.stringContaining("a.txt")] }));
});

test("I1: a write during the first sync is in the table when it appears, although its page was read before", async () => {
  const { baseId, ids } = people();
  const replicated = await stack.connect(baseId);
  const { control } = stack.sandbox;
  control.addFault({ kind: "hang", method: "POST", path: "pageSize", delayMs: 2000, count: 1 });
  // What the first sync missed must not be repaired by the next one before the test has read it.
  control.addFault({ kind: "hang", method: "POST", path: "pageSize", delayMs: 1000, count: 1 });
  const syncing = replicated.sync();
  await until(() => control.log(baseId).some((entry) => entry.path.includes("pageSize")), {
    what: "the page is read",
  });
  await client(baseId).update(ids[0], { Name: "Adele" });
  await client(baseId).destroy(ids[1]);
  const isThere = async () =>
    (await replicated.reader`select to_regclass(${SQL_TABLE}) as oid`)[0]!.oid !== null;
  expect(await isThere()).toBe(false);
  await until(isThere, { what: "the table appears" });
  expect(await replicated.rows(SQL_TABLE)).toEqual([row({ id: ids[0], name: "Adele" })]);
  await syncing;
});

function byId(a: { sample: { id: string } }, b: { sample: { id: string } }) {
  return a.sample.id < b.sample.id ? -1 : 1;
}

test.for([
  ["first", { before: { minMs: 400 } }],
  ["second", { after: { minMs: 400 } }],
] as const)(
  "I1: of two overlapping writes to a record, SQL shows the one that the source applied last: the %s",
  async ([last, latency]) => {
    const { baseId, ids, rows, table } = await synced();
    const { control } = stack.sandbox;
    const lostBefore = await metricOf(stack, "basetide_proxy_lost_row_images_total");
    control.clearLog();
    control.settings({ latency });
    const first = table.update(ids[0], { Name: "first" });
    await until(() => control.log(baseId).some(({ method }) => method === "PATCH"), {
      what: "the first one is in SQL",
    });
    control.settings({ latency: NO_LATENCY });
    await table.update(ids[0], { Name: "second" });
    expect(await rows()).toContainEqual(row({ id: ids[0], name: "second" }));
    await first;
    expect(await rows()).toContainEqual(row({ id: ids[0], name: last, loud: last.toUpperCase() }));
    expect(await metricOf(stack, "basetide_proxy_lost_row_images_total")).toBe(lostBefore + 1);
  },
);

test("a write that the source refuses changes nothing, and its answer is returned unchanged", async () => {
  const { baseId, rows } = await synced();
  const before = await rows();
  const path = `${baseId}/${escaped}`;
  const body = { records: [{ fields: { Name: "Cleo" } }, { fields: { Nonsense: 1 } }] };
  const [answer, direct] = await Promise.all([
    call("POST", path, body),
    call("POST", path, body, stack.sandbox.url),
  ]);
  expect(answer.status).toBe(422);
  expect(await answer.text()).toBe(await direct.text());
  expect(await rows()).toEqual(before);
});

test.for([
  ["not JSON", "html_200"],
  ["cut off", "truncated"],
  ["broken", "broken_json"],
] as const)("I1: after a write whose answer is %s, the record is read again", async ([, kind]) => {
  const { baseId, ids, rows } = await synced();
  stack.sandbox.control.addFault({ kind, method: "PATCH", when: "after", count: 1 });
  const answer = await call("PATCH", `${baseId}/${escaped}/${ids[0]}`, { fields: { Name: "Adele" } });
  expect(answer.status).toBe(kind === "truncated" ? 502 : 200);
  expect(await rows()).toContainEqual(row({ id: ids[0], name: "Adele", age: 36 }));
});

test("I1: a field that was just renamed is the same column, and a schema check is requested", async () => {
  const { base, baseId, ids, rows, table } = await synced();
  stack.sandbox.control.renameField(baseId, TABLE, "Age", "Years");
  await table.update(ids[0], { Years: 37 });
  expect(await rows()).toContainEqual(row({ name: "Ada", age: 37 }));
  await until(() => schemaCheckRequestedAt(base.id), { what: "a schema check is requested" });
});

test("I1: a field that was just created does not delay the other cells", async () => {
  const { base, baseId, ids, rows, table } = await synced();
  stack.sandbox.control.addField(baseId, TABLE, { name: "New", type: "singleLineText" });
  await table.update(ids[0], { New: "x", Age: 38 });
  expect(await rows()).toContainEqual(row({ name: "Ada", age: 38 }));
  await until(() => schemaCheckRequestedAt(base.id), { what: "a schema check is requested" });
});

test("I1: a table that was just renamed is the same table", async () => {
  const { baseId, rows } = await synced();
  stack.sandbox.control.renameTable(baseId, TABLE, "Crowd");
  await client(baseId, "Crowd").create({ Name: "Cleo" });
  expect(await rows()).toContainEqual(row({ name: "Cleo" }));
});

test("a metadata call requests a schema check", async () => {
  const { base, baseId, tableId } = await synced();
  const answer = await call("POST", `meta/bases/${baseId}/tables/${tableId}/fields`, {
    name: "Made",
    type: "singleLineText",
  });
  expect(answer.status).toBe(200);
  await until(() => schemaCheckRequestedAt(base.id), { what: "a schema check is requested" });
});

async function schemaCheckRequestedAt(baseId: string): Promise<Date | null> {
  const [base] = await stack.ctx.db`select schema_check_requested_at as at from bases where id = ${baseId}`;
  return base!.at;
}

test("P3: a write whose client has disconnected is shown, too", async () => {
  const { baseId, ids, rows } = await synced();
  stack.sandbox.control.addFault({ kind: "slow_body", method: "PATCH", delayMs: 50, count: 1 });
  const leave = new AbortController();
  const write = fetch(`${stack.endpoint}/v0/${baseId}/${escaped}/${ids[0]}`, {
    method: "PATCH",
    headers: { authorization: `Bearer ${stack.sandbox.key}`, "content-type": "application/json" },
    body: JSON.stringify({ fields: { Name: "Adele" } }),
    signal: leave.signal,
  }).catch(() => "gone");
  await until(() => stack.sandbox.control.log(baseId).some((entry) => entry.method === "PATCH"), {
    what: "the write is at the source",
  });
  leave.abort();
  expect(await write).toBe("gone");
  await until(async () => (await rows()).some((r) => r.name === "Adele"), { what: "SQL shows the write" });
});

test("I1: a base that was connected during a write has the write", async () => {
  const { baseId, ids } = people();
  stack.sandbox.control.addFault({ kind: "slow_body", method: "PATCH", delayMs: 400, count: 1 });
  const write = client(baseId).update(ids[0], { Name: "Adele" });
  await until(() => stack.sandbox.control.log(baseId).some((entry) => entry.method === "PATCH"), {
    what: "the write is at the source",
  });
  const replicated = await stack.connect(baseId);
  await replicated.sync();
  // As if the sync had read the record's page before the source wrote.
  await stack.withOwner(
    replicated,
    (sql) => sql`update public.people_co_1 set name = 'Ada' where id = ${ids[0]}`,
  );
  await write;
  expect(await replicated.rows(SQL_TABLE)).toContainEqual(row({ name: "Adele" }));
});

test("I7: a replica that cannot be written does not delay the client, and is repaired when it is back", async () => {
  const { base, baseId, ids, ownerUrl, rows, table } = await synced();
  const database = new URL(ownerUrl).pathname.slice(1);
  await asAdmin(async (admin) => {
    await admin.unsafe(`alter database ${database} allow_connections false`);
    await admin`select pg_terminate_backend(pid) from pg_stat_activity where datname = ${database}`;
  });
  const made = await table.create({ Name: "Cleo" });
  await table.update(ids[0], { Name: "Adele" });
  await table.destroy(ids[1]);
  expect(await countRepairs(stack.ctx.db, base.id)).toBe(3);
  await asAdmin((admin) => admin.unsafe(`alter database ${database} allow_connections true`));
  await until(async () => (await countRepairs(stack.ctx.db, base.id)) === 0, {
    what: "repaired",
    timeoutMs: 20_000,
  });
  expect(sorted(await rows())).toEqual([
    row({ id: ids[0], name: "Adele", age: 36 }),
    row({ id: made.id, name: "Cleo" }),
  ]);
  expect(baseId).toBe(base.sourceBaseId);
});

test("I2: a sync that read its page before a proxied write does not undo the write", async () => {
  const { baseId, ids, rows, sync, table } = await synced();
  const { control } = stack.sandbox;
  control.updateRecords(baseId, TABLE, [{ id: ids[0], fields: { Age: 40 } }]);
  control.clearLog();
  control.addFault({ kind: "slow_body", method: "POST", path: "pageSize", delayMs: 200, count: 1 });
  const syncing = sync();
  await until(() => control.log(baseId).some((entry) => entry.path.includes("pageSize")), {
    what: "the page is read",
  });
  await table.update(ids[0], { Age: 41 });
  const made = await table.create({ Name: "Cleo" });
  await table.destroy(ids[1]);
  const after = [row({ id: ids[0], age: 41 }), row({ id: made.id, name: "Cleo" })].toSorted(byId);
  expect(await rows()).toEqual(after);
  await syncing;
  expect(await rows()).toEqual(after);
});

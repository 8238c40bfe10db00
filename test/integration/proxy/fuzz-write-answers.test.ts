/**
 * Writes that the source answers with any JSON, or with any bytes: the client gets exactly that answer, and its effect
 * on the replica is repaired from the source.
 */
import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { countRepairs } from "../../support/count-repairs";
import { anyJson, anyText, damaged, fuzz, nested } from "../../support/fuzz";
import { until } from "../../support/poll";
import { metricOf, type ProxyStack, proxyStack, type Replicated } from "../../support/proxy-stack";
import { httpAnswer, type RawRequest, type RawUpstream, rawUpstream } from "../../support/raw-upstream";

const FIELDS = ["Name", "Age", "Tags", "Files"];

let upstream: RawUpstream;
let stack: ProxyStack;
let base: Replicated;
let sourceBaseId: string;
let tableId: string;
/** The answer to the next write. */
let answer: { status: number; headers: Record<string, string>; body: Buffer };

beforeAll(async () => {
  upstream = await rawUpstream();
  stack = await proxyStack({ UPSTREAMS: `api.airtable.com=${upstream.url}`, UPSTREAM_TIMEOUT_MS: "5000" });
  upstream.answer = async (socket, request) => {
    const isWrite = /^(POST|PATCH|PUT|DELETE) \/v0\/app(?!.*listRecords)/.test(request.line);
    if (isWrite) {
      socket.write(httpAnswer(answer.status, answer.headers, answer.body));
    } else socket.write(await fromSandbox(request));
  };
  const { control } = stack.sandbox;
  sourceBaseId = control.createBase({
    name: "Answers",
    tables: [
      {
        name: "Things",
        fields: [
          { name: "Name", type: "singleLineText" },
          { name: "Age", type: "number", options: { precision: 0 } },
          { name: "Tags", type: "multipleSelects", options: { choices: [] } },
          { name: "Files", type: "multipleAttachments" },
        ],
        records: [{ fields: { Name: "Ada" } }, { fields: { Name: "Bob" } }],
      },
    ],
  });
  tableId = control.dump(sourceBaseId).tables[0]!.id;
  base = await stack.connect(sourceBaseId);
  // The feed does not report these writes: the source has never made them.
  await stack.ctx.db`update bases set live = false`;
  await base.sync();
});
afterAll(async () => {
  await stack?.[Symbol.asyncDispose]();
  await upstream?.[Symbol.asyncDispose]();
});

/** The sandbox answers requests that write no record. */
async function fromSandbox({ line, headers, body }: RawRequest): Promise<Buffer> {
  const [method = "", path = ""] = line.split(" ");
  const { authorization = "" } = headers;
  const sent = body === "" ? {} : { body };
  const type = { "content-type": "application/json", authorization };
  const response = await fetch(stack.sandbox.url + path, { method, headers: type, ...sent });
  return httpAnswer(response.status, { "Content-Type": "application/json" }, await response.bytes());
}

const recordId = fc.oneof(
  { weight: 5, arbitrary: fc.integer({ min: 0, max: 9 }).map((number) => `recAnswered00000${number}`) },
  { weight: 1, arbitrary: anyText },
);
const key = fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...FIELDS) }, { weight: 1, arbitrary: anyText });
const cells = fc.oneof(
  { weight: 8, arbitrary: fc.dictionary(key, anyJson(), { maxKeys: 4, noNullPrototype: true }) },
  { weight: 1, arbitrary: fc.constantFrom(5, 300, 8000).map((depth) => ({ Name: nested(depth) })) },
);
const answered = fc.oneof(
  fc.record({
    id: recordId,
    createdTime: fc.constantFrom("2024-01-01T00:00:00.000Z", "x\0y"),
    fields: cells,
  }),
  fc.record({ id: recordId, deleted: fc.boolean() }),
);
const written = fc.oneof(answered, fc.record({ records: fc.array(answered, { maxLength: 4 }) }));

const body = fc.oneof(
  { weight: 6, arbitrary: written.map((value) => Buffer.from(JSON.stringify(value))) },
  { weight: 3, arbitrary: damaged(written).map((value) => Buffer.from(JSON.stringify(value) ?? "")) },
  { weight: 3, arbitrary: anyJson(written).map((value) => Buffer.from(JSON.stringify(value))) },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 100 }).map((bytes) => Buffer.from(bytes)) },
);
const encoded = fc
  .tuple(body, fc.constantFrom("identity", "gzip", "br", "constructor"))
  .map(([bytes, encoding]) => ({
    body: encoding === "gzip" ? gzipSync(bytes) : bytes,
    headers: {
      "Content-Type": "application/json",
      ...(encoding === "identity" ? {} : { "Content-Encoding": encoding }),
    },
  }));

/** Requests that leave the base are not forwarded. */
const tableName = anyText.map((text) => text.toWellFormed()).filter((name) => !/[.\\]/.test(name));

const write = fc.record({
  method: fc.constantFrom("POST", "PATCH", "PUT", "DELETE"),
  status: fc.oneof(
    { weight: 6, arbitrary: fc.constant(200) },
    { weight: 1, arbitrary: fc.constantFrom(201, 299, 422, 500) },
  ),
  path: fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom("Things", "things", "Things?records[]=recAnswered000001") },
    {
      weight: 2,
      arbitrary: fc.constantFrom("%00", "Nowhere", "%C3%BF", "Things/recAnswered000001", "Things/rec%C3%BF"),
    },
    { weight: 1, arbitrary: fc.constantFrom("Things?records[]=%00", "tbl00000000000000", "__proto__") },
    { weight: 1, arbitrary: tableName.map(encodeURIComponent) },
  ),
  sent: fc.oneof(
    written.map((value) => JSON.stringify(value)),
    fc.constantFrom("{}", "no JSON"),
  ),
  answer: encoded,
});

async function given(path: string, method: string, sent: string) {
  const response = await fetch(`${stack.endpoint}/v0/${sourceBaseId}/${path}`, {
    method,
    headers: { authorization: `Bearer ${stack.sandbox.key}`, "content-type": "application/json" },
    ...(method === "DELETE" ? {} : { body: sent }),
    decompress: false,
  });
  return { status: response.status, body: Buffer.from(await response.arrayBuffer()) };
}

/** The suite asks more of one base than its quota allows: a pause is over at once. */
async function freeQuota(): Promise<void> {
  await stack.ctx.db`update quota_keys set blocked_until = 0`;
  await stack.ctx.db`select quota_announce(key) from quota_keys`;
}

fuzz(
  "the client gets any answer of the source, byte for byte",
  120,
  fc.asyncProperty(write, async ({ method, status, path, sent, answer: next }) => {
    answer = { status, ...next };
    await freeQuota();
    const got = await given(path, method, sent);
    expect([got.status, got.body.toString("latin1")]).toEqual([status, next.body.toString("latin1")]);
  }),
);

test("rows that an answer changed and the source did not are repaired, and no repair remains", async () => {
  await until(
    async () => {
      await freeQuota();
      await stack.ctx.db`update repairs set due_at = now() where due_at < now() + interval '10 minutes'`;
      const waiting = await countRepairs(stack.ctx.db, base.base.id);
      return waiting === 0 && (await metricOf(stack, "basetide_repairs_pending")) === 0;
    },
    { what: "all repairs are done", timeoutMs: 20_000, intervalMs: 100 },
  );
  await freeQuota();
  await base.sync();
  const records = stack.sandbox.control.dump(sourceBaseId).tables.find(({ id }) => id === tableId)!.records;
  const rows = await base.rows("things");
  expect(rows.map((row) => row.id)).toEqual(records.map(({ id }) => id).sort());
  expect(rows.map((row) => row.name).sort()).toEqual(["Ada", "Bob"]);
});

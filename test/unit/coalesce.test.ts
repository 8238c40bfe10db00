/** Which writes may be sent together, and how their common answer is divided. */
import { expect, test } from "vitest";
import { type BatchMember, WriteBatch } from "../../apps/proxy/coalesce/batch";
import { divideAnswer } from "../../apps/proxy/coalesce/batch-answer";
import { RecordTurns } from "../../apps/proxy/coalesce/coalescer";
import { singleWriteOf } from "../../apps/proxy/coalesce/single-write";
import { proxied } from "../../core/source";

const BASE = "appBase0000000001";
const ID = "recRecord00000001";
const OTHER = "recRecord00000002";

function requestOf(method: string, path: string, body: unknown, headers: Record<string, string> = {}) {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return {
    method,
    address: "https://api.airtable.com",
    path: `/v0/${BASE}/${path}`,
    headers: new Map(
      Object.entries({ "content-type": "application/json", authorization: "Bearer x", ...headers }),
    ),
    body: new TextEncoder().encode(text),
  };
}

function singleOf(...[method, path, body, headers]: Parameters<typeof requestOf>) {
  const segments = [BASE, ...path.split("?")[0]!.split("/").filter(Boolean).map(decodeURIComponent)];
  const call = proxied.dialect.callOf(method, segments, "");
  return singleWriteOf(requestOf(method, path, body, headers), BASE, call, "key");
}

const fields = { Name: "Ada", Tags: ["a"], Age: 1.5, Team: [OTHER] };

test("both forms of a create and of an update are recognized, and may go together", () => {
  const one = singleOf("POST", "My%20Tasks", { fields });
  const list = singleOf("POST", "My%20Tasks", { records: [{ fields }] });
  expect(one).toMatchObject({
    isList: false,
    item: JSON.stringify({ fields }),
    path: `/v0/${BASE}/My%20Tasks`,
  });
  expect(list).toEqual({ ...one, isList: true });
  expect(singleOf("POST", "My%20Tasks/?", { fields })).toEqual(one);
  const update = singleOf("PATCH", `My%20Tasks/${ID}`, { fields });
  expect(update).toMatchObject({ recordId: ID, item: JSON.stringify({ id: ID, fields }), path: one!.path });
  expect(singleOf("PATCH", "My%20Tasks", { records: [{ id: ID, fields }] })).toEqual({
    ...update,
    isList: true,
  });
  expect(
    new Set([one, update, singleOf("PUT", `My%20Tasks/${ID}`, { fields })].map((write) => write!.group)).size,
  ).toBe(3);
});

test("writes that differ in more than their records are in different groups", () => {
  const groups = [
    singleOf("POST", "Tasks", { fields }),
    singleOf("POST", "tasks", { fields }),
    singleOf("POST", "Tasks", { fields, typecast: true }),
    singleOf("POST", "Tasks", { fields, returnFieldsByFieldId: true }),
    singleOf("POST", "Tasks", { fields }, { authorization: "Bearer y" }),
    singleOf("POST", "Tasks", { fields }, { "x-api-version": "0.2.0" }),
    singleOf("POST", "Tasks", { fields }, { origin: "https://a.example" }),
  ].map((write) => write!.group);
  expect(new Set(groups).size).toBe(groups.length);
  expect(singleOf("POST", "Tasks", { fields, typecast: false }, { "user-agent": "a" })!.group).toBe(
    groups[0],
  );
});

test.for<[string, string, unknown, Record<string, string>?]>([
  ["DELETE", `Tasks/${ID}`, {}],
  ["POST", "Tasks?x=1", { fields }],
  ["POST", "Tasks/listRecords", { fields }],
  ["POST", "Tasks", "{"],
  ["POST", "Tasks", []],
  ["POST", "Tasks", {}],
  ["POST", "Tasks", { fields: null }],
  ["POST", "Tasks", { fields: [] }],
  ["POST", "Tasks", { records: [] }],
  ["POST", "Tasks", { records: [{ fields }, { fields }] }],
  ["POST", "Tasks", { records: [{ fields }], fields }],
  ["POST", "Tasks", { records: [{ id: ID, fields }] }],
  ["POST", "Tasks", { records: [{ fields, createdTime: "x" }] }],
  ["POST", "Tasks", { fields, typecast: "true" }],
  ["POST", "Tasks", { fields, returnFieldsByFieldId: null }],
  ["POST", "Tasks", { fields, other: 1 }],
  ["POST", "Tasks", { fields: { Files: [{ url: "https://a.example" }] } }],
  ["POST", "Tasks", '{"fields":{"Age":1e999}}'],
  ["POST", "Tasks", '{"fields":{"Age":-0}}'],
  ["POST", "Tasks", '\ufeff{"fields":{"Age":1}}'],
  ["POST", "Tasks", { fields: { Name: "x".repeat(100_000) } }],
  ["POST", "Tasks", { fields }, { "content-type": "text/plain" }],
  ["POST", "Tasks", { fields }, { "content-encoding": "gzip" }],
  ["PATCH", "Tasks", { fields }],
  ["PATCH", "Tasks/no-record", { fields }],
  ["PATCH", `Tasks/${ID}`, { records: [{ id: ID, fields }] }],
  ["PATCH", "Tasks", { records: [{ fields }] }],
  ["PATCH", "Tasks", { records: [{ id: ID, fields }], performUpsert: { fieldsToMergeOn: ["Name"] } }],
])("%s %s %j is sent by itself", ([method, path, body, headers]) => {
  expect(singleOf(method, path, body, headers)).toBeUndefined();
});

function memberOf(method: string, path: string, body: unknown): BatchMember {
  const request = requestOf(method, path, body, { "accept-encoding": "gzip" });
  return { request, write: singleOf(method, path, body)!, resolve() {}, reject() {} };
}

test("a batch of one is the client's own request, and one of several has all records", async () => {
  const member = memberOf("PATCH", `Tasks/${ID}`, { fields, typecast: true });
  const other = memberOf("PATCH", "Tasks", { records: [{ id: OTHER, fields: {} }], typecast: true });
  expect(new WriteBatch([member]).compose()).toBe(member.request);
  const request = new WriteBatch([member, other]).compose();
  expect(request).toMatchObject({ method: "PATCH", path: `/v0/${BASE}/Tasks` });
  expect(JSON.parse(new TextDecoder().decode(request.body))).toEqual({
    records: [
      { id: ID, fields },
      { id: OTHER, fields: {} },
    ],
    typecast: true,
    returnFieldsByFieldId: false,
  });
  expect(request.headers.get("accept-encoding")).toBe("identity");
  expect(member.request.headers.get("accept-encoding")).toBe("gzip");
});

test("a batch takes ten, lets clients leave before it is closed, and aborts with the last", () => {
  const batch = new WriteBatch();
  const members = Array.from({ length: 10 }, () => memberOf("POST", "Tasks", { fields }));
  for (const member of members) {
    expect(batch.isOpen).toBe(true);
    batch.join(member);
  }
  expect(batch.isOpen).toBe(false);
  for (const member of members) expect(batch.leave(member)).toBe(true);
  expect(batch.signal.aborted).toBe(true);
  expect(batch.members).toEqual([members[9]]);
  const closed = new WriteBatch(members);
  closed.close();
  expect(closed.leave(members[0]!)).toBe(false);
  expect(closed.members).toHaveLength(10);
});

const record = (id: string) => ({ id, createdTime: "2026-01-01T00:00:00.000Z", fields: { Name: id } });
const answerOf = (body: unknown, headers: Record<string, string> = {}) => ({
  status: 200,
  statusText: "OK",
  headers: new Headers({
    server: "Tengine",
    etag: "x",
    "airtable-uncompressed-content-length": "999",
    ...headers,
  }),
  bytes: new TextEncoder().encode(typeof body === "string" ? body : JSON.stringify(body)),
});
const wanted = [
  { recordId: ID, isList: false },
  { recordId: undefined, isList: true },
];

test("each write gets its own record, in its own form", async () => {
  const details = { message: "partialSuccess" };
  const answer = answerOf({ records: [record(ID), record(OTHER)], details });
  const divided = await divideAnswer(answer, wanted);
  const bodies = divided!.map(({ bytes }) => JSON.parse(new TextDecoder().decode(bytes)));
  expect(bodies).toEqual([
    { ...record(ID), details },
    { records: [record(OTHER)], details },
  ]);
  const { bytes, headers } = divided![0]!;
  expect(Object.fromEntries(headers)).toEqual({
    server: "Tengine",
    "airtable-uncompressed-content-length": String(bytes.length),
  });
});

test.for<[string, unknown]>([
  ["no JSON", "{"],
  ["no list", record(ID)],
  ["fewer records", { records: [record(ID)] }],
  ["another order", { records: [record(OTHER), record(ID)] }],
  ["something that is no record", { records: [record(ID), null] }],
])("an answer with %s is not divided", async ([, body]) => {
  expect(await divideAnswer(answerOf(body), wanted)).toBeNull();
});

test("P8: the turns of a record follow one another, and other records do not wait", async () => {
  const turns = new RecordTurns();
  const order: string[] = [];
  const first = await turns.take("a", 60_000);
  const later = ["second", "third"].map(async (name) => {
    using _turn = await turns.take("a", 60_000);
    order.push(name);
  });
  using _other = await turns.take("b", 60_000);
  using _none = await turns.take(undefined, 60_000);
  order.push("first");
  first![Symbol.dispose]();
  await Promise.all(later);
  expect(order).toEqual(["first", "second", "third"]);
});

test("P8: a turn that was given up lets the next one wait for the earlier ones", async () => {
  const turns = new RecordTurns();
  const first = await turns.take("a", 60_000);
  const late = turns.take("a", 1);
  let isNext = false;
  const next = turns.take("a", 60_000).then((turn) => {
    isNext = true;
    return turn;
  });
  expect(await late).toBeUndefined();
  expect(isNext).toBe(false);
  first![Symbol.dispose]();
  expect(await next).toBeDefined();
});

/**
 * Write coalescing against a simulated source: each client is answered as if its write had been sent alone, which a
 * twin of the base shows, where the same writes are made one by one.
 */
import fc from "fast-check";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import type { Caller } from "../../apps/proxy/caller";
import { WriteCoalescer } from "../../apps/proxy/coalesce";
import { type BatchOutcome, WriteBatch } from "../../apps/proxy/coalesce/batch";
import { sendBatch } from "../../apps/proxy/coalesce/send-batch";
import type { SingleWrite } from "../../apps/proxy/coalesce/single-write";
import type { ProxyContext } from "../../apps/proxy/context";
import { requestHeaders } from "../../apps/proxy/headers";
import type { UpstreamRequest } from "../../apps/proxy/upstream";
import { type SandboxHandle, startSandbox } from "../../apps/sandbox/server";
import { BasetideError } from "../../core/errors";
import { SharedBudget } from "../../core/http";
import { withRequestId } from "../../core/request-id";
import { type Call, proxied } from "../../core/source";
import { fuzz } from "../support/fuzz";

const TABLE = "tblTasks000000001";
const RECORDS = 12;
const connections = new SharedBudget<never>({ most: 100, mostPer: { network: 100 } });
const open = () => connections.open({ network: "192.0.2.1" });
const idOf = (index: number) => `recTask${String(index).padStart(10, "0")}`;

let sandbox: SandboxHandle;
let baseId: string;
let twinId: string;
let coalescer: WriteCoalescer;
/** Records for which SQL is asked to show a write, one list for each client. */
let shown: string[][];
/** Records by which the table of each call is found. */
let located: string[][];

beforeAll(async () => {
  sandbox = await startSandbox({ port: 0, settings: { rateLimitOff: true } });
});
afterAll(() => sandbox?.[Symbol.asyncDispose]());
beforeEach(() => {
  [baseId, twinId] = [tasks(), tasks()];
  coalescer = new WriteCoalescer();
  shown = [];
  located = [];
});
afterEach(() => {
  sandbox.control.clearFaults();
  sandbox.control.clearLog();
});

function tasks(): string {
  return sandbox.control.createBase({
    name: "Tasks",
    tables: [
      {
        id: TABLE,
        name: "Tasks",
        fields: [
          { id: "fldName0000000001", name: "Name", type: "singleLineText" },
          { id: "fldAge00000000001", name: "Age", type: "number", options: { precision: 0 } },
          { id: "fldDone0000000001", name: "Done", type: "checkbox" },
          {
            id: "fldLoud0000000001",
            name: "Loud",
            type: "formula",
            options: { formula: "UPPER({fldName0000000001})", result: { type: "singleLineText" } },
          },
        ],
        records: Array.from({ length: RECORDS }, (_, index) => ({
          id: idOf(index),
          createdTime: "2026-01-01T00:00:00.000Z",
          fields: { Name: `seed ${index}`, Age: index },
        })),
      },
    ],
  });
}

interface Answer {
  status: number;
  headers: Headers;
  text: string;
}

interface Sending {
  headers?: Record<string, string>;
  signal?: AbortSignal;
  caller?: Partial<Caller>;
}

/** A write as the proxy forwards it, without a rate limit and without replicas. */
async function throughProxy(
  method: string,
  path: string,
  body: unknown,
  { headers = {}, signal = new AbortController().signal, caller = {} }: Sending = {},
): Promise<Answer> {
  const request = {
    method,
    address: sandbox.url,
    path: `/v0/${baseId}/${path}`,
    headers: requestHeaders(new Headers({ ...typical(), ...headers })),
    body: new TextEncoder().encode(JSON.stringify(body)),
  };
  const call = proxied.dialect.callOf(method, [baseId, ...path.split("/")], "");
  const target = { baseId, call, caller: { ...proven, ...caller } as Caller, open };
  const response = await coalescer.forward(context, request, target, signal, { ms: 0 });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

async function alone(method: string, path: string, body: unknown): Promise<Answer> {
  const response = await fetch(`${sandbox.url}/v0/${twinId}/${path}`, {
    method,
    headers: typical(),
    body: JSON.stringify(body),
  });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

const typical = () => ({
  authorization: `Bearer ${sandbox.key}`,
  "content-type": "application/json",
  "accept-encoding": "identity",
});

const proven = {
  keyHash: "key",
  quotaKey: undefined,
  found: { bases: [{ coalesceWrites: true, accountId: "a" }], isCurrent: true, mayBeConnected: false },
  isProven: true,
  isOwnKeyOf: () => true,
  answered() {},
} as unknown as Caller;

const context = {
  config: { upstreamTimeoutMs: 10_000 },
  log: { warn() {} },
  proxyMetrics: { failed() {}, coalesced() {} },
  writes: {
    bases: { current: async () => ({ mayBeConnected: false }) },
    prepare: async (_base: string, { ids }: Call & { kind: "write" }) => ({
      located: located.push(ids),
      bases: [],
      mayBeConnected: false,
      settle: async ({ ids }: { ids: string[] }) => {
        shown.push(ids);
        return true;
      },
    }),
  },
} as unknown as ProxyContext;

/** Of one connection or moment, or removed from every answer. */
const UNCOMPARED = ["date", "connection", "keep-alive", "transfer-encoding", "content-length", "set-cookie"];

/** What must be equal: the ids of new records and of the bases differ, and the times. */
function comparable({ status, headers, text }: Answer): unknown {
  const kept = [...headers].filter(
    ([name]) => !UNCOMPARED.includes(name) && name !== "strict-transport-security",
  );
  return {
    status,
    headers: Object.fromEntries(kept),
    text: text
      .replaceAll(/rec(?!Task0|Missing)\w{14}/g, "rec")
      .replaceAll(/"createdTime":"[^"]*"/g, '"createdTime":""')
      .replaceAll(/app\w{14}/g, "app"),
  };
}

const recordsOf = (id: string) => sandbox.control.dump(id).tables[0]!.records;
const calls = () => sandbox.control.log(baseId).map(({ method, path }) => `${method} ${path}`);
const create = (name: string, sending?: Sending) =>
  throughProxy("POST", TABLE, { fields: { Name: name } }, sending);
const idIn = ({ text }: Answer): string[] => {
  const body = JSON.parse(text) as { id: string; records?: { id: string }[] };
  return body.records?.map(({ id }) => id) ?? [body.id];
};

interface Op {
  kind: "create" | "PATCH" | "PUT" | "missing" | "two" | "odd";
  isList: boolean;
  byName: boolean;
  fields: Record<string, unknown>;
  options: Record<string, unknown>;
}

const often = <T>(arbitrary: fc.Arbitrary<T>) => ({ weight: 6, arbitrary });
const rarely = <T>(...values: T[]) => ({ weight: 1, arbitrary: fc.constantFrom(...values) });
type Json = Record<string, unknown>;
const kind: fc.Arbitrary<Op["kind"]> = fc.oneof(
  often(fc.constantFrom<Op["kind"]>("create", "PATCH")),
  rarely<Op["kind"]>("PUT", "missing", "two", "odd"),
);
const fields: fc.Arbitrary<Json> = fc.oneof(
  often<Json>(fc.record({ Name: fc.string({ unit: "grapheme", maxLength: 20 }), Age: fc.integer() })),
  often<Json>(fc.record({ Done: fc.boolean() })),
  rarely<Json>({ fldName0000000001: "by id" }, { Age: null }, {}),
  rarely<Json>({ Age: "seven" }, { Unknown: 1 }, { Loud: "x" }, { Age: { a: [1] } }),
);
const options: fc.Arbitrary<Json> = fc.oneof(
  often<Json>(fc.constant({})),
  rarely<Json>({ typecast: true }, { typecast: false }, { returnFieldsByFieldId: true }),
);
const byName = fc.oneof(often(fc.constant(false)), rarely(true));
const op: fc.Arbitrary<Op> = fc.record({ kind, isList: fc.boolean(), byName, fields, options });

/** The call of an operation; each has a record of its own. */
function callOf({ kind, isList, byName, fields, options }: Op, index: number): [string, string, unknown] {
  const table = byName ? "Tasks" : TABLE;
  const id = kind === "missing" ? "recMissing0000000" : idOf(index);
  if (kind === "two") return ["POST", table, { records: [{ fields }, { fields }], ...options }];
  if (kind === "odd") return ["POST", table, { fields, ...options, more: 1 }];
  if (kind === "create")
    return ["POST", table, { ...(isList ? { records: [{ fields }] } : { fields }), ...options }];
  const method = kind === "PUT" ? "PUT" : "PATCH";
  return isList
    ? [method, table, { records: [{ id, fields }], ...options }]
    : [method, `${table}/${id}`, { fields, ...options }];
}

fuzz(
  "P7: any writes at the same time are answered as if each had been sent alone",
  60,
  fc.asyncProperty(fc.array(op, { minLength: 2, maxLength: RECORDS }), async (ops) => {
    [baseId, twinId, shown] = [tasks(), tasks(), []];
    const expected: Answer[] = [];
    for (const [index, one] of ops.entries()) expected.push(await alone(...callOf(one, index)));
    const together = await Promise.all(ops.map((one, index) => throughProxy(...callOf(one, index))));
    expect(together.map(comparable)).toEqual(expected.map(comparable));
    const cells = (id: string) => recordsOf(id).map(({ fields }) => JSON.stringify(fields));
    expect(cells(baseId).sort()).toEqual(cells(twinId).sort());
    // I1. SQL is asked to show exactly what each client has written.
    const written = together.filter(({ status }) => status === 200).map(idIn);
    expect(shown.map(String).sort()).toEqual(written.map(String).sort());
    return true;
  }),
);

test("ten writes that arrive together are one call, and eleven are two", async () => {
  await Promise.all(Array.from({ length: 10 }, (_, index) => create(`${index}`)));
  expect(calls()).toEqual([`POST /v0/${baseId}/${TABLE}`]);
  await Promise.all(Array.from({ length: 11 }, (_, index) => create(`${index}`)));
  expect(calls()).toHaveLength(3);
});

test("one write that the source rejects costs a few calls, and fails alone", async () => {
  const answers = await Promise.all(
    Array.from({ length: 10 }, (_, index) =>
      index === 3 ? throughProxy("POST", TABLE, { fields: { Age: "no" } }) : create(`${index}`),
    ),
  );
  expect(answers.map(({ status }) => status)).toEqual(answers.map((_, index) => (index === 3 ? 422 : 200)));
  // Ten; five and five; three and two; two and one: that one and the rejected one by themselves.
  expect(calls().length).toBeLessThanOrEqual(8);
});

test("the table of records that are sent again is found by themselves, not by the one that was rejected", async () => {
  const update = (index: number, fields: Json) => throughProxy("PATCH", `Tasks/${idOf(index)}`, { fields });
  const answers = await Promise.all([
    update(0, { Age: "no" }),
    update(1, { Age: 1 }),
    update(2, { Age: 2 }),
    update(3, { Age: 3 }),
  ]);
  expect(answers.map(({ status }) => status)).toEqual([422, 200, 200, 200]);
  expect(located).toContainEqual([idOf(2), idOf(3)]);
});

test("P8: the updates of one record are carried out one after the other, in order of arrival", async () => {
  const update = (step: number) => throughProxy("PATCH", `${TABLE}/${idOf(0)}`, { fields: { Age: step } });
  const ended: number[] = [];
  await Promise.all([0, 1, 2, 3].map((step) => update(step).then(() => ended.push(step))));
  expect(ended).toEqual([0, 1, 2, 3]);
  expect(calls()).toHaveLength(4);
  expect(recordsOf(baseId)[0]!.fields.fldAge00000000001).toBe(3);
});

test("a client that disconnects takes only its own write back", async () => {
  const leaving = new AbortController();
  const before = recordsOf(baseId).length;
  const all = [create("left", { signal: leaving.signal }), create("stayed"), create("stayed")];
  await joined();
  leaving.abort();
  expect((await Promise.all(all)).map(({ status }) => status)).toEqual([502, 200, 200]);
  expect(recordsOf(baseId)).toHaveLength(before + 2);
});

test("nothing is sent if all clients have disconnected, and later writes do not wait for them", async () => {
  const leaving = new AbortController();
  const left = create("left", { signal: leaving.signal });
  await joined();
  leaving.abort();
  expect((await left).status).toBe(502);
  expect((await create("left before", { signal: leaving.signal })).status).toBe(502);
  expect((await create("after")).status).toBe(200);
  expect(calls()).toHaveLength(1);
});

/** Resolves when all writes that have begun are in their batches, and before any timer. */
async function joined(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await Promise.resolve();
}

test.for([
  ["status_503", "before", 503, 0],
  ["status_502_html", "after", 502, 1],
  ["reset", "after", 502, 1],
  ["unauthorized", "before", 401, 0],
  ["rate_limited", "before", 429, 0],
] as const)(
  "%s, %s: all clients get the answer, and nothing is sent again",
  async ([kind, when, status, written]) => {
    sandbox.control.addFault({ kind, when, base: baseId, count: 1 });
    const before = recordsOf(baseId).length;
    const answers = await Promise.all(Array.from({ length: 6 }, () => create("same")));
    expect(answers.map((answer) => answer.status)).toEqual(Array(6).fill(status));
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
    expect(recordsOf(baseId)).toHaveLength(before + 6 * written);
    expect(calls()).toHaveLength(1);
  },
);

test("what the key may not do, each client is told by its own call", async () => {
  sandbox.control.addFault({ kind: "forbidden", base: baseId });
  const answers = await Promise.all(Array.from({ length: 4 }, () => create("no")));
  expect(answers.map(({ status }) => status)).toEqual([403, 403, 403, 403]);
  expect(calls()).toHaveLength(5);
});

test("an answer that cannot be divided belongs to no write, and all records are shown", async () => {
  sandbox.control.addFault({ kind: "broken_json", when: "after", base: baseId, count: 1 });
  const answers = await Promise.all(
    [0, 1].map((index) => throughProxy("PATCH", `${TABLE}/${idOf(index)}`, { fields: { Age: 7 } })),
  );
  expect(answers.map(({ status }) => status)).toEqual([502, 502]);
  expect(shown).toEqual([[idOf(0), idOf(1)]]);
});

test("the proxy's own answers have each request's own id", async () => {
  sandbox.control.addFault({ kind: "reset", when: "before", base: baseId });
  const ids = ["a-1", "a-2", "a-3"];
  const answers = await Promise.all(ids.map((id) => withRequestId(id, () => create("x"))));
  expect(answers.map(({ headers }) => headers.get("x-request-id"))).toEqual(ids);
});

test("no write can join a batch that was refused", async () => {
  const refusing = {
    ...context,
    limiter: {
      acquireClient: async () => {
        throw new BasetideError("quota_timeout", undefined, { details: { retryAfterSeconds: 1 } });
      },
    },
    writes: {
      bases: { current: async () => ({ mayBeConnected: true }) },
      quotaKey: () => "airtable:app",
    },
  } as unknown as ProxyContext;
  const outcome = Promise.withResolvers<BatchOutcome>();
  const request = { address: sandbox.url } as UpstreamRequest;
  const batch = new WriteBatch([{ request, write: {} as SingleWrite, ...outcome }]);
  const call: Call = { kind: "write", tableRef: TABLE, ids: [] };
  await sendBatch(refusing, batch, { baseId, call, caller: proven, open });
  const { refusal } = (await outcome.promise) as { refusal: Response };
  expect(refusal.status).toBe(429);
  expect(batch.isOpen).toBe(false);
});

test.for<[string, Partial<Caller>, number]>([
  ["an unproven key", { isProven: false }, 3],
  ["a base without the setting", { found: foundOf({ a: false }) }, 3],
  [
    "another account's base, with a key of no base",
    { found: foundOf({ a: true, b: false }), isOwnKeyOf: () => false },
    3,
  ],
  [
    "another account's base, with the own key of that base",
    { found: foundOf({ a: true, b: false }), isOwnKeyOf: ({ accountId }) => accountId === "b" },
    3,
  ],
  [
    "another account's base, with the base's own key",
    { found: foundOf({ a: true, b: false }), isOwnKeyOf: ({ accountId }) => accountId === "a" },
    1,
  ],
  ["any key, if one account has connected the base", { isOwnKeyOf: () => false }, 1],
])("%s", async ([, caller, count]) => {
  await Promise.all([1, 2, 3].map((index) => create(`${index}`, { caller })));
  expect(calls()).toHaveLength(count);
});

function foundOf(coalesceWrites: Record<string, boolean>): Caller["found"] {
  const bases = Object.entries(coalesceWrites).map(([accountId, isOn]) => ({
    accountId,
    coalesceWrites: isOn,
  }));
  return { bases, isCurrent: true, mayBeConnected: false } as unknown as Caller["found"];
}

/** The adapter over HTTP, with a source that answers correctly, incorrectly, too slowly or not at all. */
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { BasetideError } from "../../../core/errors";
import { platformById, platforms, type SourceTable } from "../../../core/source";
import { createAirtable } from "../../../core/source/airtable";
import { until } from "../../support/poll";

const KEY = "patAAAAAAAAAAAAAA.secret";
const TIMEOUT_MS = 300;
const never = new AbortController().signal;
const table: SourceTable = { id: "tblA", name: "A", primaryFieldId: "fldA", fields: [] };
const recordA = { id: "recA", createdTime: "2024-01-02T03:04:05.000Z", fields: { fldA: "x" } };

interface Seen {
  method: string;
  path: string;
  query: URLSearchParams;
  headers: Headers;
  body: string;
}

const seen: Seen[] = [];
let answer: (request: Seen, index: number) => Response | Promise<Response>;
let cancelled = 0;

const stub = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  async fetch(request) {
    const { pathname, searchParams } = new URL(request.url);
    const { method, headers } = request;
    const one = { method, path: pathname, query: searchParams, headers, body: await request.text() };
    return answer(one, seen.push(one) - 1);
  },
});
afterAll(() => stub.stop(true));
beforeEach(() => {
  seen.length = 0;
  cancelled = 0;
});

const upstreams = { "api.airtable.com": `http://127.0.0.1:${stub.port}` };
const connection = createAirtable({ upstreams, timeoutMs: TIMEOUT_MS }).connect(KEY);
const json = (value: unknown, init?: ResponseInit) => Response.json(value as object, init);
const listPage = (options = {}, signal = never) => connection.listPage("appA", table, options, signal);

/** A body that sends `chunk` repeatedly, every `everyMs`, or as fast as it is read. */
function endless(chunk: string, everyMs = 0): Response {
  const bytes = new TextEncoder().encode(chunk);
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      await Bun.sleep(everyMs);
      controller.enqueue(bytes);
    },
    cancel() {
      cancelled++;
    },
  });
  return new Response(body, { headers: { "content-type": "application/json" } });
}

describe("a request", () => {
  test("sends the key and a user agent, and accepts gzip", async () => {
    answer = () => json({ id: "usrA", email: "a@example.org" });
    expect(await connection.whoami(never)).toEqual({ id: "usrA", email: "a@example.org" });
    const { method, path, headers } = seen[0]!;
    expect([method, path, headers.get("authorization")]).toEqual(["GET", "/v0/meta/whoami", `Bearer ${KEY}`]);
    expect(headers.get("user-agent")).toMatch(/^Basetide\/\d+\.\d+\.\d+$/);
    expect(headers.get("accept-encoding")).toBe("gzip");
  });

  test.each([
    ["with its length", (text: string) => Bun.gzipSync(text)],
    ["in chunks", (text: string) => new Blob([Bun.gzipSync(text)]).stream()],
    [
      "of two members",
      (text: string) => new Blob([text.slice(0, 30), text.slice(30)].map((part) => Bun.gzipSync(part))),
    ],
  ])("reads a gzip answer %s", async (_, body) => {
    const text = JSON.stringify({ records: [recordA] });
    answer = () => new Response(body(text), { headers: { "content-encoding": "gzip" } });
    expect((await listPage()).record(0)).toEqual(recordA);
  });

  test("with a key that no header can carry is refused without a request", async () => {
    for (const key of ["", "two words", "line\nfeed", "ключ"]) {
      const call = createAirtable({ upstreams, timeoutMs: TIMEOUT_MS }).connect(key).whoami(never);
      await expect(call).rejects.toMatchObject({ code: "source_key_refused" });
    }
    expect(seen).toEqual([]);
  });

  test("never reveals the key, even if the source echoes it", async () => {
    answer = () => json({ error: { type: "UNAUTHORIZED", message: `No such key ${KEY}` } }, { status: 401 });
    const error = await connection.whoami(never).catch((error: unknown) => error);
    expect(error).toMatchObject({
      code: "source_key_refused",
      details: { status: 401, type: "UNAUTHORIZED" },
    });
    expect(Bun.inspect(error)).not.toContain(KEY);
    expect((error as BasetideError).message).toContain("No such key [key]");
  });
});

describe("a bad answer", () => {
  test.each<[string, () => Response]>([
    ["HTML with 200", () => new Response("<html></html>", { headers: { "content-type": "text/html" } })],
    ["cut JSON", () => new Response('{"records":[{"id":"recA","createdTime":"2024')],
    ["an empty body", () => new Response("")],
    ["another shape", () => json({ tables: [] })],
    ["a redirect", () => Response.redirect("http://127.0.0.1:1/elsewhere")],
    ["a body without an end", () => endless("x".repeat(4 * 1024 * 1024))],
    ["gzip that is none", () => new Response("{}", { headers: { "content-encoding": "gzip" } })],
  ])("is %s", async (_, make) => {
    answer = make;
    const patient = createAirtable({ upstreams, timeoutMs: 20_000 }).connect(KEY);
    await expect(patient.listPage("appA", table, {}, never)).rejects.toMatchObject({
      code: "source_bad_answer",
    });
    expect(seen.length).toBe(1);
  });

  test("does not affect the connection", async () => {
    answer = () => endless("x".repeat(4 * 1024 * 1024));
    await expect(listPage()).rejects.toBeInstanceOf(BasetideError);
    answer = () => json({ records: [recordA] });
    expect((await listPage()).size).toBe(1);
  });
});

describe("waiting for the source", () => {
  test.each<[string, () => Response | Promise<Response>]>([
    ["never answers", () => new Promise<Response>(() => {})],
    ["sends its body drop by drop", () => endless(" ", 20)],
    ["sends an error drop by drop", () => new Response(endless(" ", 20).body, { status: 500 })],
  ])("times out if it %s", async (_, make) => {
    answer = make;
    const start = performance.now();
    await expect(listPage()).rejects.toMatchObject({
      code: "source_timeout",
      details: { timeoutMs: TIMEOUT_MS },
    });
    expect(performance.now() - start).toBeGreaterThan(TIMEOUT_MS - 50);
  });

  test.each<[string, () => Response | Promise<Response>]>([
    ["before the answer", () => new Promise<Response>(() => {})],
    ["in the middle of the body", () => endless(" ", 20)],
  ])("ends at once when the caller cancels %s", async (_, make) => {
    answer = make;
    const patient = createAirtable({ upstreams, timeoutMs: 60_000 }).connect(KEY);
    const stop = new AbortController();
    const call = patient.listPage("appA", table, {}, stop.signal);
    const refused = expect(call).rejects.toMatchObject({ code: "sync_stopped" });
    await until(() => seen.length === 1, { what: "the request arrives" });
    stop.abort();
    await refused;
  });

  test("releases the source's connection", async () => {
    answer = () => endless(" ", 20);
    await expect(listPage()).rejects.toMatchObject({ code: "source_timeout" });
    await until(() => cancelled === 1, { what: "the source sees the end" });
  });

  test("does not start if the caller has canceled already", async () => {
    await expect(listPage({}, AbortSignal.abort())).rejects.toMatchObject({ code: "sync_stopped" });
    expect(seen).toEqual([]);
  });

  test("that is unreachable names the address", async () => {
    const free = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
    const address = `http://127.0.0.1:${free.port}`;
    await free.stop(true);
    const gone = createAirtable({ upstreams: { "api.airtable.com": address }, timeoutMs: 5_000 }).connect(
      KEY,
    );
    await expect(gone.whoami(never)).rejects.toMatchObject({
      code: "source_unavailable",
      message: expect.stringContaining(address),
    });
  });

  test("that breaks off in a body ends in an error that is retried", async () => {
    const breaking = Bun.listen({
      hostname: "127.0.0.1",
      port: 0,
      socket: {
        data(socket) {
          socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{"records":[');
          socket.end();
        },
      },
    });
    const address = `http://127.0.0.1:${breaking.port}`;
    const call = createAirtable({ upstreams: { "api.airtable.com": address }, timeoutMs: 5_000 });
    await expect(call.connect(KEY).listPage("appA", table, {}, never)).rejects.toMatchObject({
      code: "source_unavailable",
    });
    breaking.stop(true);
  });
});

describe("a page of records", () => {
  test("is requested by table id, in pages of 100, keyed by field id", async () => {
    answer = () => json({ records: [recordA], offset: "itrA/recA" });
    // Far longer than a URL may be.
    const filter = `A&'+é'&'${"x".repeat(20_000)}'`;
    const sort = [{ field: "fldA", direction: "desc" as const }];
    const page = await listPage({ offset: "itrA/recZ", filter, sort });
    expect([page.size, page.id(0), page.offset]).toEqual([1, "recA", "itrA/recA"]);
    const { method, path, query, headers, body } = seen[0]!;
    expect(`${method} ${path}?${query}`).toBe("POST /v0/appA/tblA/listRecords?");
    expect(headers.get("content-type")).toBe("application/json");
    expect(JSON.parse(body)).toEqual({
      pageSize: 100,
      returnFieldsByFieldId: true,
      offset: "itrA/recZ",
      filterByFormula: filter,
      sort,
    });
  });

  test("with the requested offset as its next one is a bad answer: the list would never end", async () => {
    answer = () => json({ records: [], offset: "itrA/recA" });
    await expect(listPage({ offset: "itrA/recA" })).rejects.toMatchObject({ code: "source_bad_answer" });
  });

  test("that the source refuses has the source's text", async () => {
    const error = { type: "UNKNOWN_FIELD_NAME", message: 'Unknown field name: "Last Name"' };
    answer = () => json({ error }, { status: 422, headers: { "retry-after": "3" } });
    await expect(listPage()).rejects.toMatchObject({
      code: "source_schema_changed",
      message: expect.stringContaining('Unknown field name: "Last Name"'),
      details: { status: 422, type: "UNKNOWN_FIELD_NAME", retryAfterMs: 3_000 },
    });
  });
});

describe("records by id", () => {
  const byIds = (ids: string[], options = {}) => connection.listByIds("appA", table, ids, options, never);

  test("are requested at once, and the next page with the same ids", async () => {
    answer = (_, index) =>
      json({ records: index === 0 ? [] : [recordA], offset: index === 0 ? "itrA/1" : undefined });
    const first = await byIds(["recA", "recB"]);
    expect([first.size, first.offset]).toEqual([0, "itrA/1"]);
    expect((await byIds(["recA", "recB"], { offset: first.offset })).record(0)).toEqual(recordA);
    const filterByFormula = "OR(RECORD_ID()='recA',RECORD_ID()='recB')";
    expect(seen.map(({ body }) => JSON.parse(body))).toEqual([
      { pageSize: 100, returnFieldsByFieldId: true, filterByFormula },
      { pageSize: 100, returnFieldsByFieldId: true, filterByFormula, offset: "itrA/1" },
    ]);
  });

  test("are 1 to 100, and contain nothing that could be part of a formula", async () => {
    await expect(byIds([])).rejects.toThrow(RangeError);
    await expect(byIds(Array<string>(101).fill("recA"))).rejects.toThrow(RangeError);
    await expect(byIds(["recA')"])).rejects.toMatchObject({ code: "invalid_request" });
    expect(seen).toEqual([]);
  });
});

describe("one record", () => {
  const get = () => connection.getRecord("appA", "tblA", "recA", never);

  test("is returned keyed by field id", async () => {
    answer = () => json(recordA);
    expect(await get()).toEqual(recordA);
    expect(`${seen[0]!.path}?${seen[0]!.query}`).toBe("/v0/appA/tblA/recA?returnFieldsByFieldId=true");
  });

  test.each([
    { error: { type: "MODEL_ID_NOT_FOUND" } },
    { error: "NOT_FOUND" },
    { error: { type: "NOT_FOUND" } },
  ])("is null if the source answers 404 %j", async (body) => {
    answer = () => json(body, { status: 404 });
    expect(await get()).toBeNull();
  });

  test.each([
    [404, "TABLE_NOT_FOUND", "source_not_found"],
    [403, "INVALID_PERMISSIONS_OR_MODEL_NOT_FOUND", "source_forbidden"],
  ])("is not reported missing by a %i %s", async (status, type, code) => {
    answer = () => json({ error: { type } }, { status });
    await expect(get()).rejects.toMatchObject({ code, details: { type } });
  });

  test("that is not the requested one is a bad answer", async () => {
    answer = () => json({ ...recordA, id: "recB" });
    await expect(get()).rejects.toMatchObject({ code: "source_bad_answer" });
  });
});

describe("the bases of a key", () => {
  const base = (id: string) => ({ id, name: id, permissionLevel: "read" });

  test("are read page by page", async () => {
    answer = ({ query }) =>
      json(query.has("offset") ? { bases: [base("appB")] } : { bases: [base("appA")], offset: "itrA/appA" });
    const bases = await connection.listBases(never);
    expect(bases.map(({ id, permission }) => `${id} ${permission}`)).toEqual(["appA read", "appB read"]);
    expect(seen.map(({ query }) => query.get("offset"))).toEqual([null, "itrA/appA"]);
  });

  test("that never end are a bad answer", async () => {
    answer = () => json({ bases: [base("appA")], offset: "itrA/appA" });
    await expect(connection.listBases(never)).rejects.toMatchObject({ code: "source_bad_answer" });
  });
});

test("the schema of a base is requested by its id", async () => {
  answer = () => json({ tables: [{ id: "tblA", name: "A", primaryFieldId: "fldA", fields: [] }] });
  expect(await connection.getSchema("appA", never)).toEqual({ tables: [table] });
  expect(seen[0]!.path).toBe("/v0/meta/bases/appA/tables");
});

describe("a platform", () => {
  test("is found by its id", () => {
    const all = platforms({ upstreams, upstreamTimeoutMs: 1 });
    expect(platformById(all, "airtable")).toMatchObject({ id: "airtable", name: "Airtable" });
    expect(() => platformById(all, "excel")).toThrowError(
      expect.objectContaining({ code: "invalid_request", message: expect.stringContaining("airtable") }),
    );
  });

  test("whose address is not configured names the variable to set", () => {
    expect(() => createAirtable({ upstreams: {}, timeoutMs: 1 })).toThrowError(
      expect.objectContaining({ code: "config_invalid", message: expect.stringContaining("UPSTREAMS") }),
    );
  });
});

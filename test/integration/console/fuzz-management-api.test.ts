/** Every call in the management API's own description, with any path, query and body: an answer, or a coded error. */
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { consoleApp } from "../../../apps/console/app";
import { listBases } from "../../../core/control/bases";
import { errorCodes } from "../../../core/errors";
import { GOOD_KEY, type TestControl, testControl } from "../../support/control-support";
import { anyJson, anyText, damaged, fuzz, nested } from "../../support/fuzz";

/** The part of JSON Schema that the description uses. */
interface Shape {
  type?: string;
  const?: unknown;
  enum?: unknown[];
  anyOf?: Shape[];
  properties?: Record<string, Shape>;
  required?: string[];
  items?: Shape;
}

interface Operation {
  parameters?: { name: string; in: "path" | "query"; schema?: Shape }[];
  requestBody?: { content: Record<string, { schema: Shape }> };
}

interface Call {
  method: string;
  path: string;
  query: string;
  body: unknown;
}

let control: TestControl;
let app: ReturnType<typeof consoleApp>;
let token: string;
let baseId: string;
const calls: { method: string; path: string; operation: Operation }[] = [];

beforeAll(async () => {
  control = await testControl();
  const config = { ...control.ctx.config, apiRequestsPerMinute: Number.MAX_SAFE_INTEGER };
  app = consoleApp({ ...control.ctx, config });
  ({ token } = await control.addAccount("fuzz@example.com"));
  const description = await (await app.handle(new Request("http://console/openapi"))).json();
  for (const [path, operations] of Object.entries<Record<string, Operation>>(description.paths)) {
    for (const [method, operation] of Object.entries(operations)) {
      if (path.startsWith("/api/")) calls.push({ method: method.toUpperCase(), path, operation });
    }
  }
  await ask("POST", "/api/v1/bases", { platform: "airtable", api_key: GOOD_KEY, base_id: "appOne" });
  baseId = (await listBases(control.ctx.db))[0]!.id;
});
afterAll(() => control?.[Symbol.asyncDispose]());

async function ask(method: string, path: string, body: unknown, headers: Record<string, string> = {}) {
  const response = await app.handle(
    new Request(`http://console${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json", ...headers },
      body:
        method === "GET" ? undefined : body instanceof Uint8Array ? Buffer.from(body) : JSON.stringify(body),
    }),
  );
  return { status: response.status, text: await response.text() };
}

/** Values that reach further than random ones: an existing base, a missing server. */
const likely = fc.constantFrom(
  "airtable",
  GOOD_KEY,
  "appOne",
  "appTwo",
  "new",
  "existing",
  "external",
  "public",
  "pg_catalog",
  "a".repeat(63),
  "postgres://127.0.0.1:1/x",
  "postgres://u:p@localhost:1/x?sslmode=require",
  "postgres://%zz@127.0.0.1:1/%00",
  "http://127.0.0.1:1",
  "postgres://",
);
const value = anyJson(
  likely,
  fc.constantFrom({ toString: null }, { valueOf: 1, toString: [] }, nested(50), nested(1000)),
);
const text = fc.oneof(likely, anyText);

/** Values that resemble this schema. */
function ofShape(shape: Shape): fc.Arbitrary<unknown> {
  if (shape.const !== undefined) return fc.constant(shape.const);
  if (shape.enum) return fc.constantFrom(...shape.enum);
  if (shape.anyOf) return fc.oneof(...shape.anyOf.map(ofShape));
  if (shape.type === "boolean") return fc.boolean();
  if (shape.type === "integer" || shape.type === "number") return fc.integer();
  if (shape.type === "array") return fc.array(ofShape(shape.items ?? {}), { maxLength: 3 });
  if (shape.type === "object") {
    const parts = Object.entries(shape.properties ?? {}).map(
      ([name, part]) => [name, ofShape(part)] as const,
    );
    return fc.record(Object.fromEntries(parts), { requiredKeys: shape.required ?? [] });
  }
  return shape.type === "string" ? text : value;
}

function bodyOf({ requestBody }: Operation): fc.Arbitrary<unknown> {
  const shape = requestBody?.content["application/json"]?.schema;
  if (!shape) return value;
  const formed = ofShape(shape);
  return fc.oneof(formed, damaged(formed), value);
}

/** The calls are known only when the test runs. */
const anyCall: fc.Arbitrary<Call> = fc.nat().chain((at) => {
  if (calls.length === 0) return fc.constant({ method: "GET", path: "/", query: "", body: undefined });
  const { method, path, operation } = calls[at % calls.length]!;
  // Later calls could not use a deleted base.
  const stranger = fc.oneof(anyText, fc.constant("bas_00000000000000000000")).filter((id) => id !== "");
  const id = method === "DELETE" ? stranger : fc.option(stranger, { freq: 2 });
  const named = (operation.parameters ?? []).filter((parameter) => parameter.in === "query");
  const query = fc.array(
    fc.tuple(
      named.length > 0 ? fc.constantFrom(...named.map(({ name }) => name)) : anyText,
      fc.oneof(fc.integer().map(String), anyText),
    ),
    { maxLength: 2 },
  );
  return fc.tuple(id, query, bodyOf(operation)).map(([id, query, body]) => ({
    method,
    path: path.replace(/\{[^}]+\}/g, () => encodeURIComponent((id ?? baseId).toWellFormed())),
    query: new URLSearchParams(query).toString(),
    body,
  }));
});

/** Quick to read; with indentation it is a gigabyte. */
const deepList = "[".repeat(20_000) + "]".repeat(20_000);

function expectCoded({ status, text }: { status: number; text: string }): void {
  expect(status, text).toBeGreaterThanOrEqual(200);
  expect(status, text).toBeLessThan(500);
  if (status < 400) return;
  const { error } = JSON.parse(text);
  expect(Object.keys(errorCodes)).toContain(error.code);
  expect(error).toMatchObject({
    message: expect.stringMatching(/./),
    request_id: expect.stringMatching(/./),
  });
}

test("the description has the calls that are tested", () => {
  const named = calls.map(({ method, path }) => `${method} ${path}`);
  expect(named).toEqual(expect.arrayContaining(["POST /api/v1/bases", "PATCH /api/v1/bases/{id}"]));
  expect(named.length).toBeGreaterThanOrEqual(13);
});

fuzz(
  "any JSON to any call is answered, or refused with a code",
  1000,
  fc.asyncProperty(anyCall, async ({ method, path, query, body }) => {
    expectCoded(await ask(method, query ? `${path}?${query}` : path, body));
  }),
);

fuzz(
  "a body of any bytes and of any type is refused with a code",
  300,
  fc.asyncProperty(
    anyCall,
    fc.oneof(
      fc.uint8Array({ maxLength: 100 }),
      fc
        .constantFrom("{", "[".repeat(100_000), deepList, `{"kind":${deepList}}`, "a=b", "--x\r\n")
        .map((text) => Buffer.from(text)),
    ),
    fc.constantFrom(
      "application/json",
      "application/json; charset=x",
      "multipart/form-data; boundary=x",
      "multipart/form-data",
      "text/plain",
      "application/x-www-form-urlencoded",
      "application/octet-stream",
      ";",
      "x",
    ),
    async ({ method, path }, bytes, type) => {
      if (method === "DELETE" || path.endsWith("/rotate")) return;
      expectCoded(await ask(method, path, bytes, { "content-type": type }));
    },
  ),
);

fuzz(
  "no invalid token gives access",
  300,
  fc.asyncProperty(
    anyCall,
    fc.stringMatching(/^[ -~]*$/),
    fc.constantFrom("", "Bearer ", "bearer", "Basic "),
    async (call, secret, scheme) => {
      const answer = await ask(call.method, call.path, call.body, { authorization: scheme + secret });
      expect([answer.status, JSON.parse(answer.text).error.code]).toEqual([401, "unauthorized"]);
    },
  ),
);

test("the console still works after all of that", async () => {
  const { status, text } = await ask("GET", `/api/v1/bases/${baseId}`, undefined);
  expect([status, JSON.parse(text).id]).toEqual([200, baseId]);
});

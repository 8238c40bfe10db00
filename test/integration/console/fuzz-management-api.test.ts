/** Every call in the management API's own description, with any path, query and body: an answer, or a coded error. */
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { consoleApp } from "../../../apps/console/app";
import type { ApiOperation, JsonSchema } from "../../../apps/console/openapi";
import { listBases } from "../../../core/control/bases";
import { errorCodes } from "../../../core/errors";
import { apiDocument } from "../../support/api-description";
import { GOOD_KEY, type TestControl, testControl } from "../../support/control-support";
import { anyJson, anyText, damaged, fuzz, nested } from "../../support/fuzz";

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
const calls: { method: string; path: string; operation: ApiOperation }[] = [];

beforeAll(async () => {
  control = await testControl();
  const config = { ...control.ctx.config, apiRequestsPerMinute: Number.MAX_SAFE_INTEGER };
  app = consoleApp({ ...control.ctx, config });
  ({ token } = await control.addAccount("fuzz@example.com"));
  for (const [path, operations] of Object.entries(apiDocument.paths)) {
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

/** Values that this schema accepts. */
function ofSchema(schema: JsonSchema): fc.Arbitrary<unknown> {
  if (schema.$ref !== undefined) {
    return ofSchema(apiDocument.components.schemas[schema.$ref.split("/").at(-1)!]!);
  }
  if (schema.const !== undefined) return fc.constant(schema.const);
  if (schema.enum) return fc.constantFrom(...schema.enum);
  if (schema.anyOf) return fc.oneof(...schema.anyOf.map(ofSchema));
  const [type, ...others] = [schema.type ?? []].flat();
  if (others.length > 0)
    return fc.oneof(...[type!, ...others].map((one) => ofSchema({ ...schema, type: one })));
  if (type === "boolean") return fc.boolean();
  if (type === "null") return fc.constant(null);
  if (type === "integer" || type === "number") {
    return fc.integer({ min: schema.minimum ?? -(2 ** 31), max: schema.maximum ?? 2 ** 31 - 1 });
  }
  if (type === "array") {
    return fc.array(ofSchema(schema.items ?? {}), {
      minLength: schema.minItems ?? 0,
      maxLength: Math.min(3, schema.maxItems ?? 3),
    });
  }
  if (type === "object") {
    const parts = Object.entries(schema.properties ?? {}).map(
      ([name, part]) => [name, ofSchema(part)] as const,
    );
    return fc
      .record(Object.fromEntries(parts), { requiredKeys: schema.required ?? [], noNullPrototype: true })
      .filter((made) => Object.keys(made).length >= (schema.minProperties ?? 0));
  }
  return type === "string" ? textOf(schema) : value;
}

/** Lengths are counted in code units. */
function textOf({ pattern, minLength = 0, maxLength = 1000 }: JsonSchema): fc.Arbitrary<string> {
  const any = pattern === undefined ? text : fc.stringMatching(new RegExp(pattern));
  const fits = (one: string) =>
    one.length >= minLength && one.length <= maxLength && (!pattern || new RegExp(pattern).test(one));
  return fc.oneof(likely, any).filter(fits);
}

function wellFormed({ requestBody }: ApiOperation): fc.Arbitrary<unknown> | undefined {
  const schema = requestBody?.content["application/json"]?.schema;
  return schema && ofSchema(schema);
}

function bodyOf(operation: ApiOperation): fc.Arbitrary<unknown> {
  const formed = wellFormed(operation);
  return formed ? fc.oneof(formed, damaged(formed), value) : value;
}

/** The calls are known only when the test runs. */
const anyCall: fc.Arbitrary<Call> = fc.nat().chain((at) => {
  if (calls.length === 0) return fc.constant({ method: "GET", path: "/", query: "", body: undefined });
  const { method, path, operation } = calls[at % calls.length]!;
  // Later calls could not use a deleted base.
  // Without an id, and with a dot segment, it would be another path.
  const stranger = fc
    .oneof(anyText, fc.constant("bas_00000000000000000000"))
    .filter((id) => !["", ".", ".."].includes(id));
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

/** A call that has a body, with one that its description accepts. */
const anyFormedCall = fc.nat().chain((at) => {
  const withBody = calls.filter(({ operation, method }) => operation.requestBody && method !== "DELETE");
  if (withBody.length === 0) return fc.constant({ method: "GET", path: "/", body: undefined as unknown });
  const { method, path, operation } = withBody[at % withBody.length]!;
  const filled = path.replace(/\{[^}]+\}/g, baseId);
  return wellFormed(operation)!.map((body) => ({ method, path: filled, body }));
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
  "a body that the description accepts is never refused for its form",
  300,
  fc.asyncProperty(anyFormedCall, async ({ method, path, body }) => {
    const answer = await ask(method, path, body);
    expectCoded(answer);
    if (answer.status === 422) expect(JSON.parse(answer.text).error.message).not.toMatch(/^body: /);
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

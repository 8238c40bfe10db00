/** Error answers of the sandbox, word for word, and what keys may do. */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { SandboxHandle } from "../../../apps/sandbox/server";
import { call, crew, errorOf, PEOPLE, quietSandbox } from "../../support/sandbox-support";

let sandbox: SandboxHandle;
let baseId: string;

beforeAll(async () => {
  sandbox = await quietSandbox();
});
afterAll(() => sandbox.stop());
beforeEach(() => {
  sandbox.control.reset();
  sandbox.control.settings({ rateLimitOff: true });
  baseId = crew(sandbox);
});

const UNKNOWN_MODEL = [
  403,
  "INVALID_PERMISSIONS_OR_MODEL_NOT_FOUND",
  "Invalid permissions, or the requested model was not found. Check that both your user and your token have the " +
    "required permissions, and that the model names and/or ids are correct.",
];
const NOT_PERMITTED = [403, "INVALID_PERMISSIONS", "You are not permitted to perform this operation"];

test("a key that is unknown, revoked, malformed or missing is refused", async () => {
  const refused = [401, "AUTHENTICATION_REQUIRED", "Authentication required"];
  const whoami = async (key: string) => errorOf(await call(sandbox, "GET", "/meta/whoami", undefined, key));
  expect(await whoami("patUnknown.123")).toEqual(refused);
  expect(await whoami("patOnlyTheIdOfAKey")).toEqual([401, "UNAUTHORIZED", "Invalid authentication token"]);
  const key = sandbox.control.createKey();
  expect((await call(sandbox, "GET", "/meta/whoami", undefined, key)).status).toBe(200);
  sandbox.control.revokeKey(key);
  expect(await whoami(key)).toEqual(refused);
  const basic = await fetch(`${sandbox.url}/v0/meta/whoami`, { headers: { authorization: "Basic abc" } });
  expect([basic.status, await basic.json()]).toEqual([
    401,
    { error: { type: "AUTHENTICATION_REQUIRED", message: "Authentication required" } },
  ]);
  expect((await fetch(`${sandbox.url}/v0/meta/whoami?api_key=${sandbox.key}`)).status).toBe(401);
});

test("whoami tells the id, with the scope for it the e-mail, and scopes to OAuth tokens only", async () => {
  const whoami = async (options: Parameters<typeof sandbox.control.createKey>[0]) =>
    (await call(sandbox, "GET", "/meta/whoami", undefined, sandbox.control.createKey(options))).body;
  expect(await whoami({ scopes: [] })).toEqual({ id: "usrSandboxDefault" });
  expect(await whoami({ scopes: ["user.email:read"], isOAuth: true })).toEqual({
    id: "usrSandboxDefault",
    email: "sandbox@example.org",
    scopes: ["user.email:read"],
  });
});

test("each call needs its scope, the base attached, and a sufficient role", async () => {
  const person = `/${baseId}/${PEOPLE}`;
  const calls: [method: string, path: string, scope: string, refusal: unknown[], body?: unknown][] = [
    ["GET", person, "data.records:read", []],
    ["GET", `${person}/recAnn00000000001`, "data.records:read", []],
    ["POST", `${person}/listRecords`, "data.records:read", [], {}],
    [
      "POST",
      person,
      "data.records:write",
      [
        403,
        "INVALID_PERMISSIONS",
        `You are not permitted to create records in table People / staff (${PEOPLE})`,
      ],
      { fields: {} },
    ],
    ["PATCH", `${person}/recAnn00000000001`, "data.records:write", NOT_PERMITTED, { fields: {} }],
    ["DELETE", `${person}/recAnn00000000001`, "data.records:write", NOT_PERMITTED],
    ["GET", `${person}/recAnn00000000001/comments`, "data.recordComments:read", []],
    [
      "POST",
      `${person}/recAnn00000000001/comments`,
      "data.recordComments:write",
      NOT_PERMITTED,
      { text: "x" },
    ],
    ["GET", `/meta/bases/${baseId}/tables`, "schema.bases:read", []],
    ["PATCH", `/meta/bases/${baseId}/tables/${PEOPLE}`, "schema.bases:write", NOT_PERMITTED, { name: "x" }],
  ];
  for (const [method, path, scope, refusal, body] of calls) {
    const asked = (options: object) => call(sandbox, method, path, body, sandbox.control.createKey(options));
    expect(errorOf(await asked({ scopes: [] })), path).toEqual(UNKNOWN_MODEL);
    expect(errorOf(await asked({ bases: {} })), path).toEqual(UNKNOWN_MODEL);
    const reader = await asked({ scopes: [scope], bases: { [baseId]: "read" } });
    if (refusal.length > 0) expect(errorOf(reader), path).toEqual(refusal);
    else expect(reader.status, path).toBe(200);
  }
});

test.for([
  ["GET", "/nonsense", 404, '{"error":"NOT_FOUND"}'],
  ["GET", "/meta/bases/junk/tables", 404, '{"error":"NOT_FOUND"}'],
  ["GET", "/meta/nonsense", 404, '{"error":"NOT_FOUND"}'],
  ["GET", "/BASE/tblPeople00000001/junk", 404, '{"error":"NOT_FOUND"}'],
  ["PATCH", "/meta/bases/BASE/tables/tblNone", 404, '{"error":{"type":"NOT_FOUND"}}'],
  [
    "GET",
    "/BASE/tblPeople00000001/recNobody00000001",
    404,
    '{"error":{"type":"MODEL_ID_NOT_FOUND","message":"Record not found"}}',
  ],
  [
    "POST",
    "/BASE/tblPeople00000001",
    422,
    '{"error":{"type":"INVALID_REQUEST_MISSING_FIELDS","message":"Could not find field \\"fields\\" in the request body"}}',
  ],
] as const)("%s %s is answered %i %s", async ([method, path, status, text]) => {
  const body = method === "GET" ? undefined : {};
  const answer = await call(sandbox, method, path.replace("BASE", baseId), body);
  expect([answer.status, JSON.stringify(answer.body)]).toEqual([status, text]);
});

test("an unknown table is a matter of permission for tokens, and named in legacy mode", async () => {
  expect(errorOf(await call(sandbox, "GET", `/${baseId}/Nope`))).toEqual(UNKNOWN_MODEL);
  expect(errorOf(await call(sandbox, "GET", "/appNone0000000001/Nope"))).toEqual(UNKNOWN_MODEL);
  sandbox.control.settings({ notFoundMode: "legacy" });
  expect(errorOf(await call(sandbox, "GET", `/${baseId}/Nope`))).toEqual([
    404,
    "TABLE_NOT_FOUND",
    `Could not find table Nope in application ${baseId}`,
  ]);
});

test("a body that is no JSON, no object, or lacks records is refused", async () => {
  const path = `/${baseId}/${PEOPLE}`;
  for (const body of ["{", "[]", '"x"'])
    expect(errorOf(await call(sandbox, "POST", path, body))).toEqual([
      422,
      "INVALID_REQUEST_BODY",
      "Could not parse request body",
    ]);
  expect(errorOf(await call(sandbox, "PATCH", path, { records: [{ fields: {} }] }))).toEqual([
    422,
    "INVALID_RECORDS",
    'You must provide an array of up to 10 record objects, each with an "id" ID field and a "fields" object for cell values.',
  ]);
  expect(errorOf(await call(sandbox, "GET", `${path}/recAnn00000000001?fields[]=Name`))[1]).toBe(
    "INVALID_REQUEST_UNKNOWN",
  );
});

test("answers carry the service's headers; errors an etag and never gzip", async () => {
  const { headers } = await call(sandbox, "GET", `/${baseId}/${PEOPLE}`);
  expect(Object.fromEntries(headers)).toMatchObject({
    "access-control-allow-origin": "*",
    "content-type": "application/json; charset=utf-8",
    "content-encoding": "gzip",
    server: "Tengine",
    vary: "Accept-Encoding",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
  });
  const refused = (await call(sandbox, "GET", "/nonsense")).headers;
  expect(refused.get("etag")).toMatch(/^W\//);
  expect(refused.get("content-encoding")).toBeNull();
  const preflight = await fetch(`${sandbox.url}/v0/${baseId}/${PEOPLE}`, { method: "OPTIONS" });
  expect([preflight.status, preflight.headers.get("access-control-allow-methods")]).toEqual([
    200,
    "DELETE,GET,OPTIONS,PATCH,POST,PUT",
  ]);
});

/** Error answers of the sandbox, verbatim, and the permissions of keys. */
import { expect, test } from "vitest";
import { errorOf, PEOPLE, sandboxScene } from "../../support/sandbox-support";

const scene = sandboxScene();

const UNKNOWN_MODEL = [
  403,
  "INVALID_PERMISSIONS_OR_MODEL_NOT_FOUND",
  "Invalid permissions, or the requested model was not found. Check that both your user and your token have the " +
    "required permissions, and that the model names and/or ids are correct.",
];
const NOT_PERMITTED = [403, "INVALID_PERMISSIONS", "You are not permitted to perform this operation"];

test("a key that is unknown, revoked, malformed or missing is refused", async () => {
  const refused = [401, "AUTHENTICATION_REQUIRED", "Authentication required"];
  const whoami = async (key: string) => errorOf(await scene.call("GET", "/meta/whoami", undefined, key));
  expect(await whoami("patUnknown.123")).toEqual(refused);
  expect(await whoami("patOnlyTheIdOfAKey")).toEqual([401, "UNAUTHORIZED", "Invalid authentication token"]);
  const key = scene.sandbox.control.createKey();
  expect((await scene.call("GET", "/meta/whoami", undefined, key)).status).toBe(200);
  scene.sandbox.control.revokeKey(key);
  expect(await whoami(key)).toEqual(refused);
  const basic = await fetch(`${scene.sandbox.url}/v0/meta/whoami`, {
    headers: { authorization: "Basic abc" },
  });
  expect([basic.status, await basic.json()]).toEqual([
    401,
    { error: { type: "AUTHENTICATION_REQUIRED", message: "Authentication required" } },
  ]);
  expect((await fetch(`${scene.sandbox.url}/v0/meta/whoami?api_key=${scene.sandbox.key}`)).status).toBe(401);
});

test("whoami returns the id, the e-mail if the scope allows it, and scopes for OAuth tokens only", async () => {
  const whoami = async (options: Parameters<typeof scene.sandbox.control.createKey>[0]) =>
    (await scene.call("GET", "/meta/whoami", undefined, scene.sandbox.control.createKey(options))).body;
  expect(await whoami({ scopes: [] })).toEqual({ id: "usrSandboxDefault" });
  expect(await whoami({ scopes: ["user.email:read"], isOAuth: true })).toEqual({
    id: "usrSandboxDefault",
    email: "sandbox@example.org",
    scopes: ["user.email:read"],
  });
});

test("each call requires its scope, access to the base, and a sufficient role", async () => {
  const person = `/${scene.baseId}/${PEOPLE}`;
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
    ["GET", `/meta/bases/${scene.baseId}/tables`, "schema.bases:read", []],
    [
      "PATCH",
      `/meta/bases/${scene.baseId}/tables/${PEOPLE}`,
      "schema.bases:write",
      NOT_PERMITTED,
      { name: "x" },
    ],
  ];
  for (const [method, path, scope, refusal, body] of calls) {
    const asked = (options: object) =>
      scene.call(method, path, body, scene.sandbox.control.createKey(options));
    expect(errorOf(await asked({ scopes: [] })), path).toEqual(UNKNOWN_MODEL);
    expect(errorOf(await asked({ bases: {} })), path).toEqual(UNKNOWN_MODEL);
    const reader = await asked({ scopes: [scope], bases: { [scene.baseId]: "read" } });
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
  const answer = await scene.call(method, path.replace("BASE", scene.baseId), body);
  expect([answer.status, JSON.stringify(answer.body)]).toEqual([status, text]);
});

test("an unknown table is a permission error for tokens, and is named in legacy mode", async () => {
  expect(errorOf(await scene.call("GET", `/${scene.baseId}/Nope`))).toEqual(UNKNOWN_MODEL);
  expect(errorOf(await scene.call("GET", "/appNone0000000001/Nope"))).toEqual(UNKNOWN_MODEL);
  scene.sandbox.control.settings({ notFoundMode: "legacy" });
  expect(errorOf(await scene.call("GET", `/${scene.baseId}/Nope`))).toEqual([
    404,
    "TABLE_NOT_FOUND",
    `Could not find table Nope in application ${scene.baseId}`,
  ]);
});

test("a body that is not JSON, not an object, or lacks records is refused", async () => {
  const path = `/${scene.baseId}/${PEOPLE}`;
  for (const body of ["{", "[]", '"x"'])
    expect(errorOf(await scene.call("POST", path, body))).toEqual([
      422,
      "INVALID_REQUEST_BODY",
      "Could not parse request body",
    ]);
  expect(errorOf(await scene.call("PATCH", path, { records: [{ fields: {} }] }))).toEqual([
    422,
    "INVALID_RECORDS",
    'You must provide an array of up to 10 record objects, each with an "id" ID field and a "fields" object for cell values.',
  ]);
  expect(errorOf(await scene.call("GET", `${path}/recAnn00000000001?fields[]=Name`))[1]).toBe(
    "INVALID_REQUEST_UNKNOWN",
  );
});

test("answers have Airtable's headers; errors have an etag and are never compressed", async () => {
  const { headers } = await scene.call("GET", `/${scene.baseId}/${PEOPLE}`);
  expect(Object.fromEntries(headers)).toMatchObject({
    "access-control-allow-origin": "*",
    "content-type": "application/json; charset=utf-8",
    "content-encoding": "gzip",
    server: "Tengine",
    vary: "Accept-Encoding",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
  });
  const refused = (await scene.call("GET", "/nonsense")).headers;
  expect(refused.get("etag")).toMatch(/^W\//);
  expect(refused.get("content-encoding")).toBeNull();
  const preflight = await fetch(`${scene.sandbox.url}/v0/${scene.baseId}/${PEOPLE}`, { method: "OPTIONS" });
  expect([preflight.status, preflight.headers.get("access-control-allow-methods")]).toEqual([
    200,
    "DELETE,GET,OPTIONS,PATCH,POST,PUT",
  ]);
});

/** The sandbox's monthly caps: blocked or slowed beyond them, by workspace and by the sandbox's clock. */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { SandboxHandle } from "../../../apps/sandbox/server";
import { call, crew, errorOf, PEOPLE, quietSandbox } from "../../support/sandbox-support";

const DAY_MS = 24 * 3600 * 1000;

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

const list = (id = baseId) => call(sandbox, "GET", `/${id}/${PEOPLE}?pageSize=1`);

test("beyond the cap every call is 429 in the documented form, but the meta API answers", async () => {
  sandbox.control.cap(baseId, { cap: 2 });
  expect([(await list()).status, (await list()).status]).toEqual([200, 200]);
  const message = "API billing plan limit exceeded: the monthly maximum of API calls was reached.";
  expect(errorOf(await list())).toEqual([429, "PUBLIC_API_BILLING_LIMIT_EXCEEDED", message]);
  expect(errorOf(await call(sandbox, "GET", `/bases/${baseId}/webhooks`))[0]).toBe(429);
  expect((await call(sandbox, "GET", `/meta/bases/${baseId}/tables`)).status).toBe(200);
  expect((await call(sandbox, "GET", "/meta/whoami")).status).toBe(200);
  sandbox.control.settings({ billingLimitForm: "plural" });
  expect((await list()).body).toEqual({
    errors: [{ error: "PUBLIC_API_BILLING_LIMIT_EXCEEDED", message }],
  });
});

test("what is refused is not counted, and what names no base neither", async () => {
  sandbox.control.cap(baseId, { cap: 3 });
  await call(sandbox, "GET", "/meta/whoami");
  await call(sandbox, "GET", `/meta/bases/${baseId}/tables`);
  await call(sandbox, "GET", `/${baseId}/${PEOPLE}`, undefined, "patNobody.0");
  for (let i = 0; i < 5; i++) await list();
  expect(sandbox.control.cap(baseId)).toEqual({
    workspaceId: baseId,
    month: new Date().toISOString().slice(0, 7),
    calls: 3,
    cap: 3,
    overCap: "block",
    isOver: true,
  });
});

test("a slowed workspace is throttled at two requests a second", async () => {
  sandbox.control.settings({ rateLimitOff: false });
  sandbox.control.cap(baseId, { cap: 10, overCap: "slow", calls: 7 });
  const statuses = async (count: number) =>
    (await Promise.all(Array.from({ length: count }, () => list()))).map(({ status }) => status).sort();
  expect(await statuses(3)).toEqual([200, 200, 200]);
  sandbox.control.resetQuota(baseId);
  expect(await statuses(3)).toEqual([200, 200, 429]);
  expect((await list()).body).toMatchObject({ errors: [{ error: "RATE_LIMIT_REACHED" }] });
});

test("the bases of a workspace share its cap, and a new month starts at none", async () => {
  const other = crew(sandbox);
  sandbox.control.cap("wspShared00000001", { cap: 2, bases: [baseId, other] });
  expect([(await list()).status, (await list(other)).status, (await list()).status]).toEqual([200, 200, 429]);
  expect(sandbox.control.cap(other)).toMatchObject({ workspaceId: "wspShared00000001", calls: 2 });
  sandbox.control.advanceClock(31 * DAY_MS);
  expect((await list()).status).toBe(200);
  expect(sandbox.control.cap("wspShared00000001").calls).toBe(1);
  sandbox.control.cap(baseId, { cap: null });
  for (let i = 0; i < 3; i++) expect((await list(other)).status).toBe(200);
});

test("over HTTP caps are set, read and reset", async () => {
  const caps = async (method: string, body?: unknown) => {
    const url = `${sandbox.url}/_sandbox/caps/${baseId}`;
    return (await fetch(url, { method, ...(body !== undefined && { body: JSON.stringify(body) }) })).json();
  };
  expect(await caps("GET")).toMatchObject({ cap: null, calls: 0, isOver: false });
  expect(await caps("POST", { cap: 1 })).toMatchObject({ cap: 1, overCap: "block" });
  await list();
  expect((await list()).status).toBe(429);
  expect(await caps("POST", { calls: 0 })).toMatchObject({ calls: 0, isOver: false });
  expect((await list()).status).toBe(200);
  expect(await caps("POST", { overCap: "charge" })).toEqual({
    error: { message: '`overCap` must be "block" or "slow".' },
  });
});

/** The sandbox's monthly caps: blocked or throttled beyond them, by workspace and by the sandbox's clock. */
import { expect, test } from "vitest";
import { crew, errorOf, PEOPLE, sandboxScene } from "../../support/sandbox-support";

const DAY_MS = 24 * 3600 * 1000;

const scene = sandboxScene();

const list = (id = scene.baseId) => scene.call("GET", `/${id}/${PEOPLE}?pageSize=1`);

test("beyond the cap, every call is a 429 in the documented form, except those of the metadata API", async () => {
  scene.sandbox.control.cap(scene.baseId, { cap: 2 });
  expect([(await list()).status, (await list()).status]).toEqual([200, 200]);
  const message = "API billing plan limit exceeded: the monthly maximum of API calls was reached.";
  expect(errorOf(await list())).toEqual([429, "PUBLIC_API_BILLING_LIMIT_EXCEEDED", message]);
  expect(errorOf(await scene.call("GET", `/bases/${scene.baseId}/webhooks`))[0]).toBe(429);
  expect((await scene.call("GET", `/meta/bases/${scene.baseId}/tables`)).status).toBe(200);
  expect((await scene.call("GET", "/meta/whoami")).status).toBe(200);
  scene.sandbox.control.settings({ billingLimitForm: "plural" });
  expect((await list()).body).toEqual({
    errors: [{ error: "PUBLIC_API_BILLING_LIMIT_EXCEEDED", message }],
  });
});

test("refused calls are not counted, and neither are calls without a base", async () => {
  scene.sandbox.control.cap(scene.baseId, { cap: 3 });
  await scene.call("GET", "/meta/whoami");
  await scene.call("GET", `/meta/bases/${scene.baseId}/tables`);
  await scene.call("GET", `/${scene.baseId}/${PEOPLE}`, undefined, "patNobody.0");
  for (let i = 0; i < 5; i++) await list();
  expect(scene.sandbox.control.cap(scene.baseId)).toEqual({
    workspaceId: scene.baseId,
    month: new Date().toISOString().slice(0, 7),
    calls: 3,
    cap: 3,
    overCap: "block",
    isOver: true,
  });
});

test("a throttled workspace is limited to two requests per second", async () => {
  scene.sandbox.control.settings({ rateLimitOff: false });
  scene.sandbox.control.cap(scene.baseId, { cap: 10, overCap: "slow", calls: 7 });
  const statuses = async (count: number) =>
    (await Promise.all(Array.from({ length: count }, () => list()))).map(({ status }) => status).sort();
  expect(await statuses(3)).toEqual([200, 200, 200]);
  scene.sandbox.control.resetQuota(scene.baseId);
  expect(await statuses(3)).toEqual([200, 200, 429]);
  expect((await list()).body).toMatchObject({ errors: [{ error: "RATE_LIMIT_REACHED" }] });
});

test("the bases of a workspace share its cap, and a new month starts at zero", async () => {
  const other = crew(scene.sandbox);
  scene.sandbox.control.cap("wspShared00000001", { cap: 2, bases: [scene.baseId, other] });
  expect([(await list()).status, (await list(other)).status, (await list()).status]).toEqual([200, 200, 429]);
  expect(scene.sandbox.control.cap(other)).toMatchObject({ workspaceId: "wspShared00000001", calls: 2 });
  scene.sandbox.control.advanceClock(31 * DAY_MS);
  expect((await list()).status).toBe(200);
  expect(scene.sandbox.control.cap("wspShared00000001").calls).toBe(1);
  scene.sandbox.control.cap(scene.baseId, { cap: null });
  for (let i = 0; i < 3; i++) expect((await list(other)).status).toBe(200);
});

test("caps are set, read and reset over HTTP", async () => {
  const caps = async (method: string, body?: unknown) => {
    const url = `${scene.sandbox.url}/_sandbox/caps/${scene.baseId}`;
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

/** The lifetime of the sandbox's webhooks and their payloads, and what ends them. */
import { describe, expect, test } from "vitest";
import { PEOPLE, type Reply, TEAMS } from "../../support/sandbox-support";
import { DAY_MS, filtered, type Loose, webhookScene } from "../../support/webhook-support";

const scene = webhookScene();
const { hooks, listed, made, payloads, rename } = scene;

describe("webhooks' lifetime", () => {
  const enabled = async () => ((await hooks("GET")).body.webhooks as Loose)[0]?.isHookEnabled;

  test("a webhook is disabled after seven days, readable for seven more, then gone", async () => {
    const id = await made();
    scene.control.advanceClock(6 * DAY_MS);
    rename("kept");
    scene.control.advanceClock(DAY_MS);
    expect(await enabled()).toBe(false);
    rename("too late");
    expect((await listed(id)).cursor).toBe(2);
    expect((await hooks("POST", `/${id}/refresh`)).status).toBe(422);
    scene.control.advanceClock(7 * DAY_MS - 1000);
    expect(await enabled()).toBe(false);
    scene.control.advanceClock(1000);
    expect(await enabled()).toBeUndefined();
    expect((await hooks("GET", `/${id}/payloads`)).status).toBe(404);
  });

  test.for<[string, (id: string) => Promise<Reply>]>([
    ["a refresh", (id) => hooks("POST", `/${id}/refresh`)],
    ["listing payloads", (id) => hooks("GET", `/${id}/payloads`)],
  ])("%s extends it by seven days", async ([, extend]) => {
    const id = await made();
    scene.control.advanceClock(6 * DAY_MS);
    expect((await extend(id)).status).toBe(200);
    scene.control.advanceClock(6 * DAY_MS);
    expect(await enabled()).toBe(true);
  });

  test("payloads are kept for seven days; an older cursor skips them, or is refused if configured", async () => {
    const id = await made();
    for (const name of ["one", "two"]) rename(name);
    scene.control.advanceClock(4 * DAY_MS);
    await listed(id);
    rename("three");
    scene.control.advanceClock(4 * DAY_MS);
    const page = await listed(id, "?cursor=1");
    expect([page.payloads.length, page.cursor, page.mightHaveMore]).toEqual([1, 4, false]);
    scene.control.settings({ webhooks: { oldCursor: "refuse" } });
    expect((await hooks("GET", `/${id}/payloads?cursor=1`)).status).toBe(422);
    expect((await hooks("GET", `/${id}/payloads?cursor=3`)).status).toBe(200);
  });

  test("an error payload ends the webhook, except an internal error", async () => {
    const id = await made();
    scene.control.webhooks.fail(scene.baseId, id, "INTERNAL_ERROR");
    expect(await enabled()).toBe(true);
    scene.control.webhooks.fail(scene.baseId, id, "INVALID_HOOK");
    rename("unheard");
    expect((await payloads(id)).map(({ error, code }) => [error, code])).toEqual([
      [true, "INTERNAL_ERROR"],
      [true, "INVALID_HOOK"],
    ]);
    expect(await enabled()).toBe(false);
    expect(() => scene.control.webhooks.fail(scene.baseId, id, "NO_SUCH")).toThrow("Use one of");
  });

  test("a silent webhook looks active and reports nothing", async () => {
    const id = await made();
    scene.control.webhooks.silence(scene.baseId, id);
    rename("unheard");
    expect(await listed(id)).toEqual({ payloads: [], cursor: 1, mightHaveMore: false });
    expect(await enabled()).toBe(true);
    scene.control.webhooks.silence(scene.baseId, id, false);
    rename("heard");
    expect(await payloads(id)).toHaveLength(1);
  });

  test("a webhook whose watched field is deleted becomes silent; one whose table is deleted reports an error", async () => {
    const onField = await made(filtered({ watchDataInFieldIds: ["fldAge00000000001"] }));
    const onTable = await made(filtered({ recordChangeScope: TEAMS }));
    scene.control.deleteField(scene.baseId, PEOPLE, "Age");
    scene.control.deleteTable(scene.baseId, TEAMS);
    expect(scene.control.webhooks.list(scene.baseId)).toMatchObject([
      { id: onField, isHookEnabled: true, isSilent: true },
      { id: onTable, isHookEnabled: false, isSilent: false },
    ]);
    expect((await payloads(onTable)).at(-1)).toMatchObject({ error: true, code: "INVALID_FILTERS" });
  });

  test("a webhook is deleted with its base, and a webhook that another client deletes is gone", async () => {
    const id = await made();
    scene.control.webhooks.delete(scene.baseId, id);
    expect((await hooks("GET", `/${id}/payloads`)).status).toBe(404);
    await made();
    scene.control.deleteBase(scene.baseId);
    expect((await hooks("GET")).status).toBe(403);
  });

  test("the control interface does the same over HTTP", async () => {
    const [a, b] = [await made(), await made()];
    const control = (method: string, path: string, body?: unknown) =>
      fetch(`${scene.sandbox.url}/_sandbox/${path}`, {
        method,
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
    await control("POST", `bases/${scene.baseId}/webhooks/${a}/silence`, {});
    await control("POST", `bases/${scene.baseId}/webhooks/${a}/fail`, { code: "INVALID_FILTERS" });
    await control("DELETE", `bases/${scene.baseId}/webhooks/${b}`);
    expect(await (await control("GET", `bases/${scene.baseId}/webhooks`)).json()).toMatchObject([
      { id: a, isSilent: true, isHookEnabled: false, cursorForNextPayload: 2 },
    ]);
    expect(await (await control("GET", `pings?base=${scene.baseId}`)).json()).toEqual([]);
    expect((await control("POST", "settings", { webhooks: { pingLoss: "often" } })).status).toBe(400);
  });
});

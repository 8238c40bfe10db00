/** Whether a base may have a webhook: keys that must not create one, and what is left at the source in the end. */
import { describe, expect, test } from "vitest";
import { deleteBase, updateSettings } from "../../../core/control/bases";
import { expectNewWebhook, feedScene } from "../../support/feed-scene";

const { stack, control, opened, sql } = feedScene();

describe("a key that may not", () => {
  const scopes = ["data.records:read", "schema.bases:read"];

  async function connectedWith(key: string) {
    const live = await stack().connect();
    await updateSettings(stack().fleet.ctx, live.base, { apiKey: key });
    return live;
  }

  test("manage webhooks: the missing scope is named, the key is not asked again, and the next key is", async () => {
    const live = await connectedWith(control().createKey({ scopes }));
    const worker = live.worker();
    expect(await worker.tryOpen()).toBeNull();
    expect((await live.now()).live).toMatchObject({
      state: "refused",
      reason: expect.stringContaining("webhook:manage"),
    });
    expect(worker.asked).toEqual({ webhooks: 2 });
    expect(await worker.tryOpen()).toBeNull();
    expect(worker.asked).toEqual({ webhooks: 2 });
    await sql(
      `update live_feeds set refused_at = now() - interval '61 minutes' where base_id = '${live.base.id}'`,
    );
    expect(await worker.tryOpen()).toBeNull();
    expect(worker.asked).toEqual({ webhooks: 3 });

    await updateSettings(stack().fleet.ctx, live.base, { apiKey: stack().fleet.sandbox.key });
    await worker.open();
    expect((await live.now()).live).toMatchObject({ state: "on", reason: "" });
  });

  test("create webhooks without the creator role: the role is named", async () => {
    const live = await connectedWith(control().createKey({ bases: "edit" }));
    expect(await live.worker().tryOpen()).toBeNull();
    expect((await live.now()).live).toMatchObject({
      state: "refused",
      reason: expect.stringContaining("creator"),
    });
  });

  test("create another webhook in a base that has the maximum: the number is named, and no foreign webhook is deleted", async () => {
    const live = await stack().connect();
    for (let count = 0; count < 10; count++) {
      await fetch(`${stack().fleet.sandbox.url}/v0/bases/${live.sourceId}/webhooks`, {
        method: "POST",
        headers: { authorization: `Bearer ${stack().fleet.sandbox.key}` },
        body: JSON.stringify({ specification: { options: { filters: { dataTypes: ["tableData"] } } } }),
      });
    }
    const hooks = live.webhooks();
    expect(hooks).toHaveLength(10);
    expect(await live.worker().tryOpen()).toBeNull();
    expect((await live.now()).live).toMatchObject({
      state: "refused",
      reason: expect.stringContaining("10 webhooks"),
    });
    expect(live.webhooks()).toEqual(hooks);
  });

  test("read webhooks any longer: the lease ends, and the next one sweeps", async () => {
    const { live, feed, worker } = await opened();
    const key = control().createKey({ scopes });
    await sql(`update bases set encrypted_api_key = encrypted_api_key where id = '${live.base.id}'`);
    await updateSettings(stack().fleet.ctx, live.base, { apiKey: key });
    await expect(feed.read(await worker.reader())).rejects.toMatchObject({ code: "sync_stopped" });
    expect(await worker.tryOpen()).toBeNull();
  });
});

describe("no webhook is left at the source", () => {
  test("when live mode is disabled; when it is enabled again, a new one is created", async () => {
    const { live, feed } = await opened();
    await updateSettings(stack().fleet.ctx, live.base, { live: false });
    expect(live.webhooks()).toEqual([]);
    expect((await live.now()).live).toBeNull();
    // A worker that has not noticed yet creates no other.
    const reader = await live.worker().reader();
    await expect(feed.read(reader)).rejects.toMatchObject({ code: "sync_stopped" });
    expect(live.webhooks()).toEqual([]);
    expect(await live.kept()).toBeUndefined();
    await updateSettings(stack().fleet.ctx, live.base, { live: true });
    await live.worker().open();
    expect(live.webhooks()).toHaveLength(1);
  });

  test("when the base is deleted", async () => {
    const { live } = await opened();
    expect(live.webhooks()).toHaveLength(1);
    await deleteBase(stack().fleet.ctx, live.base);
    expect(live.webhooks()).toEqual([]);
  });

  test("when the next key cannot see it; a key that can see it keeps it", async () => {
    const { live } = await opened();
    const [{ id } = { id: "" }] = live.webhooks();
    await updateSettings(stack().fleet.ctx, live.base, { apiKey: control().createKey() });
    expect(live.webhooks()).toMatchObject([{ id }]);
    expect(await live.kept()).toMatchObject({ webhookId: id, state: "on" });
    // An integration sees its own webhooks only.
    await updateSettings(stack().fleet.ctx, live.base, { apiKey: control().createKey({ isOAuth: true }) });
    expect(live.webhooks()).toEqual([]);
    expect(await live.kept()).toMatchObject({ webhookId: null, state: "making" });
    const from = new Date();
    await live.worker().open();
    await expectNewWebhook(live, id, from);
  });
});

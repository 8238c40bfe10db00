/** Whether a base may have a hook: keys that must not make one, and what is left at the source in the end. */
import { describe, expect, test } from "vitest";
import { deleteBase, updateSettings } from "../../../core/control/bases";
import { expectNewHook, feedScene } from "../../support/feed-scene";

const { stack, control, opened, sql } = feedScene();

describe("a key that may not", () => {
  const scopes = ["data.records:read", "schema.bases:read"];

  async function connectedWith(key: string) {
    const live = await stack().connect();
    await updateSettings(stack().fleet.ctx, live.base, { apiKey: key });
    return live;
  }

  test("manage webhooks: what to tick is said, it is not asked again, and the next key is", async () => {
    const live = await connectedWith(control().createKey({ scopes }));
    const worker = live.worker();
    expect(await worker.tryOpen()).toBeNull();
    expect((await live.now()).live).toMatchObject({
      state: "refused",
      reason: expect.stringContaining("webhook:manage"),
    });
    expect(worker.asked).toEqual({ hooks: 1 });
    expect(await worker.tryOpen()).toBeNull();
    expect(worker.asked).toEqual({ hooks: 1 });
    await sql(
      `update live_feeds set refused_at = now() - interval '61 minutes' where base_id = '${live.base.id}'`,
    );
    expect(await worker.tryOpen()).toBeNull();
    expect(worker.asked).toEqual({ hooks: 2 });

    await updateSettings(stack().fleet.ctx, live.base, { apiKey: stack().fleet.sandbox.key });
    await worker.open();
    expect((await live.now()).live).toMatchObject({ state: "on", reason: "" });
  });

  test("make them for want of the creator's role: that is said", async () => {
    const live = await connectedWith(control().createKey({ bases: "edit" }));
    expect(await live.worker().tryOpen()).toBeNull();
    expect((await live.now()).live).toMatchObject({
      state: "refused",
      reason: expect.stringContaining("creator"),
    });
  });

  test("make one more, since the base is full: how many there are is said, and no other's is touched", async () => {
    const live = await stack().connect();
    for (let count = 0; count < 10; count++) {
      await fetch(`${stack().fleet.sandbox.url}/v0/bases/${live.sourceId}/webhooks`, {
        method: "POST",
        headers: { authorization: `Bearer ${stack().fleet.sandbox.key}` },
        body: JSON.stringify({ specification: { options: { filters: { dataTypes: ["tableData"] } } } }),
      });
    }
    const hooks = live.hooks();
    expect(hooks).toHaveLength(10);
    expect(await live.worker().tryOpen()).toBeNull();
    expect((await live.now()).live).toMatchObject({
      state: "refused",
      reason: expect.stringContaining("10 webhooks"),
    });
    expect(live.hooks()).toEqual(hooks);
  });

  test("any more: the lease ends, and the next one sweeps", async () => {
    const { live, feed, worker } = await opened();
    const key = control().createKey({ scopes });
    await sql(`update bases set sealed_api_key = sealed_api_key where id = '${live.base.id}'`);
    await updateSettings(stack().fleet.ctx, live.base, { apiKey: key });
    await expect(feed.read(await worker.reader())).rejects.toMatchObject({ code: "sync_stopped" });
    expect(await worker.tryOpen()).toBeNull();
  });
});

describe("at the source nothing is left", () => {
  test("when live mode is switched off; switched on again there is a new hook", async () => {
    const { live, feed } = await opened();
    await updateSettings(stack().fleet.ctx, live.base, { live: false });
    expect(live.hooks()).toEqual([]);
    expect((await live.now()).live).toBeNull();
    // A worker that has not noticed yet makes no other.
    const reader = await live.worker().reader();
    await expect(feed.read(reader)).rejects.toMatchObject({ code: "sync_stopped" });
    expect(live.hooks()).toEqual([]);
    expect(await live.kept()).toBeUndefined();
    await updateSettings(stack().fleet.ctx, live.base, { live: true });
    await live.worker().open();
    expect(live.hooks()).toHaveLength(1);
  });

  test("when the base is deleted", async () => {
    const { live } = await opened();
    expect(live.hooks()).toHaveLength(1);
    await deleteBase(stack().fleet.ctx, live.base);
    expect(live.hooks()).toEqual([]);
  });

  test("when a key takes the place that cannot see the hook; one that can keeps it", async () => {
    const { live } = await opened();
    const [{ id } = { id: "" }] = live.hooks();
    await updateSettings(stack().fleet.ctx, live.base, { apiKey: control().createKey() });
    expect(live.hooks()).toMatchObject([{ id }]);
    expect(await live.kept()).toMatchObject({ hookId: id, state: "on" });
    // An integration sees its own hooks only.
    await updateSettings(stack().fleet.ctx, live.base, { apiKey: control().createKey({ isOAuth: true }) });
    expect(live.hooks()).toEqual([]);
    expect(await live.kept()).toMatchObject({ hookId: null, state: "making" });
    const from = new Date();
    await live.worker().open();
    await expectNewHook(live, id, from);
  });
});

/** A base's webhook with obstacles: at the source, in the control plane, or from another process. */
import { describe, expect, test } from "vitest";
import { webhookSecrets } from "../../../core/control/feeds";
import { createSecretBox } from "../../../core/secrets";
import { created, expectNewWebhook, feedScene } from "../../support/feed-scene";

const { stack, control, opened, sql } = feedScene();

describe("a webhook", () => {
  test("is asked for notifications again after the source has given them up", async () => {
    const { live } = await opened();
    const [{ id } = { id: "" }] = live.webhooks();
    const path = `/v0/bases/${live.sourceId}/webhooks/${id}/enableNotifications`;
    await fetch(stack().fleet.sandbox.url + path, {
      method: "POST",
      headers: { authorization: `Bearer ${stack().fleet.sandbox.key}` },
      body: JSON.stringify({ enable: false }),
    });
    expect(live.webhooks()[0]).toMatchObject({ areNotificationsEnabled: false });
    await sql(
      `update live_feeds set checked_at = now() - interval '7 hours' where base_id = '${live.base.id}'`,
    );
    await live.worker().open();
    expect(live.webhooks()).toMatchObject([{ id, areNotificationsEnabled: true }]);
  });

  test("is created again if its secret cannot be decrypted", async () => {
    const { live } = await opened();
    const [{ id } = { id: "" }] = live.webhooks();
    const stranger = createSecretBox([Buffer.alloc(32, 7).toString("base64")]).encrypt(
      "secret",
      "live_feeds.secret:other",
    );
    await sql(`update live_feeds set encrypted_secret = '${stranger}' where base_id = '${live.base.id}'`);
    const from = new Date();
    await live.worker().open();
    await expectNewWebhook(live, id, from);
    expect(await webhookSecrets(stack().fleet.ctx)(live.base.id)).toBeTruthy();
  });

  test("that a crash left behind is deleted by the next check of the one that replaced it", async () => {
    const { live } = await opened();
    await sql(`delete from live_feeds where base_id = '${live.base.id}'`);
    await live.worker().open();
    expect(live.webhooks()).toHaveLength(2);
    const { webhookId } = (await live.kept())!;
    await sql(
      `update live_feeds set checked_at = now() - interval '7 hours' where base_id = '${live.base.id}'`,
    );
    await live.worker().open();
    expect(live.webhooks()).toMatchObject([{ id: webhookId }]);
  });

  test("that cannot be recorded is deleted at the source, and created once it can be recorded", async () => {
    const live = await stack().connect();
    const worker = live.worker();
    await sql("create function no() returns trigger language plpgsql as $$ begin raise 'no'; end $$");
    await sql("create trigger no before insert on live_feeds for each row execute function no()");
    expect(await worker.tryOpen()).toBeNull();
    expect(live.webhooks()).toEqual([]);
    await sql("drop trigger no on live_feeds");
    await live.worker().open();
    expect(live.webhooks()).toHaveLength(1);
  });

  test("that another process has created meanwhile is used", async () => {
    const { live, read } = await opened();
    const other = live.worker();
    const [{ id } = { id: "" }] = live.webhooks();
    control().webhooks.delete(live.sourceId, id);
    const theirs = await other.open();
    await theirs.read(await other.reader());
    const webhookId = (await live.kept())!.webhookId!;
    const batch = await read();
    expect(batch.hasGap).toBe(true);
    expect(await live.kept()).toMatchObject({ webhookId });
    const id2 = live.create("told to both");
    expect(created(await read())).toEqual([id2]);
  });

  test("is polled while notifications are disabled: one that has a URL is replaced", async () => {
    const { live } = await opened();
    const { config } = stack().fleet.ctx;
    const [{ id } = { id: "" }] = live.webhooks();
    const from = new Date();
    config.livePings = "off";
    try {
      const worker = live.worker();
      const feed = await worker.open();
      expect(feed.notifications).toBe("none");
      await expectNewWebhook(live, id, from);
      expect(live.webhooks()).toMatchObject([{ notificationUrl: null }]);
      expect((await live.now()).live).toMatchObject({ by: "poll" });
      expect(await live.worker().tryOpen()).not.toBeNull();
      const made = live.create("polled");
      expect(created(await feed.read(await worker.reader()))).toEqual([made]);
    } finally {
      config.livePings = "auto";
    }
  });

  test("that the source cannot create now leaves the base to sweeps, and is retried", async () => {
    const live = await stack().connect();
    const worker = live.worker();
    const fault = control().addFault({ base: live.sourceId, path: "webhooks", kind: "status_503" });
    expect(await worker.tryOpen()).toBeNull();
    const asked = { ...worker.asked };
    expect(asked.webhooks).toBeGreaterThan(1);
    // Not again at once. No error of the key is reported, but why the base is not live.
    expect(await worker.tryOpen()).toBeNull();
    expect(worker.asked).toEqual(asked);
    const { offSince, retryAt, ...off } = (await live.now()).live!;
    expect(off).toMatchObject({ state: "failing", reason: expect.stringContaining("503"), readAt: null });
    expect(retryAt!.getTime() - offSince!.getTime()).toBe(60_000);
    control().clearFaults(fault.id);
    await live.worker().open();
  });

  test("is not left behind if the request that creates it gets no answer", async () => {
    const live = await stack().connect();
    const path = "webhooks$";
    control().addFault({
      base: live.sourceId,
      path,
      method: "POST",
      kind: "status_503",
      when: "after",
      count: 1,
    });
    const from = new Date();
    await live.worker().open();
    await expectNewWebhook(live, "", from);
  });

  test("that delivers nothing is replaced a few times, and then left to sweeps", async () => {
    const { live, worker, read } = await opened();
    const fault = control().addFault({ base: live.sourceId, path: "payloads", kind: "not_found" });
    const reads = async () => {
      for (let count = 0; count < 20; count++) expect((await read()).hasGap).toBe(true);
    };
    await expect(reads()).rejects.toMatchObject({ code: "sync_stopped" });
    expect(await worker.tryOpen()).toBeNull();
    expect(live.webhooks()).toHaveLength(1);
    control().clearFaults(fault.id);
  });

  test("that the source does not find for a while is off, and is not taken for one that the key may not have", async () => {
    const { live, read } = await opened();
    const fault = control().addFault({ base: live.sourceId, path: "/webhooks", kind: "not_found" });
    await expect(read()).rejects.toMatchObject({ code: "sync_stopped" });
    const isOff = {
      state: "failing",
      reason: expect.stringContaining("does not find"),
      retryAt: expect.any(Date),
    };
    expect((await live.now()).live).toMatchObject(isOff);
    expect(await live.worker().tryOpen()).toBeNull();
    expect((await live.now()).live).toMatchObject(isOff);
    control().clearFaults(fault.id);
    const feed = await live.worker().open();
    await feed.read(await live.worker().reader());
    expect((await live.now()).live).toMatchObject({ state: "on" });
    expect(live.webhooks()).toHaveLength(1);
  });

  test("loses nothing while the control plane is read-only: it is recorded later", async () => {
    const { live, feed, read } = await opened();
    live.create("one");
    const { cursor } = await read();
    await sql("alter table live_feeds rename to away");
    try {
      await feed.save(cursor);
      expect(await feed.recordDue(new Date(), { waiting: 1, missed: 2 })).toBe(false);
      await feed.closeFeedGap(performance.now());
      expect(feed.gapSince).not.toBeNull();
    } finally {
      await sql("alter table away rename to live_feeds");
    }
    expect(await feed.recordDue(new Date(), { waiting: 1, missed: 3 })).toBe(true);
    await feed.save(cursor);
    expect(await live.kept()).toMatchObject({ cursor: 2 });
    expect((await live.now()).live).toMatchObject({ missed: 3, missedAt: expect.any(Date) });
  });
});

/**
 * What wakes a feed: notifications that the console receives, and a check whether the webhook still reports everything.
 */

import { createHmac } from "node:crypto";
import { describe, expect, test } from "vitest";
import { webhookSecrets } from "../../../core/control/feeds";
import { created, expectNewWebhook, feedScene } from "../../support/feed-scene";
import { until } from "../../support/poll";

const signal = new AbortController().signal;
const { stack, control, consoleUrl, opened } = feedScene();

describe("a notification", () => {
  async function post(path: string, body: string, mac: string | null) {
    const response = await fetch(`${consoleUrl()}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", ...(mac && { "x-airtable-content-mac": mac }) },
      body,
    });
    return { status: response.status, text: await response.text() };
  }
  const macOf = (secret: string, body: string) =>
    `hmac-sha256=${createHmac("sha256", Buffer.from(secret, "base64")).update(body).digest("hex")}`;

  test("wakes a waiting feed at once, and proves that those for all bases arrive", async () => {
    const { live, feed, read } = await opened();
    expect(feed.notifications).toBe("expected");
    await read();
    expect((await live.kept())!.isNotified).toBe(false);
    const waiting = feed.wakeUp(30_000, signal);
    const at = performance.now();
    const id = live.create("ping");
    expect(await waiting).toBe(true);
    expect(performance.now() - at).toBeLessThan(1000);
    await until(() => feed.notifications === "proven", { what: "the base relies on notifications" });
    expect(created(await read())).toEqual([id]);
    expect((await live.now()).live).toMatchObject({ by: "notification" });
    // Of another base, and another worker, which starts later.
    const other = await opened();
    await until(() => other.feed.notifications === "proven", { what: "the other base relies on them" });
  });

  test("that arrived between two leases wakes the next lease", async () => {
    const { live, feed, read } = await opened();
    await read();
    await feed.recordDue(new Date(), { waiting: 0, missed: 0 });
    const next = live.worker();
    live.create("between");
    await until(async () => (await live.kept())!.isNotified, { what: "the notification is recorded" });
    const adopted = await next.open();
    expect(await adopted.wakeUp(30_000, signal)).toBe(true);
  });

  test("that is sent twice, or repeated later, has the effect of one", async () => {
    const { live, feed, read } = await opened();
    control().settings({ webhooks: { pingDuplication: 1 } });
    try {
      const id = live.create("twice");
      expect(await feed.wakeUp(30_000, signal)).toBe(true);
      expect(created(await read())).toEqual([id]);
      await until(() => control().webhooks.pings(live.sourceId).length === 2, { what: "both were sent" });
    } finally {
      control().settings({ webhooks: { pingDuplication: 0 } });
    }
    const secret = (await webhookSecrets(stack().fleet.ctx)(live.base.id))!;
    for (let time = 0; time < 3; time++)
      expect(await post(`/hooks/airtable/${live.base.id}`, "{}", macOf(secret, "{}"))).toEqual({
        status: 204,
        text: "",
      });
    expect((await read()).payloads).toBe(0);
  });

  test("that is forged, of another base, too large or for an unknown base is refused and wakes no feed", async () => {
    const { live, feed } = await opened();
    const other = (await opened()).live;
    const secret = (await webhookSecrets(stack().fleet.ctx)(live.base.id))!;
    const path = `/hooks/airtable/${live.base.id}`;
    const body = JSON.stringify({ base: { id: live.sourceId } });
    const refusals = [
      await post(path, body, null),
      await post(path, body, macOf(Buffer.alloc(32).toString("base64"), body)),
      await post(path, `${body} `, macOf(secret, body)),
      await post(`/hooks/airtable/${other.base.id}`, body, macOf(secret, body)),
      await post("/hooks/airtable/bas_nobody", body, macOf(secret, body)),
      await post(`/hooks/airtable/${"x".repeat(2000)}`, body, macOf(secret, body)),
    ];
    for (const { status, text } of refusals) {
      expect(status).toBe(401);
      expect(JSON.parse(text)).toMatchObject({
        error: { code: "unauthorized", message: expect.stringMatching(/sign/) },
      });
    }
    const large = "x".repeat(65_537);
    const tooLarge = await post(path, large, macOf(secret, large));
    expect([tooLarge.status, JSON.parse(tooLarge.text).error.code]).toEqual([422, "invalid_request"]);
    expect(await feed.wakeUp(200, signal)).toBe(false);
    expect(await live.kept()).toMatchObject({ isNotified: false });
    // The valid one has any size up to the limit, and any content type.
    const most = "x".repeat(65_536);
    expect((await post(path, most, macOf(secret, most))).status).toBe(204);
    expect(await feed.wakeUp(30_000, signal)).toBe(true);
  });
});

describe("freshness", () => {
  test("a webhook that reports nothing is detected, SQL is correct again, and another webhook is created", async () => {
    const { live, worker, feed, read } = await opened();
    const { compare } = await worker.swept();
    await feed.closeFeedGap(performance.now());
    const rows = await stack().fleet.owner(await live.now());
    const names = async () => (await rows`select name from things order by name`).map(({ name }) => name);
    expect(await compare(feed)).toEqual([]);
    expect((await live.now()).live).toMatchObject({ comparedAt: expect.any(Date), driftedSince: null });

    const [{ id } = { id: "" }] = live.webhooks();
    control().webhooks.silence(live.sourceId, id);
    const unheard = live.create("unheard");
    expect((await read()).payloads).toBe(0);
    const from = new Date();
    expect(await compare(feed)).toEqual([unheard]);
    // The read that follows does not report it.
    await feed.recordDrift();
    expect(await names()).toEqual(["N0", "N1", "N2", "unheard"]);
    expect((await live.now()).live).toMatchObject({
      driftedSince: expect.any(Date),
      gapSince: feed.gapSince,
    });
    expect(feed.gapSince!.getTime()).toBeGreaterThanOrEqual(from.getTime());

    expect(await feed.wakeUp(30_000, signal)).toBe(true);
    expect((await read()).hasGap).toBe(true);
    await expectNewWebhook(live, id, from);
    const heard = live.create("heard");
    expect(created(await read())).toEqual([heard]);
    expect((await live.now()).live!.driftedSince).not.toBeNull();
    await feed.closeFeedGap(performance.now());
    expect((await live.now()).live).toMatchObject({ driftedSince: null, gapSince: null });
  });

  test("a known feed gap does not count against the webhook: a sweep will close it", async () => {
    const { live, worker, feed, read } = await opened();
    const { compare } = await worker.swept();
    await feed.closeFeedGap(performance.now());
    const [{ id } = { id: "" }] = live.webhooks();
    control().webhooks.silence(live.sourceId, id);
    live.create("unheard");
    control().webhooks.silence(live.sourceId, id, false);
    control().webhooks.fail(live.sourceId, id, "INTERNAL_ERROR");
    expect((await read()).hasGap).toBe(true);
    expect(await compare(feed)).toEqual([]);
    expect(await live.kept()).toMatchObject({ webhookId: id });
  });

  test("changes that are known to wait, or that a sweep has found, do not differ", async () => {
    const { live, worker, feed } = await opened();
    const { compare, sweep } = await worker.swept();
    await feed.closeFeedGap(performance.now());
    live.create("waiting");
    expect(await compare(feed, { isPending: () => true })).toEqual([]);
    await sweep();
    expect(await compare(feed)).toEqual([]);
    expect(feed.gapSince).toBeNull();
    expect((await live.now()).live!.driftedSince).toBeNull();
  });
});

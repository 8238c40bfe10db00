/**
 * The webhook of a base, end to end: created, adopted, refreshed, and created again when it has ended at the source.
 */

import { describe, expect, test } from "vitest";
import { created, expectNewWebhook, feedScene } from "../../support/feed-scene";
import type { LiveBase } from "../../support/feed-stack";

const DAY_MS = 24 * 3600_000;
const { stack, control, consoleUrl, opened } = feedScene();

describe("a webhook", () => {
  test("is created with a URL for this base, an encrypted secret and a feed gap before it", async () => {
    const from = new Date();
    const { live, worker } = await opened();
    const [webhook] = live.webhooks();
    expect(webhook).toMatchObject({ notificationUrl: `${consoleUrl()}/hooks/airtable/${live.base.id}` });
    await expectNewWebhook(live, "", from);
    expect(worker.asked).toEqual({ webhooks: 1 });
    expect((await live.kept())!.encryptedSecret).toMatch(/^v1\./);
    expect((await live.now()).live).toMatchObject({
      state: "on",
      reason: "",
      gapSince: expect.any(Date),
      missed: 0,
    });
  });

  test("is adopted by the next worker without a request, and read from the saved cursor", async () => {
    const { live, feed, read } = await opened();
    const first = live.create("first");
    const batch = await read();
    expect(created(batch)).toEqual([first]);
    await feed.save(batch.cursor);
    const second = live.create("second");
    expect(created(await read())).toEqual([second]);

    const next = live.worker();
    const adopted = await next.open();
    expect(next.asked).toEqual({});
    expect(created(await adopted.read(await next.reader()))).toEqual([second]);
    expect(next.asked).toEqual({ payloads: 1 });
  });

  test("is refreshed days before it expires, by the source's clock", async () => {
    const { live, worker, read } = await opened();
    await read();
    const before = (await live.kept())!.expiresMs!;
    control().advanceClock(3.9 * DAY_MS);
    await read();
    expect(worker.asked.webhooks).toBe(1);
    expect((await live.kept())!.expiresMs).toBe(before);
    control().advanceClock(0.2 * DAY_MS);
    await read();
    // The source's time is known from an answer, so detection may take one.
    await read();
    expect(worker.asked.webhooks).toBe(2);
    expect((await live.kept())!.expiresMs! - before).toBeGreaterThan(4 * DAY_MS);
  });

  const ends: [string, (live: LiveBase, id: string) => void | Promise<void>][] = [
    ["deleted elsewhere", (live, id) => control().webhooks.delete(live.sourceId, id)],
    ["in error: INVALID_HOOK", (live, id) => control().webhooks.fail(live.sourceId, id, "INVALID_HOOK")],
    [
      "in error: INVALID_FILTERS",
      (live, id) => control().webhooks.fail(live.sourceId, id, "INVALID_FILTERS"),
    ],
    ["expired", () => control().advanceClock(7.5 * DAY_MS)],
    ["gone for longer than the source keeps payloads", () => control().advanceClock(20 * DAY_MS)],
  ];
  test.each(ends)("%s is created again, with a feed gap, and its changes arrive", async (_, end) => {
    const { live, feed, read } = await opened();
    const [{ id } = { id: "" }] = live.webhooks();
    const first = live.create("first");
    const before = await read();
    expect(created(before)).toEqual([first]);
    await feed.closeFeedGap(performance.now());
    expect(feed.gapSince).toBeNull();
    const from = new Date();
    await end(live, id);

    let batch = await read();
    // An expired webhook can still be read: only the refresh reports it.
    for (let tries = 0; !batch.hasGap && tries < 3; tries++) batch = await read();
    expect(batch.hasGap).toBe(true);
    await expectNewWebhook(live, id, from);
    expect(feed.gapSince).toEqual((await live.kept())!.gapSince);

    const second = live.create("second");
    const after = await read();
    expect(created(after)).toEqual([second]);
    expect(after.from).toBeGreaterThanOrEqual(before.cursor);
    // E1: numbers of the old webhook do not move the new one's cursor.
    await feed.save(before.cursor);
    expect((await live.kept())!.cursor).toBe(1);
    await feed.save(after.cursor);
    expect((await live.kept())!.cursor).toBe(2);
    expect((await read()).payloads).toBe(0);
  });

  test("that failed only temporarily is kept, with a feed gap for what it did not report", async () => {
    const { live, feed, read } = await opened();
    await feed.closeFeedGap(performance.now());
    const [{ id } = { id: "" }] = live.webhooks();
    control().webhooks.fail(live.sourceId, id, "INTERNAL_ERROR");
    const batch = await read();
    expect(batch).toMatchObject({ hasGap: true, error: "INTERNAL_ERROR" });
    expect(await live.kept()).toMatchObject({ webhookId: id, gapSince: feed.gapSince });
    expect(feed.gapSince).not.toBeNull();
    expect((await read()).hasGap).toBe(false);
  });

  test.each(["skip", "refuse"] as const)(
    "whose payloads have expired (the source: %s) leaves a feed gap",
    async (oldCursor) => {
      const { live, feed, read } = await opened();
      await read();
      await feed.closeFeedGap(performance.now());
      const [{ id } = { id: "" }] = live.webhooks();
      live.create("lost");
      // Kept alive by another reader, which does not need the expired payloads.
      for (let days = 0; days < 8; days += 4) {
        control().advanceClock(4 * DAY_MS);
        await fetch(
          `${stack().fleet.sandbox.url}/v0/bases/${live.sourceId}/webhooks/${id}/payloads?cursor=2`,
          {
            headers: { authorization: `Bearer ${stack().fleet.sandbox.key}` },
          },
        );
      }
      live.create("kept");
      control().settings({ webhooks: { oldCursor } });
      try {
        expect((await read()).hasGap).toBe(true);
      } finally {
        control().settings({ webhooks: { oldCursor: "skip" } });
      }
      expect((await live.kept())!.gapSince).toEqual(feed.gapSince);
      expect(feed.gapSince).not.toBeNull();
      const next = live.create("next");
      const batches = [await read(), await read()];
      expect(batches.flatMap(created)).toContain(next);
    },
  );
});

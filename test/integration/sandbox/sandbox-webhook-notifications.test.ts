/**
 * The notifications of the sandbox's webhooks: signed, retried, lost and doubled as configured, and sent nowhere else.
 */
import { createHmac } from "node:crypto";
import { describe, expect, test } from "vitest";
import { until } from "../../support/poll";
import { EVERYTHING, type Loose, webhookScene } from "../../support/webhook-support";

const scene = webhookScene();
const { hooks, listed, made, rename } = scene;

describe("notifications", () => {
  /** A listener that answers with `status` and stores what it receives. */
  function listener(status: () => number = () => 204) {
    const got: { body: string; mac: string | null }[] = [];
    const server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: async (request) => {
        got.push({ body: await request.text(), mac: request.headers.get("x-airtable-content-mac") });
        const code = status();
        return new Response(null, {
          status: code,
          ...(code === 302 && { headers: { location: "/elsewhere" } }),
        });
      },
    });
    return {
      got,
      url: `http://127.0.0.1:${server.port}/ping`,
      [Symbol.asyncDispose]: () => server.stop(true),
    };
  }

  const result = async (): Promise<Loose> => ((await hooks("GET")).body.webhooks as Loose)[0];
  const arrived = (what: { got: unknown[] }, count: number) =>
    until(() => what.got.length >= count, { what: `notification ${count} arrives` });
  const tried = (count: number) =>
    until(() => scene.control.webhooks.pings(scene.baseId).length >= count, {
      what: `notification ${count} was attempted`,
    });

  test("a notification names base and webhook, and its bytes are signed with the decoded secret", async () => {
    await using target = listener();
    const { body } = await hooks("POST", "", { notificationUrl: target.url, specification: EVERYTHING });
    rename("ping");
    await arrived(target, 1);
    const [ping] = target.got;
    expect(JSON.parse(ping!.body)).toEqual({
      base: { id: scene.baseId },
      webhook: { id: body.id },
      timestamp: expect.stringMatching(/Z$/),
    });
    const secret = Buffer.from(String(body.macSecretBase64), "base64");
    expect(ping!.mac).toBe(`hmac-sha256=${createHmac("sha256", secret).update(ping!.body).digest("hex")}`);
    await tried(1);
    expect(await result()).toMatchObject({
      lastNotificationResult: { success: true, retryNumber: 0, durationMs: expect.any(Number) },
      lastSuccessfulNotificationTime: expect.stringMatching(/Z$/),
    });
  });

  test("a failed notification is retried with growing delays, until the webhook's notifications are disabled", async () => {
    scene.control.settings({ webhooks: { pingMaxRetries: 2, pingRetryMs: 60_000 } });
    await using target = listener(() => 503);
    await made(EVERYTHING, target.url);
    rename("ping");
    await tried(1);
    expect((await result()).lastNotificationResult).toMatchObject({
      success: false,
      retryNumber: 0,
      willBeRetried: true,
      error: { message: "The HTTP request returned a 503 status code instead of 200 or 204" },
    });
    scene.control.advanceClock(60_000);
    await tried(2);
    await using other = listener();
    const otherId = await made(EVERYTHING, other.url);
    scene.control.advanceClock(119_000);
    rename("covered by the retry");
    // An early retry would have been sent before this one.
    await tried(3);
    expect(target.got).toHaveLength(2);
    await hooks("DELETE", `/${otherId}`);
    scene.control.advanceClock(1_000);
    await tried(4);
    expect(await result()).toMatchObject({
      areNotificationsEnabled: false,
      isHookEnabled: true,
      cursorForNextPayload: 3,
      lastNotificationResult: { retryNumber: 2, willBeRetried: false },
    });
    const { id } = await result();
    await hooks("POST", `/${id}/enableNotifications`, { enable: true });
    rename("again");
    await arrived(target, 4);
  });

  test("changes that are made together, or while a notification is in progress, cause one more", async () => {
    await using target = listener();
    const id = await made(EVERYTHING, target.url);
    for (let i = 0; i < 20; i++) rename(`name ${i}`);
    await arrived(target, 1);
    await until(async () => (await result()).lastSuccessfulNotificationTime, {
      what: "a notification succeeds",
    });
    expect(target.got.length).toBeLessThanOrEqual(2);
    expect((await listed(id)).cursor).toBe(21);
  });

  test("notifications are lost, doubled and delayed as configured, and a webhook has no record of a lost one", async () => {
    await using target = listener();
    await made(EVERYTHING, target.url);
    scene.control.settings({ webhooks: { pingLoss: 1 } });
    rename("lost");
    await tried(1);
    expect((await result()).lastNotificationResult).toBeNull();
    scene.control.settings({ webhooks: { pingLoss: 0, pingDuplication: 1 } });
    rename("doubled");
    await arrived(target, 2);
    await tried(3);
    scene.control.settings({ webhooks: { pingDuplication: 0, pingDelayMs: 3_600_000 } });
    rename("delayed");
    expect(scene.control.webhooks.pings(scene.baseId).map(({ outcome }) => outcome)).toEqual([
      "lost",
      "delivered",
      "delivered",
    ]);
    scene.control.advanceClock(3_600_000);
    await arrived(target, 3);
  });

  test("a payload that becomes available after a notification gets its own", async () => {
    await using target = listener();
    await made(EVERYTHING, target.url);
    rename("now");
    scene.control.settings({ webhooks: { payloadDelayMs: 60_000 } });
    rename("in a minute");
    await tried(1);
    scene.control.advanceClock(60_000);
    await arrived(target, 2);
  });

  test.for(["https://hooks.example.org/ping", "http://10.0.0.1/ping", "http://127.0.0.1.example.org/ping"])(
    "G1: %s is never called: the notification fails",
    async (url) => {
      await made(EVERYTHING, url);
      rename("ping");
      await tried(1);
      expect((await result()).lastNotificationResult).toMatchObject({
        success: false,
        error: { message: "The sandbox calls loopback addresses only" },
      });
    },
  );

  test("G1: a redirect is not followed", async () => {
    await using target = listener(() => 302);
    await made(EVERYTHING, target.url);
    rename("ping");
    await tried(1);
    expect((await result()).lastNotificationResult.success).toBe(false);
    expect(target.got).toHaveLength(1);
  });
});

/** Which base a notification belongs to, where notifications can be sent, and whether they are relied on. */
import { createHmac, randomBytes } from "node:crypto";
import fc from "fast-check";
import { afterEach, describe, expect, test, vi } from "vitest";
import { Notifier } from "../../core/async";
import {
  isSignedNotification as isSignedBy,
  NOTIFICATION_MAC_HEADER,
} from "../../core/source/airtable/webhooks";
import { Comparisons } from "../../core/sync/modes/live/comparisons";
import { notificationAddress } from "../../core/sync/modes/live/notification-address";
import { NotificationTrust } from "../../core/sync/modes/live/notification-trust";

const bytes = (max: number) => fc.uint8Array({ maxLength: max });
const sign = (body: Uint8Array, secret: Uint8Array) =>
  `hmac-sha256=${createHmac("sha256", secret).update(body).digest("hex")}`;
const isSigned = (body: Uint8Array, secret: string, mac: string | null) =>
  isSignedBy(body, secret, new Headers(mac === null ? {} : { [NOTIFICATION_MAC_HEADER]: mac }));

describe("a notification's signature", () => {
  test("matches its own body and secret, and no other", () => {
    const arbitrary = fc.record({ body: bytes(200), secret: bytes(64), other: bytes(64) });
    fc.assert(
      fc.property(arbitrary, ({ body, secret, other }) => {
        const base64 = Buffer.from(secret).toString("base64");
        expect(isSigned(body, base64, sign(body, secret))).toBe(true);
        const longer = Buffer.concat([body, Buffer.from("!")]);
        expect(isSigned(longer, base64, sign(body, secret))).toBe(false);
        // HMAC pads short keys with zeros: only keys that differ beyond that are different.
        const padded = (key: Uint8Array) =>
          Buffer.concat([key, Buffer.alloc(64 - key.length)]).toString("hex");
        fc.pre(padded(other) !== padded(secret));
        expect(isSigned(body, base64, sign(body, other))).toBe(false);
      }),
    );
  });

  test("is the whole header and nothing else", () => {
    const [body, secret] = [Buffer.from("{}"), randomBytes(32)];
    const base64 = secret.toString("base64");
    const good = sign(body, secret);
    expect(isSigned(body, base64, good.toUpperCase().replace("HMAC-SHA256", "hmac-sha256"))).toBe(true);
    const wrong = [
      null,
      "",
      "hmac-sha256=",
      good.slice(0, -2),
      `${good}00`,
      good.replace("hmac-sha256=", ""),
      good.replace("sha256", "sha1"),
      `hmac-sha256=${"zz".repeat(32)}`,
    ];
    for (const header of wrong) expect(isSigned(body, base64, header)).toBe(false);
  });
});

describe("the URL of notifications", () => {
  const FAR = {
    "api.airtable.com": "https://api.airtable.com",
    "content.airtable.com": "https://203.0.114.1",
  };
  const NEAR = {
    "api.airtable.com": "http://127.0.0.1:4100",
    "content.airtable.com": "http://127.0.0.1:4100",
  };
  const names: Record<string, string[]> = {
    "api.airtable.com": ["34.1.2.3"],
    "sync.example.com": ["34.5.6.7", "2a00::1"],
    "inside.example.com": ["34.5.6.7", "10.0.0.7"],
  };
  const lookUp = async (host: string) => {
    const found = names[host];
    if (!found) throw new Error("ENOTFOUND");
    return found;
  };
  const given = (
    consoleUrl: string,
    upstreams: Record<string, string>,
    livePings: "auto" | "on" | "off" = "auto",
  ) =>
    notificationAddress({ consoleUrl, upstreams, livePings }, { id: "bas_1", platform: "airtable" }, lookUp);

  test.each([
    ["https://sync.example.com", FAR, "https://sync.example.com/hooks/airtable/bas_1"],
    ["https://34.5.6.7:8443", FAR, "https://34.5.6.7:8443/hooks/airtable/bas_1"],
    ["https://[2a00::1]", FAR, "https://[2a00::1]/hooks/airtable/bas_1"],
    ["https://inside.example.com", FAR, null],
    ["http://localhost:3000", FAR, null],
    ["http://127.0.0.1:3000", FAR, null],
    ["http://[::1]:3000", FAR, null],
    ["http://192.168.1.20", FAR, null],
    ["http://console", FAR, null],
    ["http://console.internal", FAR, null],
    ["http://169.254.169.254", FAR, null],
    ["http://localhost:3000", NEAR, "http://localhost:3000/hooks/airtable/bas_1"],
    ["http://10.1.2.3", NEAR, "http://10.1.2.3/hooks/airtable/bas_1"],
    ["https://sync.example.com", NEAR, "https://sync.example.com/hooks/airtable/bas_1"],
  ])("%s, with a source at %o: %s", async (consoleUrl, upstreams, url) => {
    expect(await given(consoleUrl, upstreams)).toEqual({ url, isSure: true });
  });

  test("is unknown while the name is, which is no reason to change anything", async () => {
    expect(await given("https://gone.example.com", FAR)).toEqual({ url: null, isSure: false });
  });

  test("is LIVE_PINGS where that is set", async () => {
    expect(await given("http://localhost:3000", FAR, "on")).toMatchObject({
      url: expect.stringContaining("localhost"),
    });
    expect(await given("https://sync.example.com", FAR, "off")).toEqual({ url: null, isSure: true });
  });
});

describe("notifications", () => {
  afterEach(() => void vi.useRealTimers());

  const signal = new AbortController().signal;

  test("one that came while no loop was waiting wakes the next wait, and only once", async () => {
    const notifier = new Notifier();
    notifier.notifyFromWebhook();
    notifier.notifyFromWebhook();
    expect(await notifier.wait(60_000, signal)).toBe(true);
    expect(await notifier.wait(1, signal)).toBe(false);
    const waiting = notifier.wait(60_000, signal);
    notifier.notifyFromWebhook();
    expect(await waiting).toBe(true);
  });

  test("a wait can be canceled", async () => {
    const stop = new AbortController();
    const waiting = new Notifier().wait(60_000, stop.signal);
    stop.abort();
    await expect(waiting).rejects.toMatchObject({ code: "sync_stopped" });
  });

  test("are not relied on after a change came without one, until one comes", () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    const notifier = new Notifier();
    const trust = new NotificationTrust(notifier, () => "proven", false, { foundAt: undefined });
    const readAt = performance.now();
    vi.advanceTimersByTime(1000);
    trust.found(readAt);
    expect([trust.judge(), trust.state, trust.graceMs]).toEqual([false, "proven", 30_000]);
    vi.advanceTimersByTime(29_999);
    expect([trust.judge(), trust.state]).toEqual([false, "proven"]);
    vi.advanceTimersByTime(1);
    expect([trust.judge(), trust.state]).toEqual([true, "none"]);
    expect(trust.judge()).toBe(false);
    vi.advanceTimersByTime(1000);
    notifier.notifyFromWebhook();
    expect(trust.state).toBe("proven");
  });

  test("that did not come before the end of a lease are missed by the next one", () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    const feedState = { foundAt: undefined };
    const lease = () => new NotificationTrust(new Notifier(), () => "proven", false, feedState);
    vi.advanceTimersByTime(1000);
    lease().found(performance.now());
    vi.advanceTimersByTime(20_000);
    const next = lease();
    expect([next.judge(), next.graceMs]).toEqual([false, 10_000]);
    vi.advanceTimersByTime(10_000);
    expect([next.judge(), next.state]).toEqual([true, "none"]);
  });

  test("one that comes soon after its change was found still counts", () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    const notifier = new Notifier();
    const trust = new NotificationTrust(notifier, () => "proven", false, { foundAt: undefined });
    vi.advanceTimersByTime(1000);
    trust.found(performance.now() - 500);
    vi.advanceTimersByTime(20_000);
    notifier.notifyFromWebhook();
    vi.advanceTimersByTime(20_000);
    expect([trust.judge(), trust.state]).toEqual([false, "proven"]);
  });

  test("of a base follow what is known of the address, except while its own do not arrive", () => {
    let address: "proven" | "expected" | "none" = "expected";
    const notifier = new Notifier();
    const feedState = { foundAt: undefined };
    const trust = new NotificationTrust(notifier, () => address, false, feedState);
    const other = new NotificationTrust(notifier, () => address, true, feedState);
    for (address of ["expected", "none", "proven"] as const)
      expect([trust.state, other.state]).toEqual([address, "none"]);
    notifier.notifyFromWebhook();
    expect(other.state).toBe("proven");
  });
});

describe("tables to compare", () => {
  test("every table has its turn, even if the feed always reports others", () => {
    const ids = fc.array(fc.constantFrom("a", "b", "c", "d"), { maxLength: 60 });
    fc.assert(
      fc.property(ids, (told) => {
        const comparisons = new Comparisons();
        const counts = new Map<string, number>();
        for (const id of told) {
          comparisons.told(id);
          const next = comparisons.next(["a", "b", "c", "d"])!;
          comparisons.compared(next, 0);
          counts.set(next, (counts.get(next) ?? 0) + 1);
        }
        for (const id of ["a", "b", "c", "d"])
          expect(counts.get(id) ?? 0).toBeGreaterThanOrEqual(Math.floor(told.length / 8));
      }),
    );
  });

  test("the most recently reported one comes first", () => {
    const comparisons = new Comparisons();
    comparisons.told("b");
    comparisons.told("c");
    expect(comparisons.next(["a", "b", "c"])).toBe("c");
    comparisons.compared("c", 0);
    expect(comparisons.next(["a", "b", "c"])).toBe("a");
    comparisons.compared("a", 0);
    expect(comparisons.next(["a", "b", "c"])).toBe("b");
    expect(new Comparisons().next([])).toBeUndefined();
  });
});

import { expect, test } from "vitest";
import { BasetideError } from "../../core/errors";
import type { QuotaClock } from "../../core/limiter/clock";
import type { SharedBackend } from "../../core/limiter/control-plane";
import { createFallbackLimiter, withFallback } from "../../core/limiter/fallback-limiter";
import { startHeartbeat } from "../../core/limiter/heartbeat";

const WINDOW_MS = 1000;
/** Long after the control plane has noticed that a proxy is silent, ms. */
const LATER_MS = 60_000;
const MARGIN = { delayMs: 0, spreadMs: 0, dropMs: 0 };

/** A proxy whose control plane has registered it, and then fails. */
async function silentProxy() {
  let time = 0;
  const clock: QuotaClock = { now: () => time, at: () => () => {} };
  const done = async () => {};
  const heartbeat = startHeartbeat(
    { reach: done, heartbeat: async () => 2, leave: done },
    clock,
    "p",
    WINDOW_MS,
  );
  await expect.poll(() => heartbeat.share).toBe(2);
  const unavailable = async () => {
    throw new BasetideError("control_unavailable");
  };
  const shared: SharedBackend = {
    acquire: unavailable,
    rejoin: unavailable,
    isVoid: async () => false,
    reportLateSend: done,
  };
  const window = createFallbackLimiter(clock, WINDOW_MS);
  const local = () => {
    window.open(heartbeat.share, heartbeat.freeFrom);
    return window;
  };
  const backend = withFallback(shared, local, heartbeat, clock);
  return {
    heartbeat,
    tick: (ms: number) => {
      time += ms;
    },
    grantsLater: async () => {
      time += LATER_MS;
      return (await backend.acquire([0, 0, 0], [], MARGIN)).reservations.filter((one) => one !== null).length;
    },
  };
}

test("a proxy that the control plane no longer hears from grants its share by itself", async () => {
  const { grantsLater } = await silentProxy();
  expect(await grantsLater()).toBe(2);
});

test("I4: a proxy that has left grants nothing by itself: the control plane leaves no requests to it", async () => {
  const { heartbeat, grantsLater } = await silentProxy();
  await heartbeat.leave();
  await expect(grantsLater()).rejects.toMatchObject({ code: "control_unavailable" });
});

test("I4: one that leaves while its own grants count keeps its share, since it stays registered", async () => {
  const { heartbeat, grantsLater } = await silentProxy();
  expect(await grantsLater()).toBe(2);
  await heartbeat.leave();
  expect(await grantsLater()).toBe(2);
});

test("I4: a proxy's own grants begin when reservations of others with a new path are out of its longer window", async () => {
  const { heartbeat } = await silentProxy();
  // Its silence is noticed after 1.5 s; by then, an overdue sync may have reserved two windows and 530 ms ahead.
  expect(heartbeat.freeFrom).toBe(1500 + 2 * 1250 + 530 + 1250);
});

test("I4: a proxy sends no heartbeat while its own grants are in the longer window of a new path", async () => {
  const { heartbeat, grantsLater, tick } = await silentProxy();
  await grantsLater();
  tick(1249);
  await heartbeat.leave();
  expect(heartbeat.share).toBe(2);
  tick(100);
  await heartbeat.leave();
  expect(heartbeat.share).toBe(0);
});

/**
 * What all bases learn about the address of the installation from the first edit of one of them. Its notification is
 * lost: all are polled, in this worker, in others and after a restart, until a notification arrives for any of them.
 */
import { expect, test } from "vitest";
import type { LiveFeed } from "../../../core/sync/modes/live";
import { created, openedBase } from "../../support/feed-scene";
import { type FeedStack, startFeedStack } from "../../support/feed-stack";
import { until } from "../../support/poll";

/** The time that a notification has, and a margin. */
const JUDGED_MS = 45_000;

const signal = new AbortController().signal;

/** Two bases of an installation. */
const twoOf = async (stack: FeedStack) => ({
  first: await openedBase(stack),
  other: await openedBase(stack),
  control: stack.fleet.sandbox.control,
});

/** Waits as a lease does, until the notification that was lost is missed. */
async function untilMissed(feed: LiveFeed): Promise<void> {
  const isMissed = async () => !(await feed.wakeUp(1000, signal)) && feed.notifications === "none";
  await until(isMissed, { what: "the notification is missed", timeoutMs: JUDGED_MS });
}

// Each mostly waits for a notification of its own installation.
test.concurrent("a notification that never comes makes all bases be polled, and one that comes for any base makes all rely on them, except those that miss their own", {
  timeout: 120_000,
}, async () => {
  await using stack = await startFeedStack();
  const { first, other, control } = await twoOf(stack);
  await first.read();
  await other.read();
  expect([first.feed.notifications, other.feed.notifications]).toEqual(["expected", "expected"]);
  control.settings({ webhooks: { pingLoss: 1 } });
  const lost = first.live.create("lost");
  expect(created(await first.read())).toEqual([lost]);
  // The other worker is told, and reads its feed at once: it may have missed a notification, too.
  const woken = other.feed.wakeUp(JUDGED_MS, signal);
  await untilMissed(first.feed);
  expect(await woken).toBe(true);
  const restarted = await other.live.worker().open();
  await until(() => restarted.notifications === "none", { what: "a new worker knows" });
  expect([first.feed.notifications, other.feed.notifications]).toEqual(["none", "none"]);
  expect([await first.live.now(), await other.live.now()]).toMatchObject([
    { live: { by: "poll" } },
    { live: { by: "poll" } },
  ]);

  control.settings({ webhooks: { pingLoss: 0 } });
  other.live.create("reported");
  await until(() => restarted.notifications === "proven", { what: "a new worker relies on notifications" });
  expect([first.feed.notifications, other.feed.notifications]).toEqual(["none", "proven"]);
  expect([await first.live.now(), await other.live.now()]).toMatchObject([
    { live: { by: "poll" } },
    { live: { by: "notification" } },
  ]);
  first.live.create("reported, too");
  await until(() => first.feed.notifications === "proven", { what: "the first base relies on them again" });
});

test.concurrent("once a notification has arrived, one that a base misses says nothing about the others", {
  timeout: 120_000,
}, async () => {
  await using stack = await startFeedStack();
  const { first, other, control } = await twoOf(stack);
  await first.read();
  await other.read();
  other.live.create("reported");
  await until(() => other.feed.notifications === "proven", { what: "a notification has arrived" });
  await until(() => first.feed.notifications === "proven", { what: "it counts for all bases" });
  control.settings({ webhooks: { pingLoss: 1 } });
  const lost = first.live.create("lost");
  expect(created(await first.read())).toEqual([lost]);
  // The lease is renewed meanwhile, as after each rest.
  const renewed = await first.worker.open();
  await untilMissed(renewed);
  expect([renewed.notifications, other.feed.notifications]).toEqual(["none", "proven"]);
  expect([await first.live.now(), await other.live.now()]).toMatchObject([
    { live: { by: "poll" } },
    { live: { by: "notification" } },
  ]);
});

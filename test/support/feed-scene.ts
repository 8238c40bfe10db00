/** Shared by the tests of a base's feed: a base with an open feed, and the assertions on a batch and a new webhook. */
import { afterAll, beforeAll, expect, vi } from "vitest";
import type { FeedBatch } from "../../core/sync/modes/live/feed-types";
import { type FeedStack, type LiveBase, startFeedStack } from "./feed-stack";

/** One stack for a test file. Call it once, before its tests. */
export function feedScene() {
  vi.setConfig({ testTimeout: 60_000 });
  let started: FeedStack | undefined;
  beforeAll(async () => {
    started = await startFeedStack();
  });
  afterAll(() => started?.[Symbol.asyncDispose]());
  const stack = () => started!;
  return {
    stack,
    control: () => stack().fleet.sandbox.control,
    consoleUrl: () => stack().fleet.ctx.config.consoleUrl,
    opened: () => openedBase(stack()),
    /** Runs a statement in the control plane. */
    async sql(query: string): Promise<void> {
      await stack().fleet.ctx.db.unsafe(query);
    },
  };
}

/** Creates a base with an opened feed, and a reader for it. */
export async function openedBase(stack: FeedStack) {
  const live = await stack.connect();
  const worker = live.worker();
  const feed = await worker.open();
  const reader = await worker.reader();
  return { live, worker, feed, read: () => feed.read(reader) };
}

/** Ids of the records that a batch reports as created. */
export function created(batch: FeedBatch): string[] {
  return [...batch.changes.tables.values()].flatMap((table) => table.created);
}

/** Expects that the base's only webhook is a new one, and that its gap covers the time since `from`. */
export async function expectNewWebhook(live: LiveBase, oldId: string, from: Date): Promise<void> {
  const kept = (await live.kept())!;
  expect(kept).toMatchObject({ state: "on", cursor: 1 });
  expect(kept.webhookId).not.toBe(oldId);
  expect(kept.gapSince!.getTime()).toBeGreaterThanOrEqual(from.getTime());
  expect(live.webhooks().map(({ id, isHookEnabled }) => [id, isHookEnabled])).toEqual([
    [kept.webhookId, true],
  ]);
}

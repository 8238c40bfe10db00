/** What tests of a base's feed share: a base whose feed is open, and what a batch and a new hook are looked at for. */
import { expect } from "vitest";
import type { FeedBatch } from "../../core/sync/live/feed-types";
import type { FeedStack, LiveBase } from "./feed-stack";

/** A base with a feed that has been opened, and a reader for it. */
export async function openedBase(stack: FeedStack) {
  const live = await stack.connect();
  const worker = live.worker();
  const feed = await worker.open();
  const reader = await worker.reader();
  return { live, worker, feed, read: () => feed.read(reader) };
}

/** Ids that a batch names as created. */
export function created(batch: FeedBatch): string[] {
  return [...batch.changes.tables.values()].flatMap((table) => table.created);
}

/** The base's only hook is another than it was, and its gap is of the time since `from`. */
export async function expectNewHook(live: LiveBase, oldId: string, from: Date): Promise<void> {
  const kept = (await live.kept())!;
  expect(kept).toMatchObject({ state: "on", cursor: 1 });
  expect(kept.hookId).not.toBe(oldId);
  expect(kept.gapSince!.getTime()).toBeGreaterThanOrEqual(from.getTime());
  expect(live.hooks().map(({ id, isHookEnabled }) => [id, isHookEnabled])).toEqual([[kept.hookId, true]]);
}

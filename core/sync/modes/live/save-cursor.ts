/** Saves the feed's cursor as it advances: one save after another, and only the latest cursor. */
import type { DirtySet } from "../../state";
import type { Feed } from "./feed-types";

interface CursorSaving {
  dirty: Pick<DirtySet, "durableCursor" | "wake">;
  feed: Pick<Feed, "save">;
  stop: AbortSignal;
}

/** Saves cursors until `stop` aborts, and then what is still unsaved. */
export async function keepSavingCursor({ dirty, feed, stop }: CursorSaving): Promise<void> {
  for (let saved = 0; ; ) {
    const cursor = dirty.durableCursor;
    if (cursor > saved) {
      await feed.save(cursor);
      saved = cursor;
    } else if (stop.aborted) return;
    // Not after the end: the next lease may wait for the same notifier.
    else await dirty.wake.cursor.wait(Infinity, stop).catch(() => {});
  }
}

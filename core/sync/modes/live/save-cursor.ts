/** Saves the feed's cursor as it advances: one save after another, and only the latest cursor. */
import type { WorkKind } from "../../pacing";
import type { DirtySet } from "../../state";
import type { Feed } from "./feed-types";

interface CursorSaving {
  dirty: Pick<DirtySet, "durableCursor">;
  feed: Pick<Feed, "save">;
}

/** The cursor that is not saved yet; and a function that saves it at the end. */
export function savingCursor({ dirty, feed }: CursorSaving): { kind: WorkKind; save: () => Promise<void> } {
  let saved = 0;
  const isSaved = () => dirty.durableCursor <= saved;
  async function save(): Promise<void> {
    if (isSaved()) return;
    const cursor = dirty.durableCursor;
    await feed.save(cursor);
    saved = cursor;
  }
  return { kind: { most: 1, items: () => (isSaved() ? [] : [{ id: "cursor", run: save }]) }, save };
}

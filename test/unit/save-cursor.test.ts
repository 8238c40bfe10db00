/** When live mode saves the feed's cursor. */
import { expect, test } from "vitest";
import { keepSavingCursor } from "../../core/sync/modes/live/save-cursor";
import { DirtySet } from "../../core/sync/state";
import { until } from "../support/poll";

test("cursors are saved one after another, only the latest, and the last one when the lease ends", async () => {
  const dirty = new DirtySet();
  const end = new AbortController();
  const saves: number[] = [];
  const first = Promise.withResolvers<void>();
  const save = async (cursor: number) => {
    saves.push(cursor);
    await first.promise;
  };
  const read = (from: number) => {
    dirty.beginBatch(from);
    dirty.add("tblA", "rec1", { cursor: from, why: "direct", fields: null });
    dirty.endBatch(from + 1);
  };
  const applied = () => dirty.ack(dirty.take("tblA")!, ["rec1"]);
  const saving = keepSavingCursor({ dirty, feed: { save }, stop: end.signal });
  read(1);
  await until(() => saves.length === 1, { what: "the cursor of what waits is saved" });
  for (const from of [2, 3]) {
    applied();
    read(from);
  }
  first.resolve();
  await until(() => saves.length === 2, { what: "the latest cursor is saved" });
  applied();
  end.abort();
  await saving;
  expect(saves).toEqual([1, 3, 4]);
});

import { expect, test } from "vitest";
import { browsableTables } from "../../../core/data-browser";

test("tables can be read as soon as they are complete, also during the first sync", () => {
  const counted = { name: "tasks", source_name: "Tasks", source_id: "tblOne", records: 3 };
  const reading = { name: "people", source_name: "People", records_done: 2, records_estimate: null };
  const progress = (done: boolean) => ({
    kind: "first" as const,
    started_at: "2026-11-22T00:00:00Z",
    tables: [
      { ...reading, done },
      { ...reading, name: "tasks", source_name: "Tasks", done: true },
    ],
  });
  const names = (done: boolean) =>
    browsableTables({ tables: [counted], progress: progress(done) }).map(({ name, records }) => [
      name,
      records,
    ]);
  expect(names(false)).toEqual([["tasks", 3]]);
  expect(names(true)).toEqual([
    ["people", 2],
    ["tasks", 3],
  ]);
  expect(browsableTables({ tables: [], progress: null })).toEqual([]);
});

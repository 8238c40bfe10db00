/**
 * Records that are read because a user opens their attachments: how few requests they take, and which answers are
 * trusted.
 */
import { expect, test } from "vitest";
import { RecordQueue, type RecordSource } from "../../core/attachments/record-queue";
import { BasetideError } from "../../core/errors";
import type { SourceRecord } from "../../core/source";
import { sourceRecord } from "../support/source-records";

/** A source with these records, on a clock that only pauses move; `calls` has its requests. */
function lineTo(has: string[], faults: Partial<RecordSource> = {}) {
  const calls: string[] = [];
  let nowMs = 0;
  const records = new Map(has.map((id) => [id, sourceRecord(id, {})]));
  const source: RecordSource = {
    async listed(tableId, ids) {
      calls.push(`${tableId}:${ids.length}`);
      await Promise.resolve();
      return faults.listed ? faults.listed(tableId, ids) : ids.flatMap((id) => records.get(id) ?? []);
    },
    async record(tableId, id) {
      calls.push(`${tableId}/${id}`);
      await Promise.resolve();
      return faults.record ? faults.record(tableId, id) : (records.get(id) ?? null);
    },
  };
  const pause = async (ms: number) => {
    nowMs += ms;
    await Promise.resolve();
  };
  const line = new RecordQueue(source, { now: () => nowMs, pause });
  return { line, calls, now: () => nowMs };
}

const idOf = (record: SourceRecord | null) => record?.id ?? null;
const many = (count: number) => Array.from({ length: count }, (_, index) => `rec${index}`);

test("two hundred records that are opened at once take two requests", async () => {
  const ids = many(200);
  const { line, calls } = lineTo(ids);
  const found = await Promise.all(ids.map((id) => line.read("tbl1", id)));
  expect(found.map(idOf)).toEqual(ids);
  expect(calls).toEqual(["tbl1:100", "tbl1:100"]);
});

test("one record that is opened two hundred times at once takes two", async () => {
  const { line, calls } = lineTo(["rec1"]);
  const first = line.read("tbl1", "rec1");
  const others = many(199).map(() => line.read("tbl1", "rec1"));
  expect(new Set((await Promise.all([first, ...others])).map(idOf))).toEqual(new Set(["rec1"]));
  // A request that arrives during the first one may know of newer records.
  expect(calls.length).toBeLessThanOrEqual(2);
});

test("one request never mixes tables", async () => {
  const { line, calls } = lineTo(["rec1", "rec2", "rec3"]);
  await Promise.all([line.read("tbl1", "rec1"), line.read("tbl2", "rec2"), line.read("tbl1", "rec3")]);
  expect(calls).toEqual(["tbl1:2", "tbl2/rec2"]);
});

test("a crawler, one record after the other, gets one per second after the first few", async () => {
  const ids = many(60);
  const { line, now } = lineTo(ids);
  for (const id of ids) await line.read("tbl1", id);
  expect(now()).toBeGreaterThanOrEqual(49_000);
});

test("a request beyond the limit gets the time for a retry", async () => {
  const { line } = lineTo([]);
  const waiting = many(1000).map((id) => line.read("tbl1", id));
  expect(() => line.read("tbl1", "recX")).toThrow(
    expect.objectContaining({ code: "rate_limited", details: { retryAfterSeconds: 5 } }),
  );
  await Promise.all(waiting);
});

test("a list without any record is not trusted before each one was requested by id", async () => {
  const { line, calls } = lineTo(["rec0", "rec1", "rec2"], { listed: async () => [] });
  const found = await Promise.all(["rec0", "rec1", "rec9"].map((id) => line.read("tbl1", id)));
  expect(found.map(idOf)).toEqual(["rec0", "rec1", null]);
  expect(calls).toEqual(["tbl1:3", "tbl1/rec0", "tbl1/rec1", "tbl1/rec9"]);
});

test("a list with other records is trusted about those that it lacks", async () => {
  const { line, calls } = lineTo(["rec0"]);
  const found = await Promise.all(["rec0", "rec8", "rec9"].map((id) => line.read("tbl1", id)));
  expect(found.map(idOf)).toEqual(["rec0", null, null]);
  expect(calls).toEqual(["tbl1:3"]);
});

test("forbidden means deleted only if the list can be read and lacks the record", async () => {
  const forbidden = async () => {
    throw new BasetideError("source_forbidden");
  };
  const gone = lineTo([], { record: forbidden });
  expect(await gone.line.read("tbl1", "rec1")).toBeNull();
  const there = lineTo(["rec1"], { record: forbidden });
  expect(idOf(await there.line.read("tbl1", "rec1"))).toBe("rec1");
  const shut = lineTo(["rec1"], { record: forbidden, listed: forbidden });
  await expect(shut.line.read("tbl1", "rec1")).rejects.toMatchObject({ code: "source_forbidden" });
});

test("a failed request fails all that waited for it, and the next one is new", async () => {
  let fails = 1;
  const { line } = lineTo(["rec1"], {
    async record() {
      if (fails-- > 0) throw new BasetideError("source_unavailable");
      return sourceRecord("rec1", {});
    },
  });
  await expect(line.read("tbl1", "rec1")).rejects.toMatchObject({ code: "source_unavailable" });
  expect(idOf(await line.read("tbl1", "rec1"))).toBe("rec1");
});

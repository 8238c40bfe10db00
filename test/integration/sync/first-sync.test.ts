/** In which order the tables of a first sync become readable. */
import { expect, test } from "vitest";
import type { Progress } from "../../../core/control/bases";
import type { SourceRecord } from "../../../core/source";
import { syncBase } from "../../../core/sync/engine";
import { testEngine } from "../../support/engine";
import { until } from "../../support/poll";
import { sourceRecord, sourceTable } from "../../support/source-records";

const PAGE = 10;
/** Tables that are complete within a few seconds share a request for the schema. */
const SCHEMA_AGE_MS = 10_000;

const records = (count: number): SourceRecord[] =>
  Array.from({ length: count }, (_, index) => sourceRecord(`rec${String(index).padStart(5, "0")}`, {}));

test("tables of a first sync become readable one after the other, small ones first, and not all at the end", async () => {
  const { source, input, progress, rows, cache } = await testEngine();
  source.pageSize = PAGE;
  const pages = { One: 12, Two: 12, Three: 12, Large: 30, Tiny: 1 };
  for (const [name, count] of Object.entries(pages)) {
    source.add(sourceTable(`tbl${name}`, name, { Name: "text" }), records(count * PAGE - 1));
  }
  const done = new Set<string>();
  /** How many pages of all tables had been read when a table was read completely. */
  const readAt = new Map<string, number>();
  const made = input();
  const { limiter } = made.reader;
  const onProgress = (now: Progress) => {
    made.onProgress(now);
    for (const { name, source_name, records_done } of now.tables) {
      const isRead = records_done === pages[source_name as keyof typeof pages] * PAGE - 1;
      if (isRead && !readAt.has(name)) readAt.set(name, now.pages!);
    }
    for (const table of now.tables) if (table.done) done.add(table.name);
  };
  let granted = 0;
  /**
   * Grants requests in their order, each once the one before was sent and everything that was answered is stored: no
   * table waits for a slow machine.
   */
  const isStored = () => {
    if (source.calls.length < granted) return false;
    const answered = source.calls.filter((call) => call.startsWith("list")).length;
    return answered === 0 || answered <= (progress.at(-1)?.pages ?? 0);
  };
  const isAllReadLive = () =>
    progress.at(-1)?.tables.every(({ done, records_done: read, source_name: name }) => {
      return done || read < pages[name as keyof typeof pages] * PAGE - 1;
    });
  let last: Promise<unknown> = Promise.resolve();
  const grant = async () => {
    await until(isStored, { what: "pages are stored", intervalMs: 1, timeoutMs: 30_000 });
    // A table that was read asks for the schema before it is put live, if the last one is some seconds old.
    cache.schemaSeenAt = Math.min(cache.schemaSeenAt, performance.now() - SCHEMA_AGE_MS);
    for (let look = 0; look < 200 && !isAllReadLive(); look++) await Bun.sleep(1);
    granted++;
    return undefined;
  };
  const acquireSync = () => {
    const next = last.then(grant);
    last = next;
    return next;
  };
  const reader = { ...made.reader, limiter: { ...limiter, acquireSync } };
  const report = await syncBase({ ...made, reader, onProgress });
  expect(report.error).toBeUndefined();
  const total = Object.values(pages).reduce((sum, count) => sum + count, 0);
  expect(readAt.get("tiny")).toBeLessThanOrEqual(5);
  // Sizes are not known: a table is read once the larger ones have as many pages.
  expect(readAt.get("one")! / total).toBeLessThan(0.75);
  expect([...done]).toEqual(["tiny", "one", "two", "three", "large"]);
  // The other calls are for the schema.
  expect(progress.at(-1)!.pages).toBe(total);
  expect(progress.at(-1)!.calls).toBeGreaterThan(total);
  for (const [name, count] of Object.entries(pages)) {
    expect([name, (await rows(name.toLowerCase())).length]).toEqual([name, count * PAGE - 1]);
  }
});

test("many tables of a few pages share requests for the schema, and each is put live by one that began after it was read", async () => {
  const { source, input, rows } = await testEngine();
  source.pageSize = PAGE;
  const names = Array.from({ length: 20 }, (_, at) => `t${at}`);
  for (const name of names) source.add(sourceTable(`tbl${name}`, name, { Name: "text" }), records(2 * PAGE));
  let listed = 0;
  const atSchema: number[] = [];
  source.before = async (call) => {
    if (call.startsWith("list")) listed++;
    else if (call.startsWith("schema")) atSchema.push(listed);
    await Bun.sleep(5);
  };
  const report = await syncBase(input());
  expect(report.error).toBeUndefined();
  expect(atSchema[0]).toBe(0);
  expect(atSchema.at(-1)).toBe(listed);
  expect(atSchema.length).toBeLessThanOrEqual(4);
  for (const name of names) expect([name, (await rows(name)).length]).toEqual([name, 2 * PAGE]);
});

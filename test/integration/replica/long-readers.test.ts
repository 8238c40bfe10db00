/** A reader's long transaction delays a new column of the table that it locks, and nothing else. */
import type postgres from "postgres";
import { expect, test, vi } from "vitest";
import type { SourceTable } from "../../../core/source";
import { testEngine } from "../../support/engine";
import { editor } from "../../support/fake-feed";
import { liveEngine } from "../../support/live-engine";
import { until } from "../../support/poll";
import { readerOf } from "../../support/replica";
import { sourceRecord, sourceTable } from "../../support/source-records";

vi.setConfig({ testTimeout: 120_000 });

function addField({ fields }: SourceTable, name = "More"): void {
  fields.push({ id: `fld${name}`, name, type: "text", sourceType: "text" });
}

/** A reader's transaction that locks `table`, until the returned function is called. */
async function hold(reader: postgres.Sql, table: string): Promise<() => Promise<void>> {
  const held = await reader.reserve();
  await held`begin`;
  await held`select from ${held(table)}`;
  return async () => {
    await held`commit`;
    held.release();
  };
}

test.concurrent("live: edits of known columns are shown while a new column waits, which then has all its values", async ({
  onTestFinished,
}) => {
  const engine = await liveEngine({ onFinished: onTestFinished });
  const { source, webhook, progress } = engine;
  const people = source.add(sourceTable("tblP", "People", { Name: "text" }), [
    sourceRecord("rec1", { fld0: "Ada" }),
    sourceRecord("rec2", { fld0: "Bob" }),
    sourceRecord("rec3", { fld0: "Cleo" }),
  ]);
  const edit = editor(webhook, { source, table: people });
  await engine.sync();
  engine.start();
  await using reader = readerOf(engine.replica.readerUrl);
  const letGo = await hold(reader, "people");
  addField(people.table);
  people.records.set("rec1", sourceRecord("rec1", { fld0: "Ada", fldMore: "m1" }));
  engine.cache.schemaCheckRequestedAt = new Date();
  const waits = () => progress.at(-1)?.tables.some(({ name, waiting }) => name === "people" && waiting);
  await until(async () => waits(), { what: "the new column waits", timeoutMs: 60_000 });
  for (const version of ["v1", "v2"]) {
    edit.put(sourceRecord("rec2", { fld0: version, fldMore: `more ${version}` }));
    await until(async () => ((await engine.rows()) as { name: string }[])[1]?.name === version, {
      what: `${version} is shown`,
      timeoutMs: 60_000,
    });
  }
  edit.destroy("rec3");
  await until(async () => (await engine.rows()).length === 2, { what: "rec3 is gone", timeoutMs: 60_000 });
  expect(Object.keys((await engine.rows())[0] as object)).not.toContain("more");
  await letGo();
  await until(async () => "more" in ((await engine.rows())[0] as object), {
    what: "the column exists",
    timeoutMs: 60_000,
  });
  expect(await engine.rows()).toMatchObject([
    { id: "rec1", name: "Ada", more: "m1" },
    { id: "rec2", name: "v2", more: "more v2" },
  ]);
  // Read once: changes in between came with the recent-writes log.
  expect(source.calls.filter((call) => call.startsWith("list tblP"))).toHaveLength(2);
});

test.concurrent("sweeps: known columns are synced while a new column waits, and the failure names it", async ({
  onTestFinished,
}) => {
  const engine = await testEngine({ onFinished: onTestFinished });
  const people = engine.source.add(sourceTable("tblP", "People", { Name: "text" }), [
    sourceRecord("rec1", { fld0: "Ada" }),
    sourceRecord("rec2", { fld0: "Bob" }),
  ]);
  await engine.sync();
  await using reader = readerOf(engine.replica.readerUrl);
  const letGo = await hold(reader, "people");
  addField(people.table);
  for (const version of ["v1", "v2"]) {
    people.records.set("rec2", sourceRecord("rec2", { fld0: version, fldMore: version }));
    const { error } = await engine.sync();
    expect(error).toMatchObject({ code: "replica_busy", message: expect.stringMatching(/people \(more\)/) });
    expect(await engine.rows()).toMatchObject([{ name: "Ada" }, { name: version }]);
  }
  people.records.delete("rec1");
  await engine.sync();
  expect(await engine.rows()).toMatchObject([{ id: "rec2", name: "v2" }]);
  await letGo();
  expect((await engine.sync()).error).toBe(undefined);
  expect(await engine.rows()).toMatchObject([{ id: "rec2", name: "v2", more: "v2" }]);
});

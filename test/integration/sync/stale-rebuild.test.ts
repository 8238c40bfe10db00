/** A rebuild whose table changes while it waits for queries, to go live, ends. */
import { expect, test } from "vitest";
import { testEngine } from "../../support/engine";
import { until } from "../../support/poll";
import { readerOf } from "../../support/replica";
import { sourceRecord, sourceTable } from "../../support/source-records";

test("a rebuild that waits for its swap is abandoned if its table has got other columns, and another table its name", async () => {
  const engine = await testEngine();
  const table = sourceTable("tblT", "Things", { Name: "text", Count: "number" });
  const records = Array.from({ length: 2 * engine.source.pageSize }, (_, index) =>
    sourceRecord(`rec${String(index).padStart(5, "0")}`, { fld0: `Thing ${index}`, fld1: index }),
  );
  const { records: live } = engine.source.add(table, records);
  const other = sourceTable("tblO", "Other", { Name: "text" });
  engine.source.add(other, [sourceRecord("rec1", { fld0: "x" })]);
  await engine.sync();
  const addField = (id: string, name: string) => {
    table.fields.push({ id, name, type: "text", sourceType: "text" });
    for (const record of live.values()) record.fields[id] = name;
  };
  addField("fld2", "New");
  await using reader = readerOf(engine.replica.readerUrl);
  const looks = () => engine.source.calls.filter((call) => call === "schema").length;
  const before = looks();
  const synced = await reader.begin(async (query) => {
    await query`select count(*) from things`;
    const sync = engine.sync();
    // The second schema check confirms what was read; from then on only the query delays the swap.
    await until(() => looks() === before + 2, { what: "the table has been read" });
    table.name = "Items";
    other.name = "Things";
    addField("fld3", "Newer");
    engine.cache.schemaCheckRequestedAt = new Date(1234);
    await until(() => engine.looks.length > 0, { what: "the schema is checked" });
    return { sync };
  });
  expect(await synced.sync).toMatchObject({ completedAt: expect.any(Date) });
  expect((await engine.rows("items"))[7]).toMatchObject({ count: 7, new: "New", newer: "Newer" });
  expect(await engine.rows("things")).toMatchObject([{ name: "x" }]);
});

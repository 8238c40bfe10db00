/** Every example of the SQL guide and of the page on types, as a customer runs it. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Fleet, startFleet } from "../../support/fleet";
import { repoRoot } from "../../support/source-files";

const examplesOf = (page: string) =>
  [...readFileSync(join(repoRoot, "docs", page), "utf8").matchAll(/```sql\n([^`]+)```/g)].map(
    ([, sql = ""]) => sql.trim(),
  );
const [lookup] = examplesOf("types.md");
const examples = [...examplesOf("sql.md"), lookup!];
/** Examples for which the sample base has no data. */
const MAY_BE_EMPTY = /_sync_issues|_sync_history|^listen/;

let fleet: Fleet;
let run: (sql: string) => Promise<unknown[]>;

beforeAll(async () => {
  fleet = await startFleet();
  // As created by `up --sandbox`.
  const sourceBase = fleet.sandbox.control.generate({
    name: "Project Tracker",
    records: 1000,
    tables: 4,
    seed: 1,
  });
  const base = await fleet.connect(sourceBase, { turbo: true, linkViews: true, history: true, notify: true });
  const reader = await fleet.reader(base);
  await fleet.synced(base.id);
  run = (sql) => reader.unsafe(sql);
}, 60_000);
afterAll(() => fleet?.[Symbol.asyncDispose]());

test("there are examples", () => expect(examples.length).toBeGreaterThan(10));

test.each(examples)("%s", async (sql) => {
  const rows = await run(sql);
  if (!MAY_BE_EMPTY.test(sql)) expect(rows.length).toBeGreaterThan(0);
});

test("the join for a lookup has the values that the lookup leaves out", async () => {
  const { control } = fleet.sandbox;
  const source = control.createBase({
    name: "Lookups",
    tables: [
      {
        name: "Tasks",
        fields: [
          { name: "Name", type: "singleLineText" },
          { name: "Amount", type: "number", options: { precision: 0 } },
        ],
        records: [
          { fields: { Name: "a", Amount: 1 } },
          { fields: { Name: "b" } },
          { fields: { Name: "c", Amount: 3 } },
        ],
      },
      { name: "Projects", fields: [{ name: "Name", type: "singleLineText" }], records: [] },
    ],
  });
  const [tasks, projects] = control.dump(source).tables;
  const [, amount] = tasks!.fields as { id: string }[];
  const related = control.addField(source, projects!.id, {
    name: "Related",
    type: "multipleRecordLinks",
    options: { linkedTableId: tasks!.id },
  });
  control.addField(source, projects!.id, {
    name: "Amounts",
    type: "multipleLookupValues",
    options: { recordLinkFieldId: related, fieldIdInLinkedTable: amount!.id },
  });
  control.createRecords(source, projects!.id, [
    { fields: { Name: "p", Related: tasks!.records.map(({ id }) => id) } },
  ]);
  const base = await fleet.synced((await fleet.connect(source)).id);
  const reader = await fleet.reader(base);
  expect(await reader`select amounts from projects`).toEqual([{ amounts: ["1", "3"] }]);
  expect((await reader.unsafe(lookup!)).map((row) => [row.task, row.amount])).toEqual([
    ["a", "1"],
    ["b", null],
    ["c", "3"],
  ]);
});

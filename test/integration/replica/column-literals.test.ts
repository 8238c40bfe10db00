/** Rows of a table that is built: the texts, lists and nulls that array literals could get wrong. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { planSchema, startBuild } from "../../../core/replica";
import type { Row } from "../../../core/replica/spec";
import type { FieldType } from "../../../core/source";
import { testReplica } from "../../support/replica";
import { sourceTable } from "../../support/source-records";

const SETTINGS = { linkedRecordsAsText: false, lookupsAsText: false, attachmentViews: true };
const FIELDS: Record<string, FieldType> = {
  Name: "text",
  2024: "long_text",
  Tags: "multiple_select",
  Sum: "number",
  Done: "checkbox",
  Day: "date",
};
const TEXTS = [
  ...["", "null", "NULL", "{}", '{"a"}', "a,b", " padded ", 'a "quote"', "back\\slash", "ends with \\"],
  ...[
    "\\n is no line break",
    "\\u0041",
    "line\nbreak\r\ntab\tform\fbell\u0007back\b",
    "\u001b\u007f",
    "ü 😀 \u2028",
  ],
];

test("rows of a table that is built are in SQL as they were given, whatever their texts", async () => {
  await using made = await testReplica();
  const { replica, epoch } = made;
  const plan = planSchema(new Map(), { tables: [sourceTable("tblO", "Orders", FIELDS)] }, SETTINGS);
  const [spec] = plan.rebuild;
  const build = await startBuild(replica, epoch, spec!);
  const text = fc.oneof(fc.constantFrom(...TEXTS), fc.string({ unit: "binary" }).map(storable));
  const cells = fc.record({
    name: fc.option(text),
    2024: fc.option(text),
    tags: fc.option(fc.array(fc.option(text), { maxLength: 4 })),
    sum: fc.option(fc.oneof(fc.integer(), fc.double({ noNaN: true, noDefaultInfinity: true }))),
    done: fc.boolean(),
    day: fc.option(fc.constant("2024-02-29")),
  });
  expect(spec!.columns.map(({ name }) => name).sort()).toEqual([
    "2024",
    "day",
    "done",
    "name",
    "sum",
    "tags",
  ]);
  let next = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(cells, { minLength: 1, maxLength: 30 }), fc.boolean(), async (list, areNew) => {
      const rows = list.map(
        (row): Row => ({ id: `rec${next++}`, created_time: "2024-05-01T12:34:56", ...row }),
      );
      await build.append(rows, areNew);
      const ids = rows.map(({ id }) => id as string);
      const found = await replica.sql<{ row: Row }[]>`
        select to_jsonb(t) as row from public_swap."tblO" as t where id = any (${ids}::text[])`;
      const byId = new Map(found.map(({ row }) => [row.id, row]));
      // Postgres has no negative zero.
      for (const row of rows) expect(byId.get(row.id!)).toEqual({ ...row, sum: row.sum === 0 ? 0 : row.sum });
    }),
    { numRuns: 60 },
  );
}, 60_000);

/** As rows are mapped. */
function storable(text: string): string {
  return text.replaceAll("\0", "").toWellFormed();
}

/** What a change of a table means for SQL. */
import { expect, test } from "vitest";
import { type ColumnSpec, severityOf, shapeChanges, type TableSpec } from "../../core/replica";

const column = (over: Partial<ColumnSpec> = {}): ColumnSpec => ({
  fieldId: "fld1",
  name: "state",
  sourceName: "State",
  type: "text",
  sourceType: "singleLineText",
  columnType: "text",
  ...over,
});
const table = (over: Partial<TableSpec> = {}): TableSpec => ({
  tableId: "tbl1",
  name: "tasks",
  sourceName: "Tasks",
  columns: [column()],
  ...over,
});

test.each([
  ["a new table", undefined, table(), ["table_added", "additive"]],
  ["a new column", table({ columns: [] }), table(), ["field_added", "additive"]],
  ["a dropped table", table(), undefined, ["table_dropped", "breaking"]],
  ["a dropped column", table(), table({ columns: [] }), ["field_dropped", "breaking"]],
  ["a renamed table", table(), table({ name: "work", sourceName: "Work" }), ["table_renamed", "rename"]],
  ["a label", table(), table({ sourceName: "Work" }), ["table_renamed", "additive"]],
  ["a renamed column", table(), table({ columns: [column({ name: "x" })] }), ["field_renamed", "rename"]],
  [
    "a column's label",
    table(),
    table({ columns: [column({ sourceName: "X" })] }),
    ["field_renamed", "additive"],
  ],
  [
    "a new SQL type",
    table(),
    table({ columns: [column({ columnType: "numeric" })] }),
    ["field_retyped", "breaking"],
  ],
  [
    "a type that is stored alike",
    table(),
    table({ columns: [column({ sourceType: "url" })] }),
    ["field_retyped", "additive"],
  ],
])("%s", (_, before, after, wanted) => {
  expect(shapeChanges(before, after).map((change) => [change.kind, severityOf(change)])).toEqual([wanted]);
});

import { expect, test } from "vitest";
import { findNamedTable } from "../../core/proxy/table-view";

const TASKS = {
  tableId: "tblAAAAAAAAAAAAAA",
  name: "Tasks",
  fields: [{ id: "fldAAAAAAAAAAAAAA", name: "Name" }],
};
const LOUD = { tableId: "tblBBBBBBBBBBBBBB", name: "TASKS", fields: [] };
/** Has the same name as another one's id. */
const TRICKY = { tableId: "tblCCCCCCCCCCCCCC", name: "tblAAAAAAAAAAAAAA", fields: [] };
const tables = [TRICKY, LOUD, TASKS];

test.for([
  ["tblBBBBBBBBBBBBBB", LOUD],
  ["tblAAAAAAAAAAAAAA", TASKS],
  ["Tasks", TASKS],
  ["TASKS", LOUD],
  ["tasks", LOUD],
  ["fldAAAAAAAAAAAAAA", TASKS],
  ["tblaaaaaaaaaaaaaa", undefined],
  ["fldZZZZZZZZZZZZZZ", undefined],
  ["Task", undefined],
] as const)("%s names a table by id, by name, by name in other case, or by a field's id", ([ref, table]) => {
  expect(findNamedTable([...tables], ref)).toBe(table);
});

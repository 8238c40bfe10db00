import { expect, test } from "vitest";
import type { Catalog, ColumnSpec } from "../../core/replica";
import type { SourceSchema } from "../../core/source";
import { movedNames } from "../../core/sync/engine/moved-names";

type Names = Record<string, { name: string; fields: Record<string, string> }>;

function catalogOf(tables: Names): Catalog {
  return new Map(
    Object.entries(tables).map(([tableId, { name, fields }]) => {
      const columns = Object.entries(fields).map(
        ([fieldId, sourceName]) => ({ fieldId, sourceName }) as ColumnSpec,
      );
      return [tableId, { shape: 1, spec: { tableId, name, sourceName: name, columns } }] as const;
    }),
  );
}

function schemaOf(tables: Names): SourceSchema {
  return {
    tables: Object.entries(tables).map(([id, { name, fields }]) => ({
      id,
      name,
      primaryFieldId: "",
      fields: Object.entries(fields).map(([fieldId, fieldName]) => ({
        id: fieldId,
        name: fieldName,
        type: "text",
        sourceType: "",
      })),
    })),
  } as unknown as SourceSchema;
}

const moves = (before: Names, after: Names) =>
  [...movedNames(catalogOf(before), schemaOf(after))].map(([id, to]) => [id, [...to].sort()]);
const fields = { fld1: "Name", fld2: "Status" };

test("nothing has moved where names stay, are new, or are free again", () => {
  const before = { tbl1: { name: "Tasks", fields } };
  expect(moves(before, before)).toEqual([]);
  expect(moves(before, { tbl1: { name: "Old", fields }, tbl2: { name: "New", fields } })).toEqual([]);
  expect(moves(before, { tbl1: { name: "Tasks", fields: { fld1: "Title", fld2: "Status" } } })).toEqual([]);
  expect(moves(before, {})).toEqual([]);
});

test("a name that another table has now has moved, in any case", () => {
  const before = { tbl1: { name: "Tasks", fields }, tbl2: { name: "Copy", fields } };
  expect(moves(before, { tbl1: { name: "Tasks 2025", fields }, tbl2: { name: "TASKS", fields } })).toEqual([
    ["tbl1", ["tbl1", "tbl2"]],
  ]);
  // One that the catalog does not know, and a table that is gone.
  expect(moves(before, { tbl3: { name: "Tasks", fields }, tbl2: { name: "Copy", fields } })).toEqual([
    ["tbl1", ["tbl1", "tbl3"]],
  ]);
});

test("a name that another field of the table has now has moved", () => {
  const before = { tbl1: { name: "Tasks", fields } };
  const swapped = { tbl1: { name: "Tasks", fields: { fld1: "Status", fld2: "Name" } } };
  expect(moves(before, swapped)).toEqual([["tbl1", ["tbl1"]]]);
  expect(movedNames(catalogOf(before), schemaOf(swapped))).not.toEqual(new Map());
  expect(movedNames(catalogOf(swapped), schemaOf(swapped))).toEqual(new Map());
});

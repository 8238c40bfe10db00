/** Every record of the real bases is mapped with the types in the schema. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { CellIssue, TableSpec } from "../../core/replica";
import { compileMapper, mapRecords } from "../../core/replica";
import { assignNames } from "../../core/replica/naming";
import type { Row } from "../../core/replica/spec";
import { columnTypeOf } from "../../core/replica/type-map";
import type { FieldType, SourceRecord } from "../../core/source";
import { dataFolder, noDataReason } from "../support/data";

interface WireField {
  id: string;
  name: string;
  type: string;
  options?: { result?: { type: string } | null };
}

interface WireTable {
  id: string;
  name: string;
  fields: WireField[];
}

/** The types in these bases. */
const types: Record<string, FieldType> = {
  checkbox: "checkbox",
  count: "count",
  lastModifiedBy: "last_modified_by",
  multilineText: "long_text",
  multipleAttachments: "attachment",
  multipleLookupValues: "lookup",
  multipleRecordLinks: "links",
  multipleSelects: "multiple_select",
  number: "number",
  richText: "rich_text",
  rollup: "rollup",
  singleLineText: "text",
  singleSelect: "single_select",
  url: "url",
};

const bases = [
  { base: "cmip7-data-request", records: 1062 },
  { base: "unlocking-the-airwaves", records: 5906 },
  { base: "unlocking-the-airwaves/earlier-2021-05-04", records: 5125 },
];

test.for(bases)("every cell of $base fits its column", ({ base, records }, { skip }) => {
  if (!dataFolder) return skip(noDataReason);
  const issues: CellIssue[] = [];
  let mapped = 0;
  for (const table of readJson<{ tables: WireTable[] }>(dataFolder, base, "schema.json").tables) {
    const spec = specOf(table);
    const source = recordsOf(join(dataFolder, base), table);
    const rows = mapRecords(compileMapper(spec), source, issues);
    mapped += rows.length;
    for (const [index, row] of rows.entries()) expectFaithful(spec, source[index]!, row);
  }
  expect(mapped).toBe(records);
  expect(issues).toEqual([]);
});

/** In these bases every value is a string, number, boolean, list of those and nulls, attachment or collaborator. */
function expectFaithful(spec: TableSpec, record: SourceRecord, row: Row): void {
  for (const { fieldId, name, type, columnType } of spec.columns) {
    const cell = record.fields[fieldId];
    const value = row[name];
    if (cell === undefined) expect(value).toBe(type === "checkbox" ? false : null);
    else if (type === "attachment") expect(value).toEqual((cell as { url: string }[]).map(({ url }) => url));
    else if (type === "last_modified_by") expect(value).toBe((cell as { email: string }).email);
    else if (columnType === "text[]") {
      expect(value).toEqual((cell as unknown[]).map((item) => (item === null ? null : String(item))));
    } else expect(value).toBe(cell);
  }
}

function specOf(table: WireTable): TableSpec {
  const names = assignNames(table.fields, { kind: "column" });
  return {
    tableId: table.id,
    name: table.name,
    sourceName: table.name,
    columns: table.fields.map((field) => {
      const type = types[field.type]!;
      const result = types[field.options?.result?.type ?? ""];
      const columnType = columnTypeOf({ type, result }, { linkedRecordsAsText: false, lookupsAsText: false });
      const name = names.get(field.id)!;
      return { fieldId: field.id, name, sourceName: field.name, type, sourceType: field.type, columnType };
    }),
  };
}

/** A table's records keyed by field id; the files are keyed by name. */
function recordsOf(folder: string, table: WireTable): SourceRecord[] {
  const file = `${table.id}.json`;
  if (!readdirSync(folder).includes(file)) return [];
  const ids = new Map(table.fields.map(({ id, name }) => [name, id]));
  return readJson<SourceRecord[]>(folder, file).map((record) => ({
    ...record,
    fields: Object.fromEntries(Object.entries(record.fields).map(([name, cell]) => [ids.get(name)!, cell])),
  }));
}

function readJson<T>(...path: string[]): T {
  return JSON.parse(readFileSync(join(...path), "utf8")) as T;
}

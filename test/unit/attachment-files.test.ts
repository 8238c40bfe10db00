/** The columns with the details of attachments: what cells become, what the columns are called, and what is rebuilt. */
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  type Catalog,
  type CellIssue,
  cellsToForget,
  compileMapper,
  type NameSettings,
  onlyAddsColumns,
  onlyDropsColumns,
  planSchema,
  type TableSpec,
  type TypeSettings,
} from "../../core/replica";
import type { FileDetails } from "../../core/replica/spec";
import type { FieldType, SourceTable } from "../../core/source";
import { anyText, fuzz } from "../support/fuzz";
import { sourceRecord, sourceTable } from "../support/source-records";

const OFF: TypeSettings = { linkedRecordsAsText: false, lookupsAsText: false };
const ON: TypeSettings = { ...OFF, attachmentViews: true };

function specOf(table: SourceTable, settings: TypeSettings & NameSettings = ON, live?: TableSpec): TableSpec {
  const catalog: Catalog = new Map(live ? [[table.id, { spec: live, shape: 1 }]] : []);
  const plan = planSchema(catalog, { tables: [table] }, settings);
  return plan.rebuild[0] ?? plan.inPlace[0] ?? live!;
}

const documents = sourceTable("tbl1", "Documents", { Name: "text", Files: "attachment" });
const spec = specOf(documents);
const map = compileMapper(spec);

function read(cell: unknown) {
  const issues: CellIssue[] = [];
  const row = map(sourceRecord("rec1", { fld1: cell }), issues);
  return {
    urls: row.files as (string | null)[] | null,
    files: row.files__files as (FileDetails | null)[] | null,
    columns: issues.map(({ column }) => column),
  };
}

test("a file's details are stored without its URLs, and what is missing or no number stays out", () => {
  const image = { id: "att1", filename: "a.png", type: "image/png", size: 12, width: 3, height: 4 };
  const thumbnails = { small: { url: "https://x/s", width: 1, height: 1 } };
  const cell = [
    { ...image, url: "https://x/1", thumbnails },
    { id: "att2", url: "https://x/2" },
    { id: "att3", url: "https://x/3", filename: "a\0b", size: "12", width: -1, height: 1.5, type: null },
  ];
  expect(read(cell)).toEqual({
    urls: ["https://x/1", "https://x/2", "https://x/3"],
    files: [image, { id: "att2" }, { id: "att3", filename: "a\ufffdb" }],
    columns: [],
  });
  expect(read([])).toEqual({ urls: [], files: [], columns: [] });
  expect(read(null)).toEqual({ urls: null, files: null, columns: [] });
});

const file = fc.record(
  {
    id: fc.oneof(anyText, fc.jsonValue()),
    url: fc.oneof(fc.webUrl(), fc.jsonValue()),
    filename: fc.oneof(anyText, fc.jsonValue()),
    type: fc.oneof(anyText, fc.jsonValue()),
    size: fc.oneof(fc.nat(), fc.double(), fc.jsonValue()),
    width: fc.oneof(fc.nat(), fc.maxSafeInteger(), fc.jsonValue()),
    height: fc.oneof(fc.nat(), fc.jsonValue()),
  },
  { requiredKeys: [] },
);
const cells = fc.oneof(fc.array(fc.oneof(file, fc.array(file), fc.jsonValue())), fc.jsonValue());

fuzz(
  "of any cell, the details are at the positions of the URLs, can be cast, and cause no issue of their own",
  500,
  fc.property(cells, (cell) => {
    const { urls, files, columns } = read(cell);
    expect(files?.length).toBe(urls?.length);
    expect(columns).not.toContain("files__files");
    for (const one of files ?? []) {
      if (one === null) continue;
      const { id, filename = "", type = "", size = 0, width = 0, height = 0, ...others } = one;
      expect(others).toEqual({});
      for (const text of [id, filename, type]) expect(text.isWellFormed() && !text.includes("\0")).toBe(true);
      expect(Number.isSafeInteger(size) && size >= 0).toBe(true);
      // JSON has a negative zero.
      for (const pixels of [width, height]) expect((pixels | 0) === pixels).toBe(true);
    }
  }),
);

fuzz(
  "files of which only the URLs change have the same details",
  100,
  fc.property(fc.array(file), fc.webUrl(), fc.webUrl(), (files, one, other) => {
    const withUrl = (url: string) => files.map((each) => ({ ...each, url, thumbnails: { small: { url } } }));
    expect(read(withUrl(one)).files).toEqual(read(withUrl(other)).files);
  }),
);

const types: FieldType[] = ["attachment", "attachment", "text", "links"];
const fields = fc.array(fc.tuple(anyText, fc.constantFrom(...types)), { minLength: 1, maxLength: 12 });

fuzz(
  "with any fields, each column of attachments has one of details, whose name changes only with its own",
  200,
  fc.property(fields, fc.nat(), anyText, (named, at, name) => {
    const table: SourceTable = {
      ...documents,
      fields: named.map(([text, type], index) => ({ id: `fld${index}`, name: text, type, sourceType: type })),
    };
    const before = specOf(table);
    const names = before.columns.map((column) => column.name);
    expect(new Set(names).size).toBe(names.length);
    for (const one of names) expect(Buffer.byteLength(one)).toBeLessThanOrEqual(63);
    const listed = before.columns.filter(
      ({ type, columnType }) => type === "attachment" && columnType !== "jsonb",
    );
    expect(before.columns.flatMap(({ filesOf }) => filesOf ?? [])).toEqual(
      listed.map(({ fieldId }) => fieldId),
    );

    const renamed = { ...table, fields: table.fields.map((field) => ({ ...field })) };
    renamed.fields[at % named.length]!.name = name;
    const after = specOf(renamed, ON, before);
    for (const { fieldId, name: now, filesOf } of after.columns) {
      const isOfRenamed = (filesOf ?? fieldId) === `fld${at % named.length}`;
      if (!isOfRenamed) expect(now).toBe(before.columns.find((one) => one.fieldId === fieldId)!.name);
    }
  }),
);

test("turning the views on only adds columns, turning them off only drops them, and other tables stay", () => {
  const off = specOf(documents, OFF);
  expect(onlyAddsColumns(off, specOf(documents, ON, off))).toBe(true);
  expect(onlyDropsColumns(spec, specOf(documents, OFF, spec))).toBe(true);
  const notes = sourceTable("tbl2", "Notes", { Name: "text", Looked: "lookup" });
  const live = specOf(notes, OFF);
  const catalog: Catalog = new Map([["tbl2", { spec: live, shape: 1 }]]);
  expect(planSchema(catalog, { tables: [notes] }, ON)).toEqual({ inPlace: [], rebuild: [], drop: [] });
});

test("with pinned names, the column of details keeps its name, too, and with a name of one's own it follows that", () => {
  const renamed = sourceTable("tbl1", "Papers", { Name: "text", Scans: "attachment" });
  const pinned = specOf(renamed, { ...ON, pinnedNames: true }, spec);
  expect(pinned.columns.map(({ name }) => name)).toEqual(["name", "files", "files__files"]);
  expect(pinned.retired).toBeUndefined();
  const ownNames = [{ tableId: "tbl1", fieldId: "fld1", name: "pictures" }];
  const own = specOf(renamed, { ...ON, pinnedNames: true, ownNames }, pinned);
  expect(own.columns.map(({ name }) => name)).toEqual(["name", "pictures", "pictures__files"]);
});

test("the recorded details of attachments are forgotten with a field that is no longer copied", () => {
  const copied = { ...documents, fields: documents.fields.slice(0, 1) };
  const catalog: Catalog = new Map([["tbl1", { spec, shape: 1 }]]);
  expect(cellsToForget(catalog, { tables: [copied], whole: [documents] })).toEqual([
    {
      tableId: "tbl1",
      name: "documents",
      columns: [
        { fieldId: "fld1", name: "files" },
        { fieldId: "fld1/files", name: "files__files" },
      ],
    },
  ]);
});

test("other URLs for attachments leave their details as they are", () => {
  const own = {
    ...ON,
    attachmentUrls: { prefix: "https://console.example/attachments/bas_1", keyVersion: 1 },
  };
  const [, urls, files] = specOf(documents, own, spec).columns;
  expect(urls!.attachmentUrls).toEqual(own.attachmentUrls);
  expect(files).toEqual(spec.columns[2]);
});

/** Records of any JSON, written to a real replica: every row is stored, and every issue names an existing cell. */
import fc from "fast-check";
import { afterAll, beforeAll, expect } from "vitest";
import {
  applyRowImages,
  type CatalogTable,
  type CellIssue,
  compileMapper,
  loadCatalog,
  mapRecords,
  planSchema,
  startBuild,
  takeReadVersion,
} from "../../../core/replica";
import { typeMap } from "../../../core/replica/type-map";
import type { FieldType, SourceField, SourceRecord, SourceTable } from "../../../core/source";
import { anyJson, anyText, fuzz, nested } from "../../support/fuzz";
import { putBuild } from "../../support/put-build";
import { dumpTable, type TestReplica, testReplica } from "../../support/replica";

const TYPES = Object.keys(typeMap) as FieldType[];
const fields: SourceField[] = [
  ...TYPES.map((type) => ({ id: `fld_${type}`, name: type, type, sourceType: type })),
  // The other column that a rollup can become.
  { id: "fld_joined", name: "joined", type: "rollup", sourceType: "rollup", result: "text" },
];
const table: SourceTable = { id: "tblCells", name: "Cells", primaryFieldId: "fld_text", fields };

let test: TestReplica;
/** As arrays, and as text: what settings can make of links and lookups. */
const live = new Map<boolean, CatalogTable>();

beforeAll(async () => {
  test = await testReplica();
  for (const isText of [false, true]) {
    const settings = { linkedRecordsAsText: isText, lookupsAsText: isText };
    const source = { ...table, id: isText ? "tblTexts" : "tblLists", name: isText ? "texts" : "lists" };
    const [spec] = planSchema(await loadCatalog(test.replica), { tables: [source] }, settings).rebuild;
    const build = await startBuild(test.replica, test.epoch, spec!);
    expect(await putBuild(test, build, undefined)).toBe(true);
    live.set(isText, (await loadCatalog(test.replica)).get(source.id)!);
  }
});
afterAll(() => test?.[Symbol.asyncDispose]());

const time = fc.oneof(
  fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
  fc.constantFrom(
    "0000-01-01",
    "-004713-11-24",
    "294276-12-31T23:59:59.9999999Z",
    "2024-02-30",
    "24:00",
    "infinity",
  ),
);
const number = fc.oneof(
  fc.double(),
  fc.stringMatching(/^[+-]?\d{0,40}\.?\d{0,40}$/),
  fc.constantFrom(
    Number.POSITIVE_INFINITY,
    "9".repeat(1000),
    "NaN",
    { specialValue: "NaN" },
    9_000_000_000_000,
  ),
);
const part = fc.oneof(
  time,
  number,
  fc.record({ id: anyText, email: anyJson(), name: anyText, url: anyJson() }, { requiredKeys: [] }),
  fc.record(
    { error: anyText, specialValue: anyJson(), state: anyText, value: anyJson() },
    { requiredKeys: [] },
  ),
  fc.record({ text: fc.oneof(number, anyJson()), label: anyText }),
);
const cell = fc.oneof(
  { weight: 10, arbitrary: anyJson(part) },
  { weight: 3, arbitrary: part },
  { weight: 2, arbitrary: fc.array(part, { maxLength: 5 }) },
  { weight: 1, arbitrary: anyText.map((text) => text.repeat(500)) },
  { weight: 1, arbitrary: fc.constantFrom(nested(100), nested(6000)) },
);

const records = fc.array(
  fc.record({
    id: fc.integer({ min: 0, max: 9 }).map((number) => `rec${number}`),
    createdTime: time,
    fields: fc.record(Object.fromEntries(fields.map(({ id }) => [id, cell])), { requiredKeys: [] }),
  }),
  { maxLength: 6 },
);

interface StoredIssue {
  record_id: string;
  field: string;
  value: string;
  reason: string;
}

/** Applies records to the table, as a proxied write does or as a sweep. */
async function apply(target: CatalogTable, all: SourceRecord[], isWrite: boolean) {
  const issues: CellIssue[] = [];
  const rows = mapRecords(compileMapper(target.spec), all, issues);
  const readVersion = await takeReadVersion(test.replica);
  const images = { readVersion, rows, gone: [], issues };
  const applied = await applyRowImages(
    test.replica,
    target,
    isWrite ? { ...images, epoch: null, records: all } : { ...images, epoch: test.epoch },
  );
  return { applied, rows, issues };
}

fuzz(
  "with any JSON in the cells, the replica accepts every row, and recognizes it when it is sent again",
  150,
  fc.asyncProperty(records, fc.boolean(), fc.boolean(), async (all, isText, isWrite) => {
    const target = live.get(isText)!;
    const { applied, rows, issues } = await apply(target, all, isWrite);
    expect(applied.lost).toEqual([]);
    const again = await apply(target, all, isWrite);
    expect(again.applied).toEqual({ inserted: 0, updated: 0, deleted: 0, lost: [] });
    expect(again.rows).toEqual(rows);
    await expectStored(target, rows, issues);
  }),
);

async function expectStored({ spec }: CatalogTable, rows: { id?: unknown }[], issues: CellIssue[]) {
  const { sql } = test.replica;
  const stored = (await dumpTable(sql, spec.name)) as Record<string, unknown>[];
  const byId = new Map(stored.map((row) => [row.id, row]));
  const noted = await sql<StoredIssue[]>`
    select record_id, field, value, reason from public._sync_issues where table_name = ${spec.name}`;
  for (const row of rows) {
    expect(byId.has(row.id)).toBe(true);
    const own = (all: { field: string }[]) => all.map(({ field }) => field).sort();
    expect(own(noted.filter((issue) => issue.record_id === row.id))).toEqual(
      own(issues.filter((issue) => issue.recordId === row.id).map(({ column }) => ({ field: column }))),
    );
  }
  const columns = new Set(["created_time", ...spec.columns.map(({ name }) => name)]);
  for (const { field, value, reason } of noted) {
    expect(columns.has(field)).toBe(true);
    expect([value.length <= 1000, reason.length > 0 && reason.length <= 100]).toEqual([true, true]);
  }
}

/** Cells that do not fit their column: the row exists, the cell is NULL or cleaned, and an issue is reported. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { FieldDefinition, TableInput } from "../../../apps/sandbox/build";
import type { Base } from "../../../core/control/bases";
import { expectWell } from "../../support/base-states";
import { type Fleet, startFleet } from "../../support/fleet";
import { dumpTable } from "../../support/replica";

const FIELDS: FieldDefinition[] = [
  { name: "Text", type: "singleLineText" },
  { name: "Notes", type: "multilineText" },
  { name: "Tags", type: "multipleSelects", options: { choices: [] } },
  { name: "Number", type: "number" },
  { name: "Done", type: "checkbox" },
  { name: "Day", type: "date" },
  { name: "Moment", type: "dateTime" },
  { name: "Length", type: "duration" },
  { name: "Code", type: "barcode" },
];

/** A table whose formula fails while the divisor is 0. */
const RATIOS: TableInput = {
  name: "Ratios",
  fields: [
    { id: "fldDividend000001", name: "Dividend", type: "number" },
    { id: "fldDivisor0000001", name: "Divisor", type: "number" },
    {
      name: "Ratio",
      type: "formula",
      options: {
        formula: "{fldDividend000001}/{fldDivisor0000001}",
        referencedFieldIds: ["fldDividend000001", "fldDivisor0000001"],
        isValid: true,
        result: { type: "number" },
      },
    },
  ],
  records: [{ id: "recRatio000000001", fields: { Dividend: 1, Divisor: 0 } }],
};

interface Case {
  field: string;
  cell: unknown;
  /** The row's value; null by default. */
  shown?: unknown;
  /** None: the cell fits unchanged. */
  reason?: string | RegExp;
}

const UNSTORABLE = "the text contained characters that Postgres cannot store";
const SQL_TEXT = "'; drop table odd_cells; -- \\ \" {} $1 \u2028 \u0001";
const LONG_TEXT = "0123456789 äöü€ 🎈".repeat(5500);

const CASES: Case[] = [
  { field: "Text", cell: "a\u0000b", shown: "a\ufffdb", reason: UNSTORABLE },
  { field: "Text", cell: "\ud83d alone", shown: "\ufffd alone", reason: UNSTORABLE },
  { field: "Text", cell: "\udc00\ud800", shown: "\ufffd\ufffd", reason: UNSTORABLE },
  { field: "Text", cell: SQL_TEXT, shown: SQL_TEXT },
  { field: "Text", cell: ["an", "array"], shown: '["an","array"]' },
  { field: "Text", cell: { an: "object" }, shown: '{"an":"object"}' },
  { field: "Text", cell: 5, shown: "5" },
  { field: "Notes", cell: LONG_TEXT, shown: LONG_TEXT },
  { field: "Notes", cell: `${LONG_TEXT}\u0000`, shown: `${LONG_TEXT}\ufffd`, reason: UNSTORABLE },
  { field: "Tags", cell: ["ok", "b\u0000d"], shown: ["ok", "b\ufffdd"], reason: UNSTORABLE },
  { field: "Tags", cell: "no array", shown: ["no array"] },
  { field: "Tags", cell: { error: "#ERROR!" }, reason: "#ERROR!" },
  { field: "Tags", cell: ['{a,"b"}', "NULL", "", 'c\\"'], shown: ['{a,"b"}', "NULL", "", 'c\\"'] },
  { field: "Number", cell: 1e308, shown: 1e308 },
  { field: "Number", cell: -5e-324, shown: -5e-324 },
  { field: "Number", cell: "12 or so", reason: "not a number" },
  { field: "Number", cell: "12", reason: "not a number" },
  { field: "Number", cell: [1, 2], reason: "not a number" },
  { field: "Number", cell: { specialValue: "NaN" }, reason: "NaN" },
  { field: "Number", cell: { specialValue: "Infinity" }, reason: "Infinity" },
  { field: "Number", cell: { error: "#ERROR!" }, reason: "#ERROR!" },
  { field: "Done", cell: "yes", reason: "not true or false" },
  { field: "Day", cell: "0001-01-01", shown: "0001-01-01" },
  { field: "Day", cell: "9999-12-31", shown: "9999-12-31" },
  { field: "Day", cell: "2023-02-29", reason: "not a date" },
  { field: "Day", cell: "soon", reason: "not a date" },
  { field: "Day", cell: ["2024-01-01"], reason: "not a date" },
  { field: "Day", cell: 20240101, reason: "not a date" },
  { field: "Moment", cell: "0001-01-01T00:00:00.000Z", shown: "0001-01-01T00:00:00" },
  { field: "Moment", cell: "9999-12-31T23:59:59.999Z", shown: "9999-12-31T23:59:59.999" },
  { field: "Moment", cell: "2024-01-01T25:00:00.000Z", reason: "not a date" },
  { field: "Length", cell: "1:30", reason: "not a number of seconds" },
  { field: "Length", cell: 1e300, reason: /longer than an interval/ },
  { field: "Code", cell: { text: "ABC-123" }, reason: "not a number" },
  { field: "Code", cell: { text: "9".repeat(2000) }, reason: "not a number" },
];

let fleet: Fleet;
let base: Base;
const ids = CASES.map((_, index) => `rec${String(index).padStart(14, "0")}`);

beforeAll(async () => {
  fleet = await startFleet({
    sandbox: { settings: { rateLimitOff: true } },
    env: { SCHEMA_POLL_SECONDS: "0.1" },
  });
  const cases = CASES.map(({ field, cell }, index) => ({ id: ids[index]!, fields: { [field]: cell } }));
  const sourceBaseId = fleet.sandbox.control.createBase({
    name: "Cells",
    tables: [{ name: "Odd Cells", fields: FIELDS, records: cases }, RATIOS],
  });
  base = await fleet.connect(sourceBaseId, { turbo: true });
  base = await fleet.synced(base.id);
});
afterAll(() => fleet?.[Symbol.asyncDispose]());

interface Issue {
  table_name: string;
  record_id: string;
  field: string;
  value: string;
  reason: string;
}

async function issuesByRecord(): Promise<Map<string, Issue>> {
  const reader = await fleet.reader(base);
  const issues = await reader<Issue[]>`select table_name, record_id, field, value, reason from _sync_issues`;
  return new Map(issues.map((issue) => [issue.record_id, issue]));
}

test("a base full of odd cells is synced, and healthy", async () => {
  expectWell(base);
  expect(base.tables).toEqual([
    { name: "odd_cells", source_name: "Odd Cells", source_id: expect.any(String), records: CASES.length },
    { name: "ratios", source_name: "Ratios", source_id: expect.any(String), records: 1 },
  ]);
});

test("every odd cell is stored as far as it fits, and reported where it does not", async () => {
  const rows = (await dumpTable(await fleet.reader(base), "odd_cells")) as Record<string, unknown>[];
  const rowById = new Map(rows.map((row) => [row.id, row]));
  const issues = await issuesByRecord();
  expect(rows).toHaveLength(CASES.length);
  for (const [index, { field, cell, shown = null, reason }] of CASES.entries()) {
    const [id, column] = [ids[index]!, field.toLowerCase()];
    const where = `${field} ${JSON.stringify(cell).slice(0, 80)}`;
    expect(rowById.get(id)?.[column], where).toEqual(shown);
    if (reason === undefined) expect(issues.get(id), where).toBeUndefined();
    else {
      expect(issues.get(id), where).toEqual({
        table_name: "odd_cells",
        record_id: id,
        field: column,
        value: JSON.stringify(cell).slice(0, 1000),
        reason: typeof reason === "string" ? reason : expect.stringMatching(reason),
      });
    }
  }
});

test("a formula that fails is NULL and reported as long as it fails", async () => {
  const reader = await fleet.reader(base);
  const [record] = RATIOS.records!;
  expect(await reader`select ratio from ratios`).toEqual([{ ratio: null }]);
  expect((await issuesByRecord()).get(record!.id!)).toMatchObject({
    table_name: "ratios",
    field: "ratio",
    reason: "Infinity",
  });
  fleet.sandbox.control.updateRecords(base.sourceBaseId, "Ratios", [
    { id: record!.id!, fields: { Divisor: 4 } },
  ]);
  await fleet.synced(base.id);
  expect(await reader`select ratio from ratios`).toEqual([{ ratio: "0.25" }]);
  expect((await issuesByRecord()).get(record!.id!)).toBeUndefined();
});

test("the base has the issues by field and reason, each with one of them", async () => {
  const synced = await fleet.synced(base.id);
  const issues = await issuesByRecord();
  const isFormula = ({ reason }: Pick<Issue, "reason">) => /^(?:#ERROR!|NaN|-?Infinity)$/.test(reason);
  const open = [...issues.values()].filter((issue) => !isFormula(issue));
  expect(open.length).toBeLessThan(issues.size);
  expect([synced.issueCount, synced.openIssueCount]).toEqual([issues.size, open.length]);
  const groups = Map.groupBy(
    issues.values(),
    ({ table_name, field, reason }) => `${table_name}.${field}: ${reason}`,
  );
  const found = synced.issues.map(({ table, column, reason, count }) => [
    `${table}.${column}: ${reason}`,
    count,
  ]);
  expect(Object.fromEntries(found)).toEqual(
    Object.fromEntries([...groups].map(([name, group]) => [name, group.length])),
  );
  for (const { record_id, value, reason, kind } of synced.issues) {
    const expected = isFormula({ reason }) ? "formula" : "value";
    expect([kind, issues.get(record_id)]).toMatchObject([expected, { value, reason }]);
  }
});

test("an issue is removed by the next sync after its cell is repaired or its record deleted", async () => {
  const { control } = fleet.sandbox;
  const [first, ...others] = CASES.flatMap(({ field, reason }, index) =>
    reason === undefined ? [] : [{ id: ids[index]!, fields: { [field]: null } }],
  );
  control.deleteRecords(base.sourceBaseId, "Odd Cells", [first!.id]);
  control.updateRecords(base.sourceBaseId, "Odd Cells", others, { raw: true });
  const synced = await fleet.synced(base.id);
  expect(await issuesByRecord()).toEqual(new Map());
  expect(synced).toMatchObject({ issueCount: 0, issues: [] });
});

test("issues are removed with their table", async () => {
  const { control } = fleet.sandbox;
  const { sourceBaseId } = base;
  control.updateRecords(sourceBaseId, "Odd Cells", [{ id: ids.at(-1)!, fields: { Number: "x" } }], {
    raw: true,
  });
  await fleet.synced(base.id);
  expect((await issuesByRecord()).size).toBe(1);
  control.renameTable(sourceBaseId, "Odd Cells", "Odder Cells");
  control.renameField(sourceBaseId, "Odder Cells", "Number", "How many");
  await fleet.synced(base.id);
  expect((await issuesByRecord()).get(ids.at(-1)!)).toMatchObject({
    table_name: "odder_cells",
    field: "how_many",
  });
  control.deleteTable(sourceBaseId, "Odder Cells");
  await fleet.synced(base.id);
  expect(await issuesByRecord()).toEqual(new Map());
});

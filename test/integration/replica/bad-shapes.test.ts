/** Bases with unusual structures and names: every table and field has a column that SQL can reach. */
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import type { FieldDefinition, TableInput } from "../../../apps/sandbox/build";
import type { Base } from "../../../core/control/bases";
import { expectWell } from "../../support/base-states";
import {
  columnsByComment,
  expectEqualToSource,
  tablesByComment,
  untilSameShape,
} from "../../support/equal-to-source";
import { type Fleet, startFleet } from "../../support/fleet";
import { dumpTable } from "../../support/replica";

vi.setConfig({ maxConcurrency: 20, testTimeout: 120_000 });

/** Most fields that the source allows in a table. */
const MOST_FIELDS = 500;

/** Possible names of tables and fields, and their SQL names. */
const NAMES: [source: string, sql: string][] = [
  ["select", "select"],
  ["user", "user"],
  ["from", "from"],
  ["2024 Plan", "2024_plan"],
  ["1st", "1st"],
  ["Sales, 2024", "sales_2024"],
  ["sales (2024)", "sales_2024_2"],
  ["Sales\n2024", "sales_2024_3"],
  [`quo"te'; drop table foo; --`, "quo_te_drop_table_foo"],
  ["日本語 の表", "日本語_の表"],
  ["לקוחות חדשים", "לקוחות_חדשים"],
  ["Новые Покупатели", "новые_покупатели"],
  ["Cafe\u0301 Menu", "caf\u00e9_menu"],
  ["हिन्दी", "हिन्दी"],
  ["Family 👨‍👩‍👧‍👦 Tree", "family_tree"],
  ["é".repeat(35), "é".repeat(31)],
  [`${"é".repeat(34)} 2`, `${"é".repeat(30)}_2`],
  ["a".repeat(70), "a".repeat(63)],
];

const TABLE_NAMES: [source: string, sql: string][] = [
  ...NAMES,
  ["Foo", "foo"],
  ["Foo Pkey", "foo_pkey"],
  ["🎉🚀", "table"],
  ["💥", "table_2"],
  ["table", "table_3"],
  ["_sync_meta", "sync_meta"],
  ["PG Class", "pg_class_"],
];

const FIELD_NAMES: [source: string, sql: string][] = [
  ...NAMES,
  ["id", "id_"],
  ["Id!", "id__2"],
  ["created_time", "created_time_"],
  ["Created Time", "created_time__2"],
  ["ctid", "ctid_"],
  ["xmin", "xmin_"],
  ["tableoid", "tableoid_"],
  ["🎉🚀", "field"],
  ["💥", "field_2"],
  ["field", "field_3"],
];

let fleet: Fleet;

beforeAll(async () => {
  fleet = await startFleet({
    sandbox: { settings: { rateLimitOff: true } },
    env: { SCHEMA_POLL_SECONDS: "0.1" },
  });
});
afterAll(() => fleet?.[Symbol.asyncDispose]());

/** A synced base of these tables. */
async function synced(tables: TableInput[]): Promise<Base> {
  const base = await fleet.connect(fleet.sandbox.control.createBase({ name: "Shapes", tables }), {
    turbo: true,
  });
  return fleet.synced(base.id);
}

/** An id that sorts at `index`: suffixes are assigned in the order of ids. */
function idAt(kind: "tbl" | "fld", index: number): string {
  return `${kind}${String(index).padStart(14, "0")}`;
}

/** A table with the maximum of fields, and two records: one with a value in each cell, and one with none. */
function wideTable(type: string, cell: (index: number) => unknown): TableInput {
  const fields = Array.from({ length: MOST_FIELDS }, (_, index) => ({ name: `F ${index}`, type }));
  const cells = Object.fromEntries(fields.map(({ name }, index) => [name, cell(index)]));
  return {
    name: `Wide ${type.toLowerCase()}`,
    fields,
    records: [
      { id: "rec00000000000001", fields: cells },
      { id: "rec00000000000002", fields: {} },
    ],
  };
}

const nameField: FieldDefinition = { name: "Name", type: "singleLineText" };

test.concurrent("a base without tables is synced, and so is its first table", async () => {
  const base = await synced([]);
  expectWell(base);
  const reader = await fleet.reader(base);
  expect(await tablesByComment(reader)).toEqual(new Map());
  expect(await reader`select completed_at is not null as done from _sync_meta`).toEqual([{ done: true }]);
  fleet.sandbox.control.addTable(base.sourceBaseId, { name: "First", fields: [nameField] });
  // A sync that is recorded as later than this may have read the schema a moment before.
  await untilSameShape(fleet, base, 30_000);
  await expectEqualToSource(fleet, base);
});

test.concurrent("a table without records exists, with its columns", async () => {
  const base = await synced([{ name: "Empty", fields: [nameField, { name: "Size", type: "number" }] }]);
  expectWell(base);
  const reader = await fleet.reader(base);
  expect(await reader`select * from empty`).toEqual([]);
  expect([...(await columnsByComment(reader, "empty")).keys()]).toEqual(["Name", "Size"]);
});

test.concurrent("a table with computed fields only has a row for each record", async () => {
  const number = { result: { type: "number" }, isValid: true };
  const base = await synced([
    {
      name: "Computed",
      fields: [
        { name: "Sum", type: "formula", options: { ...number, formula: "1+1", referencedFieldIds: [] } },
        { name: "No", type: "autoNumber" },
        { name: "Made", type: "createdTime", options: { result: { type: "dateTime" } } },
      ],
      records: [{ fields: {} }, { fields: {} }],
    },
  ]);
  expectWell(base);
  await expectEqualToSource(fleet, base);
  const rows = await dumpTable(await fleet.reader(base), "computed");
  expect(rows).toHaveLength(2);
  expect(rows[0]).toMatchObject({ sum: "2", no: expect.any(Number), made: expect.stringMatching(/^20/) });
});

test.concurrent("a table with 500 fields has all of them", async () => {
  const base = await synced([
    wideTable("number", (index) => 1 / (index + 3)),
    wideTable("singleLineText", () => "abc"),
  ]);
  expectWell(base);
  expect(await expectEqualToSource(fleet, base)).toBe(4 * MOST_FIELDS);
});

/**
 * A row of Postgres is 8 kB at most, and contains a pointer of 18 bytes to each long text, or a text of up to 23 bytes
 * itself; if texts were compressed in it, one of 21 bytes would replace the pointer, and take more room.
 */
test.concurrent.for([
  ["of 23 bytes", (index: number) => String(index).padStart(23, "x")],
  ["of 24 bytes", (index: number) => String(index).padStart(24, "x")],
  ["of 1,000 bytes", () => crypto.randomUUID().repeat(28)],
  ["that compress to 21 bytes", () => `abcdefg${"x".repeat(93)}`],
] as const)(
  "500 texts %s in one record are stored as far as a row holds them, and the rest is reported",
  async ([, cell]) => {
    const table = wideTable("singleLineText", cell);
    const base = await synced([table]);
    expectWell(base);
    const reader = await fleet.reader(base);
    const [row, empty] = (await dumpTable(reader, "wide_singlelinetext")) as Record<string, unknown>[];
    expect(empty).toMatchObject({ f_0: null });
    const issues = await reader<{ field: string; record_id: string; reason: string }[]>`
    select field, record_id, reason from _sync_issues`;
    const untold = new Set(issues.map((issue) => issue.field));
    expect(untold.size).toBeGreaterThan(0);
    expect(MOST_FIELDS - untold.size).toBeGreaterThan(330);
    expect(new Set(issues.map((issue) => issue.reason))).toEqual(
      new Set(["row is wider than Postgres can store"]),
    );
    const cells = table.records![0]!.fields;
    for (const [name, value] of Object.entries(cells)) {
      const column = name.toLowerCase().replace(" ", "_");
      expect(row![column], name).toBe(untold.has(column) ? null : value);
    }
  },
);

test.concurrent("every table name becomes a valid SQL name, and the comment has the original", async () => {
  const base = await synced(
    TABLE_NAMES.map(([name], index) => ({
      id: idAt("tbl", index),
      name,
      fields: [nameField],
      records: [{ fields: { Name: name } }],
    })),
  );
  expectWell(base);
  const reader = await fleet.reader(base);
  expect(await tablesByComment(reader)).toEqual(new Map(TABLE_NAMES));
  for (const [source, sql] of TABLE_NAMES) {
    expect(await reader`select name from public.${reader(sql)}`).toEqual([{ name: source }]);
  }
  expect(base.tables.map((table) => [table.source_name, table.name])).toEqual(TABLE_NAMES);
});

test.concurrent("every field name becomes a valid SQL name, and the comment has the original", async () => {
  const base = await synced([
    {
      name: "Names",
      fields: FIELD_NAMES.map(([name], index) => ({ id: idAt("fld", index), name, type: "singleLineText" })),
      records: [{ fields: Object.fromEntries(FIELD_NAMES.map(([name]) => [name, name])) }],
    },
  ]);
  expectWell(base);
  const reader = await fleet.reader(base);
  const columns = await columnsByComment(reader, "names");
  expect(new Map([...columns].map(([source, { name }]) => [source, name]))).toEqual(new Map(FIELD_NAMES));
  for (const [source, sql] of FIELD_NAMES) {
    expect(await reader`select ${reader(sql)} as cell from names`).toEqual([{ cell: source }]);
  }
});

test.concurrent("fields and tables that get the same name during a sync keep their own rows", async () => {
  const base = await synced([
    { id: idAt("tbl", 1), name: "First", fields: [nameField], records: [{ fields: { Name: "of first" } }] },
    { id: idAt("tbl", 2), name: "Other", fields: [nameField], records: [{ fields: { Name: "of other" } }] },
  ]);
  const { control } = fleet.sandbox;
  control.renameTable(base.sourceBaseId, "Other", "first!");
  control.addField(base.sourceBaseId, "First", { name: "name?", type: "singleLineText" });
  expectWell(await fleet.synced(base.id));
  const reader = await fleet.reader(base);
  expect(await reader`select name, name_2 from first`).toEqual([{ name: "of first", name_2: null }]);
  expect(await reader`select name from first_2`).toEqual([{ name: "of other" }]);
});

/** The results of the mapper and the namer are given to a real Postgres, which must accept all of them. */
import fc from "fast-check";
import type { Sql } from "postgres";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { CellIssue, ColumnSpec, TableSpec } from "../../../core/replica";
import { compileMapper, mapRecords, quoteIdent } from "../../../core/replica";
import { assignNames } from "../../../core/replica/naming";
import { columnTypeOf, typeMap } from "../../../core/replica/type-map";
import type { FieldType } from "../../../core/source";
import { freshDatabase, type TestDatabase } from "../../support/database";

let db: TestDatabase;
beforeAll(async () => {
  db = await freshDatabase();
});
afterAll(() => db[Symbol.asyncDispose]());

const arrays = { linkedRecordsAsText: false, lookupsAsText: false };

/** One column per field type, and a second one for each type that can be two kinds of column. */
const everyColumn: ColumnSpec[] = (Object.keys(typeMap) as FieldType[]).flatMap((type) =>
  [false, true]
    .map((asText): ColumnSpec => {
      const result = type === "rollup" && asText ? "text" : undefined;
      const settings = { linkedRecordsAsText: asText, lookupsAsText: asText };
      const columnType = columnTypeOf({ type, result }, settings);
      const name = asText ? `${type}_as_text` : type === "created_time" ? "created_time_" : type;
      return { fieldId: name, name, sourceName: name, type, sourceType: type, result, columnType };
    })
    .filter((column, index) => index === 0 || column.columnType !== columnTypeOf({ type }, arrays)),
);
const everything: TableSpec = {
  tableId: "tbl1",
  name: "everything",
  sourceName: "Everything",
  columns: everyColumn,
};

describe("rows", () => {
  beforeAll(async () => {
    await db.sql.unsafe(`create table everything (${shapeOf(everything)}, primary key (id))`);
    await db.sql`create table issues (record_id text, "column" text, value text, reason text)`;
  });

  test("I1: with any JSON in the cells, Postgres accepts every row and every issue", async () => {
    const mapper = compileMapper(everything);
    const record = fc.record({
      id: fc.oneof(fc.string(), anyUnits),
      createdTime: fc.oneof(anyDate, anyUnits),
      fields: fc.record(Object.fromEntries(everyColumn.map(({ fieldId }) => [fieldId, anyCell])), {
        requiredKeys: [],
      }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(record, { maxLength: 8 }), async (records) => {
        const issues: CellIssue[] = [];
        const rows = mapRecords(mapper, records, issues);
        await db.sql`truncate everything, issues`;
        expect(await insert(db.sql, everything, rows)).toBe(rows.length);
        const noted = await db.sql`
          insert into issues
          select * from json_to_recordset(${JSON.stringify(issues.map(({ recordId, ...rest }) => ({ record_id: recordId, ...rest })))}::text::json)
            as r(record_id text, "column" text, value text, reason text)`;
        expect(noted.count).toBe(issues.length);
        // The guarantees for a duration, and an unchecked box
        await db.sql`select duration::interval from everything`;
        const [unticked] = await db.sql`select count(*)::int as rows from everything where checkbox is null`;
        expect(unticked!.rows).toBe(issues.filter(({ column }) => column === "checkbox").length);
      }),
      { numRuns: 200 },
    );
  });

  test("values are read from Postgres as they were written", async () => {
    const cells = {
      text: 'tab\t "quotes" \\ back\u2028 😀',
      number: 97.02237283468794,
      barcode: { text: "00123456789012345678901234567890" },
      checkbox: true,
      date: "-000043-03-15",
      date_time: "2024-03-01T00:30:00.123+02:30",
      duration: -3661.5,
      lookup: ["", null, '{"}', "NULL", "a,b"],
      links: [],
      collaborator: { id: "usr1", email: "a@example.org" },
    };
    const rows = [
      compileMapper(everything)({ id: "rec1", createdTime: "2024-02-29T12:00:00.000Z", fields: cells }, []),
    ];
    await db.sql`truncate everything`;
    await insert(db.sql, everything, rows);
    const [row] = await db.sql`
      select text, number::text, barcode::text, checkbox, date::text, date_time::text, created_time::text as created,
        duration::interval::text, to_json(lookup) as lookup, links, collaborator, email from everything`;
    expect(row).toEqual({
      text: cells.text,
      number: "97.02237283468794",
      barcode: "123456789012345678901234567890",
      checkbox: true,
      date: "0044-03-15 BC",
      date_time: "2024-02-29 22:00:00.123",
      created: "2024-02-29 12:00:00",
      duration: "-01:01:01.5",
      lookup: ["", null, '{"}', "NULL", "a,b"],
      links: [],
      collaborator: ["a@example.org"],
      email: null,
    });
  });
});

test("Postgres accepts every name for a table and a column, untruncated and distinct", async () => {
  const name = fc.oneof(
    fc.string({ unit: "grapheme", maxLength: 80 }),
    fc.string({ unit: "binary", maxLength: 40 }),
    anyUnits,
    fc.string({ unit: "grapheme", minLength: 30, maxLength: 40 }).map((text) => `${text}क्षि`.repeat(2)),
    fc.constantFrom("a".repeat(64), "a".repeat(70), "é".repeat(32)),
    fc.constantFrom("ID", "ctid", "xmin", "Created Time", "tableoid", "cmin", "select", "user"),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(name, { minLength: 1, maxLength: 12 }), async (names) => {
      const entries = names.map((sourceName, index) => ({ id: String(index), name: sourceName }));
      const table = assignNames(entries, { kind: "table" }).get("0")!;
      const columns = [...assignNames(entries, { kind: "column" }).values()];
      await db.sql.begin(async (sql) => {
        const shape = ["id", "created_time", ...columns]
          .map((column) => `${quoteIdent(column)} text`)
          .join(", ");
        await sql.unsafe(`create schema names create table ${quoteIdent(table)} (${shape})`);
        const made = await sql`
          select c.relname as table, a.attname as column from pg_class c join pg_attribute a on a.attrelid = c.oid
          where c.relnamespace = 'names'::regnamespace and a.attnum > 2 order by a.attnum`;
        expect(made.map((row) => row.column)).toEqual(columns);
        expect(made[0]!.table).toBe(table);
        await sql`drop schema names cascade`;
      });
    }),
    { numRuns: 150 },
  );
});

function shapeOf(spec: TableSpec): string {
  const columns = spec.columns.map(({ name, columnType }) => `${quoteIdent(name)} ${columnType}`);
  return ["id text", "created_time timestamp", ...columns].join(", ");
}

/** Like the writer; returns the rows written. */
async function insert(sql: Sql, spec: TableSpec, rows: unknown[]): Promise<number> {
  const written = await sql.unsafe(
    `insert into ${quoteIdent(spec.name)} select * from json_to_recordset($1::text::json) as r(${shapeOf(spec)})`,
    [JSON.stringify(rows)],
  );
  return written.count;
}

/** Any string that JSON can contain, including lone surrogates and NULs. */
const anyUnits = fc
  .array(fc.oneof(fc.integer({ min: 0, max: 0xffff }), fc.constantFrom(0, 0xd83d, 0xde00, 0x22, 0x5c)), {
    maxLength: 12,
  })
  .map((units) => String.fromCharCode(...units));

const digits = (count: number, max: number) => fc.nat(max).map((value) => String(value).padStart(count, "0"));

/** Dates and times, many of them invalid. */
const anyDate = fc
  .tuple(
    fc.oneof(
      fc.constantFrom(
        "2024",
        "2023",
        "1900",
        "0000",
        "-4713",
        "-4712",
        "294276",
        "294277",
        "5874897",
        "+275760",
      ),
      digits(4, 9999),
      fc
        .integer({ min: -5000, max: 6_000_000 })
        .map((year) => (year < 0 ? "-" : "+") + String(Math.abs(year)).padStart(6, "0")),
    ),
    digits(2, 13),
    digits(2, 32),
    fc.oneof(
      fc.constant(""),
      fc
        .tuple(digits(2, 25), digits(2, 61), digits(2, 61), fc.constantFrom("", ".0", ".123", ".9999999"))
        .map(([hour, minute, second, fraction]) => `T${hour}:${minute}:${second}${fraction}`),
    ),
    fc.constantFrom("", "Z", "+01:00", "-1530", "+23:59", "+99:00"),
  )
  .map(([year, month, day, time, zone]) => `${year}-${month}-${day}${time}${time && zone}`);

const anyScalar = fc.oneof(
  anyUnits,
  fc.string(),
  fc.double().map((value) => JSON.parse(JSON.stringify(value)) as number | null),
  fc.constantFrom(
    1e308,
    5e-324,
    -0,
    9e12,
    -9e12,
    9.1e12,
    Number.POSITIVE_INFINITY,
    "NaN",
    "Infinity",
    "1e5",
    "",
  ),
  fc.boolean(),
  fc.constant(null),
);

/** The forms of cells, with arbitrary values in them. */
const anyObject = fc.record(
  {
    id: anyScalar,
    url: anyScalar,
    label: anyScalar,
    email: anyScalar,
    name: anyScalar,
    text: fc.oneof(anyScalar, fc.constantFrom("0123", "-1.", ".5", "+7", "1".repeat(1000), "12 ")),
    state: fc.constantFrom("generated", "error"),
    value: anyScalar,
    errorType: anyScalar,
    error: anyScalar,
    specialValue: fc.oneof(anyScalar, fc.constant("NaN")),
  },
  { requiredKeys: [] },
);

const anyCell: fc.Arbitrary<unknown> = fc.oneof(
  anyScalar,
  anyDate,
  anyObject,
  fc.array(fc.oneof(anyScalar, anyObject, fc.array(fc.oneof(anyScalar, anyObject), { maxLength: 3 })), {
    maxLength: 4,
  }),
  fc.jsonValue(),
);

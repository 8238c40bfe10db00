import { describe, expect, test } from "vitest";
import type { CellIssue } from "../../core/replica";
import { compileMapper, mapRecords } from "../../core/replica";
import type { Row } from "../../core/replica/spec";
import { columnTypeOf } from "../../core/replica/type-map";
import type { FieldType, SourceRecord } from "../../core/source";

interface Options {
  result?: FieldType;
  linkedRecordsAsText?: boolean;
  lookupsAsText?: boolean;
}

/** A mapper of a table with one column, `cell`, of this type. */
function mapperFor(type: FieldType, options: Options = {}) {
  const { result, linkedRecordsAsText = false, lookupsAsText = false } = options;
  const columnType = columnTypeOf({ type, result }, { linkedRecordsAsText, lookupsAsText });
  const column = {
    fieldId: "fld1",
    name: "cell",
    sourceName: "Cell",
    type,
    sourceType: type,
    result,
    columnType,
  };
  return compileMapper({ tableId: "tbl1", name: "things", sourceName: "Things", columns: [column] });
}

function recordOf(cell: unknown, id = "rec1"): SourceRecord {
  return { id, createdTime: "2024-02-29T12:00:00.000Z", fields: cell === undefined ? {} : { fld1: cell } };
}

/** The result of a cell, and the reason if it was changed. */
function read(type: FieldType, cell: unknown, options?: Options): [Row[string], ...string[]] {
  const issues: CellIssue[] = [];
  const row = mapperFor(type, options)(recordOf(cell), issues);
  return [row.cell!, ...issues.map(({ reason }) => reason)];
}

const UNSTORABLE = "the text contained characters that Postgres cannot store";

type Case = [type: FieldType, cell: unknown, value: Row[string], reason?: string, options?: Options];

const numbers: Case[] = [
  ["number", 0, 0],
  ["number", -0, -0],
  ["currency", 1e308, 1e308],
  ["percent", 0.123, 0.123],
  ["number", "12", null, "not a number"],
  ["number", [1], null, "not a number"],
  ["number", true, null, "not a number"],
  ["number", JSON.parse("1e999"), null, "Infinity"],
  ["count", { specialValue: "NaN" }, null, "NaN"],
  ["rating", { error: "#ERROR!" }, null, "#ERROR!"],
  ["rating", { error: { type: "x" } }, null, "not a number"],
  ["rollup", 5, 5],
  ["rollup", "5", null, "not a number"],
  ["rollup", ["a"], null, "not a number"],
  ["rollup", "a, b", "a, b", undefined, { result: "text" }],
  ["rollup", 5, "5", undefined, { result: "text" }],
  ["rollup", { specialValue: "Infinity" }, null, "Infinity", { result: "text" }],
  ["rollup", 90, 90, undefined, { result: "duration" }],
  ["barcode", { text: "0012345678901234567890", type: "code39" }, "0012345678901234567890"],
  ["barcode", { text: "-1.50" }, "-1.50"],
  ["barcode", { text: "ABC-123" }, null, "not a number"],
  ["barcode", { text: "1e5" }, null, "not a number"],
  ["barcode", { text: "9".repeat(1001) }, null, "not a number"],
  ["barcode", { type: "upce" }, null, "not a number"],
  ["barcode", { error: "#ERROR!" }, null, "#ERROR!"],
];

const times: Case[] = [
  ["date", "2024-02-29", "2024-02-29"],
  ["date", "2023-02-29", null, "not a date"],
  ["date", "1900-02-29", null, "not a date"],
  ["date", "2000-02-29", "2000-02-29"],
  ["date", "2024-13-01", null, "not a date"],
  ["date", "0001-01-01", "0001-01-01"],
  ["date", "0000-12-31", "0001-12-31 BC"],
  ["date", "-000043-03-15", "0044-03-15 BC"],
  ["date", "+012024-01-01", "12024-01-01"],
  ["date", "12024-01-01", "12024-01-01"],
  ["date", "-4713-11-24", "4714-11-24 BC"],
  ["date", "-4713-11-23", null, "not a date"],
  ["date", "5874897-12-31", "5874897-12-31"],
  ["date", "5874898-01-01", null, "not a date"],
  ["date", "2024-02-29T23:30:00.000-05:00", "2024-02-29"],
  ["date", "2024-02-29T25:30:00Z", null, "not a date"],
  ["date", "October 1947", null, "not a date"],
  ["date", "1960-1964", null, "not a date"],
  ["date", "", null, "not a date"],
  ["date", 20240229, null, "not a date"],
  ["date", { error: "#ERROR!" }, null, "#ERROR!"],
  ["date_time", "2024-02-29T12:34:56.789Z", "2024-02-29T12:34:56.789"],
  ["date_time", "2024-03-01T00:30:00.5+02:30", "2024-02-29T22:00:00.5"],
  ["date_time", "2024-12-31T23:30:15-0100", "2025-01-01T00:30:15"],
  ["date_time", "2024-02-29 12:34", "2024-02-29T12:34:00"],
  ["date_time", "2024-02-29", "2024-02-29T00:00:00"],
  ["date_time", "2024-02-29T23:59:59.99999999Z", "2024-02-29T23:59:59.999999"],
  ["date_time", "+010000-01-01T00:00:00.000Z", "10000-01-01T00:00:00.000"],
  ["date_time", "0001-01-01T00:30:00+01:00", "0001-12-31T23:30:00 BC"],
  ["date_time", "294276-12-31T23:59:59.999Z", "294276-12-31T23:59:59.999"],
  ["date_time", "294277-01-01T00:00:00Z", null, "not a date"],
  ["date_time", "290000-01-01T00:00:00+01:00", null, "not a date"],
  ["date_time", "2024-02-29T24:00:00Z", null, "not a date"],
  ["date_time", "2024-02-29T12:60:00Z", null, "not a date"],
  ["created_time", "2024-02-29", "2024-02-29T00:00:00"],
  ["last_modified_time", { specialValue: "NaN" }, null, "NaN"],
  ["duration", 0, "0:00:00"],
  ["duration", 3661, "1:01:01"],
  ["duration", 360000.25, "100:00:00.250"],
  ["duration", -59.9996, "-0:01:00"],
  ["duration", -0.0001, "0:00:00"],
  ["duration", 1e300, null, "longer than an interval can be"],
  ["duration", "1:00", null, "not a number of seconds"],
];

const texts: Case[] = [
  ["text", "", ""],
  ["text", " as it is\n", " as it is\n"],
  ["text", 5, "5"],
  ["long_text", ["a", 1], '["a",1]'],
  ["single_select", { name: "x" }, '{"name":"x"}'],
  ["url", null, null],
  ["unknown", true, "true"],
  ["text", "a\0b\ud800c", "a\ufffdb\ufffdc", UNSTORABLE],
  ["text", "😀", "😀"],
  ["formula", 0.1, "0.1"],
  ["formula", false, "false"],
  ["formula", ["a", 1], '["a",1]'],
  ["formula", { specialValue: "-Infinity" }, null, "-Infinity"],
  ["formula", { error: "#ERROR" }, null, "#ERROR"],
  ["button", { label: "Open", url: "https://example.org/" }, "https://example.org/"],
  ["button", { label: "Open", url: null }, "Open"],
  ["button", { label: null, url: null }, null],
  ["button", { url: null, other: 1 }, '{"url":null,"other":1}'],
  ["created_by", { id: "usr1", email: "a@example.org", name: "A" }, "a@example.org"],
  ["last_modified_by", { id: "usr1", name: "A" }, "A"],
  ["created_by", { id: "usr1", email: "" }, "usr1"],
  ["created_by", [1], "[1]"],
  ["ai_text", { state: "generated", isStale: false, value: "poem" }, "poem"],
  ["ai_text", { state: "empty", isStale: false, value: null }, null],
  ["ai_text", { state: "error", errorType: "rateLimit", isStale: false, value: null }, null, "rateLimit"],
  ["ai_text", { value: [1] }, '{"value":[1]}'],
  ["ai_text", "poem", "poem"],
  ["checkbox", true, true],
  ["checkbox", undefined, false],
  ["checkbox", null, false],
  ["checkbox", "yes", null, "not true or false"],
];

const lists: Case[] = [
  [
    "attachment",
    [{ id: "att1", url: "https://example.org/a" }, { url: "b" }],
    ["https://example.org/a", "b"],
  ],
  ["attachment", [{ id: "att1" }], [null], "an attachment without a URL"],
  ["collaborator", { id: "usr1", email: "a@example.org" }, ["a@example.org"]],
  ["collaborators", [{ id: "usr1", name: "A" }, { id: "ugp1" }], ["A", "ugp1"]],
  ["multiple_select", ["a", "", "b"], ["a", "", "b"]],
  ["multiple_select", "a", ["a"]],
  ["multiple_select", [], []],
  ["multiple_select", undefined, null],
  ["multiple_select", ["a\0", "b"], ["a\ufffd", "b"], UNSTORABLE],
  ["links", ["rec1", "rec2"], ["rec1", "rec2"]],
  ["links", [{ id: "rec1", name: "One" }], ["rec1"]],
  ["links", ["rec1", "rec2"], "rec1", undefined, { linkedRecordsAsText: true }],
  ["links", [], null, undefined, { linkedRecordsAsText: true }],
  ["lookup", ["a", 1, true, null], ["a", "1", "true", null]],
  [
    "lookup",
    [
      ["a", "b"],
      ["c", ["d"]],
    ],
    ["a", "b", "c", '["d"]'],
  ],
  ["lookup", [{ id: "att1", url: "u" }, { id: "usr1", email: "e" }, { text: "012" }], ["u", "e", "012"]],
  [
    "lookup",
    [
      { label: "Go", url: null },
      { state: "generated", value: "v" },
    ],
    ["Go", "v"],
  ],
  ["lookup", [{ x: 1 }], ['{"x":1}']],
  ["lookup", ["a", { error: "#ERROR!" }, { specialValue: "NaN" }], ["a", null, null], "#ERROR!"],
  ["lookup", { error: "#ERROR!" }, null, "#ERROR!"],
  ["lookup", "a", ["a"]],
  ["lookup", [null, "a", "b"], "a", undefined, { lookupsAsText: true }],
  ["lookup", [null], null, undefined, { lookupsAsText: true }],
];

describe.each([
  ["numbers", numbers],
  ["times", times],
  ["texts", texts],
  ["lists", lists],
])("cells: %s", (_, cases) => {
  test.each(cases)("%s %j becomes %j", (type, cell, value, reason, options) => {
    expect(read(type, cell, options)).toEqual(reason === undefined ? [value] : [value, reason]);
  });
});

test("a row has id, created_time and every column, even if cells are absent", () => {
  expect(mapperFor("text")(recordOf(undefined), [])).toEqual({
    id: "rec1",
    created_time: "2024-02-29T12:00:00.000",
    cell: null,
  });
});

test("a record with an unreadable creation time is kept, with a time that is obviously not real", () => {
  const issues: CellIssue[] = [];
  const row = mapperFor("text")({ ...recordOf("x"), createdTime: "yesterday" }, issues);
  expect(row).toEqual({ id: "rec1", created_time: "1970-01-01T00:00:00", cell: "x" });
  expect(issues).toEqual([
    { recordId: "rec1", column: "created_time", value: '"yesterday"', reason: "not a date" },
  ]);
});

test("an issue shows the cell's JSON, truncated at a character within 1,000, and its first reason only", () => {
  const issues: CellIssue[] = [];
  mapperFor("lookup")(recordOf([`${"x".repeat(996)}😀\0`, { error: "#ERROR!" }]), issues);
  expect(issues).toEqual([
    { recordId: "rec1", column: "cell", value: `["${"x".repeat(996)}😀`, reason: UNSTORABLE },
  ]);
  mapperFor("number")(recordOf(`${"x".repeat(998)}😀`), issues);
  expect(issues[1]!.value).toBe(`"${"x".repeat(998)}`);
  mapperFor("formula")(recordOf({ error: `\0${"#".repeat(200)}` }), issues);
  expect(issues[2]!.reason).toBe(`\ufffd${"#".repeat(99)}`);
});

test("a cell nested too deeply to be written again is an issue", () => {
  for (const levels of [100_000, 12_000]) {
    const deep = JSON.parse("[".repeat(levels) + "]".repeat(levels));
    expect(read("text", deep)).toEqual([null, "nested too deeply"]);
  }
});

test("of several records with one id, the last is mapped, and only its issues are recorded", () => {
  const issues: CellIssue[] = [];
  const records = [recordOf("x", "rec1"), recordOf(1, "rec2"), recordOf(2, "rec1")];
  const rows = mapRecords(mapperFor("number"), records, issues);
  expect(rows.map(({ id, cell }) => [id, cell])).toEqual([
    ["rec1", 2],
    ["rec2", 1],
  ]);
  expect(issues).toEqual([]);
});

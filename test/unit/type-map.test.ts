import { describe, expect, test } from "vitest";
import type { ColumnType } from "../../core/replica/spec";
import { columnTypeOf, typeMap, typeMapMarkdown } from "../../core/replica/type-map";
import type { FieldType } from "../../core/source";

const arrays = { linkedRecordsAsText: false, lookupsAsText: false };

describe("columnTypeOf", () => {
  const expected: Record<FieldType, ColumnType> = {
    ai_text: "text",
    attachment: "text[]",
    autonumber: "numeric",
    barcode: "numeric",
    button: "text",
    checkbox: "bool",
    collaborator: "text[]",
    collaborators: "text[]",
    count: "numeric",
    created_by: "text",
    created_time: "timestamp",
    currency: "numeric",
    date: "date",
    date_time: "timestamp",
    duration: "text",
    email: "text",
    external_sync_source: "text",
    formula: "text",
    last_modified_by: "text",
    last_modified_time: "timestamp",
    links: "text[]",
    long_text: "text",
    lookup: "text[]",
    multiple_select: "text[]",
    number: "numeric",
    percent: "numeric",
    phone: "text",
    rating: "numeric",
    rich_text: "text",
    rollup: "numeric",
    single_select: "text",
    text: "text",
    url: "text",
    unknown: "text",
  };

  test.each(Object.entries(expected) as [FieldType, ColumnType][])(
    "%s is a column of type %s",
    (type, column) => {
      expect(columnTypeOf({ type }, arrays)).toBe(column);
    },
  );

  test("links and lookups become text by their own setting each", () => {
    const links = { linkedRecordsAsText: true, lookupsAsText: false };
    const lookups = { linkedRecordsAsText: false, lookupsAsText: true };
    expect(columnTypeOf({ type: "links" }, links)).toBe("text");
    expect(columnTypeOf({ type: "lookup" }, links)).toBe("text[]");
    expect(columnTypeOf({ type: "links" }, lookups)).toBe("text[]");
    expect(columnTypeOf({ type: "lookup" }, lookups)).toBe("text");
    expect(columnTypeOf({ type: "multiple_select" }, { ...links, ...lookups })).toBe("text[]");
  });

  test.each([
    [undefined, "numeric"],
    ["number", "numeric"],
    ["currency", "numeric"],
    ["duration", "numeric"],
    ["text", "text"],
    ["date", "text"],
    ["lookup", "text"],
    ["unknown", "text"],
  ] as const)("a rollup that yields %s is %s", (result, column) => {
    expect(columnTypeOf({ type: "rollup", result }, arrays)).toBe(column);
  });
});

test("the README's table has one row per type, with the labels in order and both of a type's columns", () => {
  const lines = typeMapMarkdown().trimEnd().split("\n");
  expect(lines).toHaveLength(2 + Object.keys(typeMap).length);
  expect(new Set(lines).size).toBe(lines.length);
  const labels = lines.slice(2).map((line) => line.split("|")[1]!.trim());
  expect(labels.slice(0, -1)).toEqual(labels.slice(0, -1).sort());
  expect(labels.at(-1)).toBe("Any other type");
  expect(lines).toContain("| Autonumber | `numeric` |  |");
  expect(lines.find((line) => line.startsWith("| Link to"))).toMatch(
    /\| `text\[\]`; `text` with the setting linked records as text \|/,
  );
});

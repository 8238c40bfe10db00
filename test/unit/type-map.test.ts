import { describe, expect, test } from "vitest";
import type { ColumnType } from "../../core/replica/spec";
import { columnTypeOf, type TypeTraits, traitsOf, typeMap } from "../../core/replica/type-map";
import type { FieldType } from "../../core/source";
import { typeMapMarkdown } from "../support/readme-tables";

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
    hashed: "text",
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

test("the table of docs/types.md has one row per type, with the labels in order and both of a type's columns", () => {
  const lines = typeMapMarkdown().trimEnd().split("\n");
  expect(lines).toHaveLength(2 + Object.keys(typeMap).length);
  expect(new Set(lines).size).toBe(lines.length);
  const labels = lines.slice(2).map((line) => line.split("|")[1]!.trim());
  expect(labels.slice(0, -1)).toEqual(labels.slice(0, -1).sort());
  expect(labels.at(-1)).toBe("Any other type");
  expect(lines).toContain("| Autonumber | `numeric` |  |");
  expect(lines.find((line) => line.startsWith("| Link to"))).toMatch(
    /\| `text\[\]`; `text` with the setting \*linked records as text\* \|/,
  );
});

describe("traits", () => {
  const having = (has: (traits: TypeTraits) => unknown) =>
    (Object.keys(typeMap) as FieldType[]).filter((type) => has(traitsOf(type))).sort();

  test("computed types, and those whose cells need not fit", () => {
    expect(having(({ computed }) => computed)).toEqual(["count", "formula", "lookup", "rollup"]);
    expect(having(({ fits }) => fits === "sometimes")).toEqual([
      "ai_text",
      "barcode",
      "button",
      "formula",
      "lookup",
      "rollup",
    ]);
  });

  test("types whose cells change without a report of the feed", () => {
    expect(having(({ reported }) => reported === false)).toEqual([
      "ai_text",
      "attachment",
      "autonumber",
      "button",
      "count",
      "created_by",
      "created_time",
      "external_sync_source",
      "formula",
      "hashed",
      "last_modified_by",
      "last_modified_time",
      "lookup",
      "rollup",
      "unknown",
    ]);
  });

  test("types that are numbers, and those that are read back as text or numbers", () => {
    const numbers = ["autonumber", "count", "currency", "number", "percent", "rating"];
    expect(having(({ numeric }) => numeric)).toEqual([...numbers, "duration"].sort());
    expect(having(({ readsBack }) => readsBack === "number")).toEqual(numbers);
    expect(having(({ readsBack }) => readsBack === "text")).toEqual([
      "email",
      "long_text",
      "phone",
      "rich_text",
      "single_select",
      "text",
      "url",
    ]);
  });
});

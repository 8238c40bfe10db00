/**
 * A table of many records and fields, as `first-sync` reads it. Its pages are made from one page of bytes, in which only
 * the record's number changes, so that a page costs a copy.
 */
import type { FieldType, SourceTable } from "../../core/source";

const PAGE_RECORDS = 100;
/** Digits of a record's number: as many as an id has characters. */
const DIGITS = 14;

/** What a cell holds, by type, in the proportions of a usual table. */
const cells: [FieldType, sourceType: string, cell: (index: number) => unknown][] = [
  ["text", "singleLineText", (index) => `Value of cell ${index} abc`],
  ["number", "number", (index) => index * 1.25],
  ["text", "singleLineText", (index) => `Another text ${index}`],
  ["date", "date", () => "2024-05-06"],
  ["single_select", "singleSelect", (index) => `Choice ${index % 10}`],
  ["checkbox", "checkbox", () => true],
  ["text", "singleLineText", (index) => `name-${index}@example.org`],
  ["links", "multipleRecordLinks", (index) => [`rec${String(index).padStart(DIGITS, "0")}`]],
  ["long_text", "multilineText", (index) => `Line ${index}\n`.repeat(8)],
  ["number", "number", (index) => index],
];

/** @param retyped the name of a number field that is a text now, so that its table must be rebuilt */
export function largeTable(fields: number, retyped?: string): SourceTable {
  return {
    id: "tblLarge",
    name: "Large",
    primaryFieldId: "fld0",
    fields: Array.from({ length: fields }, (_, index) => {
      const [type, sourceType] = cells[index % cells.length]!;
      const name = `Field ${index}`;
      const isRetyped = name === retyped;
      return {
        id: `fld${index}`,
        name,
        type: isRetyped ? "text" : type,
        sourceType: isRetyped ? "singleLineText" : sourceType,
      };
    }),
  };
}

/** As many equal tables, each with names and ids of its own. */
export function largeTables(count: number, fields: number, retyped?: string): SourceTable[] {
  const table = largeTable(fields, retyped);
  if (count === 1) return [table];
  return Array.from({ length: count }, (_, nth) => ({
    ...table,
    id: `tblLarge${nth}`,
    name: `Large ${nth}`,
  }));
}

/** Returns a function that makes the bytes of page `page` of a table with `records` records. */
export function pagesOf(records: number, fields: number): (page: number) => Buffer<ArrayBuffer> {
  const mark = (index: number) => `#${String(index).padStart(DIGITS - 1, "0")}`;
  const text = JSON.stringify({
    records: Array.from({ length: PAGE_RECORDS }, (_, index) => ({
      id: `rec${mark(index)}`,
      createdTime: "2024-01-02T03:04:05.000Z",
      fields: Object.fromEntries(
        Array.from({ length: fields }, (_, field) => [
          `fld${field}`,
          field === 0 ? `Record ${mark(index)}` : cells[field % cells.length]![2](field),
        ]),
      ),
    })),
  }).slice(0, -1);
  const template = Buffer.from(text);
  const places = [...text.matchAll(/#\d+/g)].map(({ index }) => Buffer.byteLength(text.slice(0, index)));
  return (page) => {
    const body = Buffer.from(template);
    for (const [nth, at] of places.entries()) {
      const number = page * PAGE_RECORDS + Math.floor(nth / 2);
      body.write(String(number).padStart(DIGITS, "0"), at, "latin1");
    }
    const isLast = (page + 1) * PAGE_RECORDS >= records;
    return Buffer.concat([body, Buffer.from(isLast ? "}" : `,"offset":"itr/${page + 1}"}`)]);
  };
}

/** Pages of records: parsed on demand, and fingerprints that change with the record but not with signed URLs. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { FieldType, SourceTable } from "../../core/source";
import { readPage } from "../../core/source/airtable/page";

const CREATED = "2024-01-02T03:04:05.000Z";

describe("a page", () => {
  test("gives ids, size, offset and records as the source sent them, in any form", () => {
    const records = [record("recA", { fldA: "ü}},{" }), record("recB", {})];
    const answer = { records, offset: "itrA/recB" };
    const forms = [
      JSON.stringify(answer),
      JSON.stringify(answer, null, 2),
      JSON.stringify({ offset: answer.offset, records }),
      JSON.stringify({
        records: records.map(({ fields, ...rest }) => ({ fields, ...rest })),
        offset: answer.offset,
      }),
      `\ufeff${JSON.stringify(answer)}\n`,
    ];
    for (const form of forms) {
      const page = readPage(Buffer.from(form), table("text"));
      expect([page.size, page.offset]).toEqual([2, "itrA/recB"]);
      expect([page.id(0), page.id(1)]).toEqual(["recA", "recB"]);
      expect([page.record(0), page.record(1)]).toEqual(records);
      expect(page.record(0)).toBe(page.record(0));
    }
  });

  test("without an offset, or with an empty one, is the last", () => {
    for (const offset of [undefined, null, ""]) {
      expect(readPage(bytesOf({ records: [], offset }), table("text"))).toMatchObject({
        size: 0,
        offset: undefined,
      });
    }
  });

  test.each([
    ["no JSON", '{"records":['],
    ["HTML", "<html></html>"],
    ["nothing", ""],
    ["no list", '{"error":"NOT_FOUND"}'],
    ["an array", "[]"],
    ["an offset that is a number", '{"records":[],"offset":7}'],
    [
      "no JSON within the first of two records with one id",
      `{"records":[${["nul", "null"].map((cell) => `{"id":"recA","createdTime":"${CREATED}","fields":{"fldA":${cell}}}`)}]}`,
    ],
  ])("that is %s is a bad answer", (_, text) => {
    expect(() => readPage(Buffer.from(text), table("text"))).toThrowError(
      expect.objectContaining({ code: "source_bad_answer" }),
    );
  });

  test("whose record is not JSON inside throws when that record is read", () => {
    const page = readPage(
      Buffer.from(`{"records":[{"id":"recA","createdTime":"${CREATED}","fields":{"fldA":nul}}]}`),
      table("text"),
    );
    expect(() => page.record(0)).toThrowError(expect.objectContaining({ code: "source_bad_answer" }));
  });

  const deep = `${"[".repeat(12_000)}"attA"${"]".repeat(12_000)}`;
  const ODD = "recOdd00000000000";
  test.each([
    ["is a number", "7", [{ reason: "not a record id (rec…): 7" }]],
    ["is null", "null", [{ reason: "not a record id (rec…): null" }]],
    [
      "has no id",
      `{"createdTime":"${CREATED}","fields":{}}`,
      [{ reason: expect.stringContaining("missing") }],
    ],
    [
      "has fields that are a list",
      `{"id":"${ODD}","createdTime":"${CREATED}","fields":[]}`,
      [{ id: ODD, reason: "fields: expected an object, not a list" }],
    ],
    [
      "nests too deeply",
      ` {"id":"${ODD}","createdTime":"${CREATED}","fields":{"fldA":${deep}}}`,
      [{ id: ODD, reason: "it nests too deeply" }],
    ],
    [
      "occurs twice",
      `{"id":"${ODD}","createdTime":"${CREATED}","fields":{}},`.repeat(2).slice(0, -1),
      [{ id: ODD, reason: "it occurs twice in an answer" }],
    ],
  ])("names a record that %s, and gives the others", (_, text, unreadable) => {
    const other = record("recNext0000000000", { fldA: "x" });
    const page = readPage(Buffer.from(`{"records":[${text},${JSON.stringify(other)}]}`), table("attachment"));
    expect(page.unreadable).toEqual(unreadable);
    expect(page.id(page.size - 1)).toBe(other.id);
    expect(page.record(page.size - 1)).toEqual(other);
  });

  test.each(["", ',"createdTime":null', ',"createdTime":"soon"'])(
    "gives a record whose creation time is unknown: %s",
    (time) => {
      const page = readPage(Buffer.from(`{"records":[{"id":"${ODD}"${time},"fields":{}}]}`), table("text"));
      expect([page.size, page.unreadable, page.record(0).id]).toEqual([1, undefined, ODD]);
    },
  );

  test("has no record beyond its size", () => {
    const page = readPage(bytesOf({ records: [record("recA", {})] }), table("text"));
    expect(() => page.record(1)).toThrow(RangeError);
  });
});

describe("a fingerprint", () => {
  test("is the same for the same bytes, and different for any other record", () => {
    const fields = fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 4 });
    fc.assert(
      fc.property(fields, fields, (one, other) => {
        const isSame = JSON.stringify(one) === JSON.stringify(other);
        expect(fingerprint(one, "attachment") === fingerprint(other, "attachment")).toBe(isSame);
        expect(fingerprint(one, "attachment")).toBe(fingerprint(structuredClone(one), "attachment"));
      }),
    );
  });

  test("differs with the id and the creation time", () => {
    const records = [
      record("recA", {}),
      record("recB", {}),
      { ...record("recA", {}), createdTime: "2024-01-02" },
    ];
    const prints = records.map((one) => readPage(bytesOf({ records: [one] }), table("text")).fingerprint(0));
    expect(new Set(prints).size).toBe(3);
  });

  test.each<[string, (url: string) => unknown]>([
    ["an attachment cell", (url) => [attachment(url)]],
    ["a nested lookup of attachments", (url) => [[attachment(url)], null]],
    ["an attachment whose id comes last", (url) => [{ url, filename: "a.png", id: "attA" }]],
    ["an attachment next to errors", (url) => [{ error: "#ERROR!" }, attachment(url)]],
  ])("ignores a new signed URL in %s", (_, cell) => {
    const before = cell("https://v5.example/1");
    const after = cell("https://v5.example/2");
    expect(fingerprint({ fldA: after }, "attachment")).toBe(fingerprint({ fldA: before }, "attachment"));
  });

  test.each<[string, Record<string, unknown>]>([
    ["id", { id: "attB" }],
    ["size", { size: 8 }],
    ["file name", { filename: "b.png" }],
    ["type", { type: "image/gif" }],
    ["thumbnail's size", { thumbnails: { small: { url: "https://v5.example/s", width: 2, height: 36 } } }],
    ["missing thumbnails", { thumbnails: undefined }],
  ])("includes a changed %s of an attachment", (_, change) => {
    const before = attachment("https://v5.example/1");
    expect(fingerprint({ fldA: [{ ...before, ...change }] }, "attachment")).not.toBe(
      fingerprint({ fldA: [before] }, "attachment"),
    );
  });

  test("includes a changed URL in any cell without attachments", () => {
    const button = (url: string) => ({
      fldA: { label: "Open", url },
      fldB: [attachment("https://v5.example/1")],
    });
    expect(fingerprint(button("https://a.example"), "attachment")).not.toBe(
      fingerprint(button("https://b.example"), "attachment"),
    );
  });

  test("includes another cell that changed with an attachment", () => {
    const fields = (text: string) => ({ fldA: [attachment("https://v5.example/1")], fldB: text });
    expect(fingerprint(fields("x"), "attachment")).not.toBe(fingerprint(fields("y"), "attachment"));
  });
});

describe("attachments", () => {
  test.each<[FieldType, FieldType | undefined, boolean]>([
    ["attachment", undefined, true],
    ["unknown", undefined, true],
    ["lookup", "attachment", true],
    ["lookup", "unknown", true],
    ["lookup", undefined, true],
    ["lookup", "lookup", true],
    ["rollup", "attachment", true],
    ["formula", undefined, true],
    ["lookup", "text", false],
    ["formula", "number", false],
    ["text", undefined, false],
    ["ai_text", undefined, false],
  ])("are searched in a %s field with result %s: %s", (type, result, isLookedFor) => {
    const page = pageOf({ fldA: [attachment("https://v5.example/1")] }, table(type, result));
    expect(page.hasAttachments(0)).toBe(isLookedFor);
  });

  test("are not found in text that looks like one", () => {
    expect(pageOf({ fldA: "att", fldB: '"id":"attA"' }, table("attachment")).hasAttachments(0)).toBe(false);
  });
});

function attachment(url: string) {
  const thumbnails = {
    small: { url: `${url}/small`, width: 36, height: 36 },
    large: { url: `${url}/large` },
  };
  return { id: "attA", width: 1, url, filename: "a.png", size: 7, type: "image/png", thumbnails };
}

function fingerprint(fields: Record<string, unknown>, type: FieldType): bigint {
  return pageOf(fields, table(type)).fingerprint(0);
}

function pageOf(fields: Record<string, unknown>, of: SourceTable) {
  return readPage(bytesOf({ records: [record("recA", fields)] }), of);
}

function record(id: string, fields: Record<string, unknown>) {
  return { id, createdTime: CREATED, fields };
}

function bytesOf(answer: unknown): Buffer {
  return Buffer.from(JSON.stringify(answer));
}

function table(type: FieldType, result?: FieldType): SourceTable {
  const fields = [{ id: "fldA", name: "A", type, sourceType: type, result }];
  return { id: "tblA", name: "Table", primaryFieldId: "fldA", fields };
}

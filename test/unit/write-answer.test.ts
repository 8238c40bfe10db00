import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import fc from "fast-check";
import { expect, test } from "vitest";
import { bodyText, idsInRequest, readWriteAnswer } from "../../core/proxy";

const record = { id: "rec1", createdTime: "2024-01-01T00:00:00.000Z", fields: { Name: "x" } };

test.for<[what: string, answer: unknown, read: unknown]>([
  ["one record", record, { records: [record], gone: [] }],
  ["more keys than are known", { ...record, commentCount: 3 }, { records: [record], gone: [] }],
  [
    "many records",
    { records: [record, { ...record, id: "rec2" }] },
    { records: [record, { ...record, id: "rec2" }], gone: [] },
  ],
  [
    "an upsert",
    { records: [record], createdRecords: ["rec1"], updatedRecords: [] },
    { records: [record], gone: [] },
  ],
  ["one deletion", { id: "rec1", deleted: true }, { records: [], gone: ["rec1"] }],
  ["many deletions", { records: [{ deleted: true, id: "rec1" }] }, { records: [], gone: ["rec1"] }],
  [
    "a record twice",
    { records: [record, { ...record, fields: {} }] },
    { records: [{ ...record, fields: {} }], gone: [] },
  ],
  [
    "a record that is written and deleted",
    { records: [record, { id: "rec1", deleted: true }] },
    { records: [], gone: ["rec1"] },
  ],
  ["no record at all", { records: [] }, { records: [], gone: [] }],
  ["a record without fields", { id: "rec1", createdTime: "2024" }, null],
  ["a deletion that was none", { id: "rec1", deleted: false }, null],
  ["an id that is none", { ...record, id: 7 }, null],
  ["an id that no record has", { ...record, id: "rec'\0" }, null],
  ["one bad record among good ones", { records: [record, null] }, null],
  ["an error", { error: "NOT_FOUND" }, null],
  ["an array", [record], null],
  ["null", null, null],
])("an answer with %s", ([, answer, read]) => {
  expect(readWriteAnswer(JSON.stringify(answer))).toEqual(read);
});

test("reading any text does not fail", () => {
  fc.assert(fc.property(fc.oneof(fc.string(), fc.json()), (text) => void readWriteAnswer(text)));
  fc.assert(fc.property(fc.oneof(fc.string(), fc.json()), (text) => void idsInRequest(text)));
});

test("the ids of a batch update are those that it names", () => {
  expect(idsInRequest('{"records":[{"id":"rec1","fields":{}},{"fields":{}},7]}')).toEqual(["rec1"]);
});

test.for([
  ["gzip", gzipSync],
  ["br", brotliCompressSync],
  ["deflate", deflateSync],
  ["zstd", zstdCompressSync],
] as const)("a body in %s is read", async ([encoding, compress]) => {
  expect(await bodyText(compress(Buffer.from("né")), encoding)).toBe("né");
});

test("a body that contradicts its headers has no text", async () => {
  expect(await bodyText(Buffer.from("plain"), "gzip")).toBeNull();
  expect(await bodyText(Buffer.from("plain"), "compress")).toBeNull();
  expect(await bodyText(Buffer.from([0xff, 0xfe]), null)).toBeNull();
  expect(await bodyText(Buffer.from("plain"), null)).toBe("plain");
});

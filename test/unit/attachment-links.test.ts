/** Our attachment URLs: their signature, what records are mapped to, and what causes a rebuild of a table. */
import fc from "fast-check";
import { expect, test } from "vitest";
import type { CellIssue, TableSpec } from "../../core/replica";
import {
  type AttachmentRef,
  attachmentPrefix,
  type Catalog,
  compileMapper,
  createSigner,
  isSignedBy,
  planSchema,
  type TypeSettings,
} from "../../core/replica";
import { attachmentUrl } from "../../core/replica/attachment-link";
import type { FieldType, SourceField } from "../../core/source";

const signer = createSigner("a key", 1);
const PREFIX = attachmentPrefix("https://console.example/", "bas_1");
const place: AttachmentRef = { tableId: "tbl1", recordId: "rec1", fieldId: "fld1", attachmentId: "attA" };
const signatureOf = (of: AttachmentRef, by = signer) =>
  new URL(attachmentUrl(PREFIX, of, by)).searchParams.get("sig")!;

const anyId = fc.string({ minLength: 1, maxLength: 12, unit: "grapheme" });
const anyPlace = fc.record({ tableId: anyId, recordId: anyId, fieldId: anyId, attachmentId: anyId });

test("a URL is the same each time, and no longer than necessary", () => {
  const url = attachmentUrl(PREFIX, place, signer);
  expect(url).toBe(attachmentUrl(PREFIX, { ...place }, createSigner("a key", 1)));
  expect(url).toMatch(
    /^https:\/\/console\.example\/attachments\/bas_1\/tbl1\/rec1\/fld1\/attA\?sig=[\w-]{22}$/,
  );
});

test("a signature opens its own attachment, and no other, and none with another key", () => {
  fc.assert(
    fc.property(anyPlace, anyPlace, (one, other) => {
      expect(isSignedBy(signer, one, signatureOf(one))).toBe(true);
      expect(isSignedBy(createSigner("another key", 2), one, signatureOf(one))).toBe(false);
      const isSame = JSON.stringify(Object.values(one)) === JSON.stringify(Object.values(other));
      expect(isSignedBy(signer, other, signatureOf(one))).toBe(isSame);
    }),
  );
});

test("a slash in an id cannot change the attachment", () => {
  const apart = { ...place, recordId: "a/b", fieldId: "c" };
  expect(isSignedBy(signer, { ...place, recordId: "a", fieldId: "b/c" }, signatureOf(apart))).toBe(false);
});

test("an invalid signature is rejected", () => {
  const right = signatureOf(place);
  for (const wrong of [
    "",
    "x",
    right.slice(1),
    `${right}A`,
    right.toLowerCase(),
    "é".repeat(22),
    "a".repeat(5000),
  ])
    expect(isSignedBy(signer, place, wrong)).toBe(false);
});

const attachment = (id: string) => ({
  id,
  url: `https://v5.example/${Math.random()}`,
  filename: "a.png",
  thumbnails: { small: { url: `https://v5.example/${Math.random()}` } },
});
const own = (attachmentId: string) => attachmentUrl(PREFIX, { ...place, attachmentId }, signer);
const settings: TypeSettings = {
  linkedRecordsAsText: false,
  lookupsAsText: false,
  attachmentUrls: { prefix: PREFIX, keyVersion: 1 },
};

function specOf(type: FieldType, result?: FieldType, as = settings, live: Catalog = new Map()) {
  const field: SourceField = { id: "fld1", name: "Cell", type, sourceType: type, ...(result && { result }) };
  return planSchema(live, schemaOf(field), as);
}

function schemaOf(field: SourceField, name = "Things") {
  return { tables: [{ id: "tbl1", name, primaryFieldId: "fld1", fields: [field] }] };
}

const live = (spec: TableSpec): Catalog => new Map([["tbl1", { spec, shape: 1 }]]);

function read(type: FieldType, cell: unknown, result?: FieldType) {
  const [spec] = specOf(type, result).rebuild;
  const issues: CellIssue[] = [];
  const record = { id: "rec1", createdTime: "2024-05-01T12:34:56.000Z", fields: { fld1: cell } };
  return [compileMapper(spec!, signer)(record, issues).cell, ...issues.map(({ reason }) => reason)];
}

test.each([
  ["attachment", [attachment("attA"), attachment("attB")], undefined, [own("attA"), own("attB")]],
  ["attachment", [], undefined, []],
  ["attachment", null, undefined, null],
  ["lookup", [attachment("attA"), "text", null], "attachment", [own("attA"), "text", null]],
  ["lookup", [[attachment("attA")], [attachment("attB")]], "attachment", [own("attA"), own("attB")]],
  ["lookup", [{ id: "usr1", email: "a@b.c" }], undefined, ["a@b.c"]],
  [
    "unknown",
    { deep: [attachment("attA")] },
    undefined,
    JSON.stringify({ deep: [{ id: "attA", url: own("attA"), filename: "a.png" }] }),
  ],
  ["attachment", [attachment("att/../é?#\ud800")], undefined, [own("att/../é?#\ufffd")]],
] as const)("a cell of %s with %o is stored with URLs of ours", (type, cell, result, stored) => {
  expect(read(type, cell, result)).toEqual([stored]);
});

test("two reads of a record, whose URLs differ, become the same row", () => {
  const cell = () => [attachment("attA"), attachment("attB")];
  expect(read("attachment", cell())).toEqual(read("attachment", cell()));
});

test("a mapper throws for no cell, and reports unreadable ones as without links", () => {
  const deep = JSON.parse(`${"[".repeat(20_000)}${"]".repeat(20_000)}`) as unknown;
  expect(() => read("unknown", deep)).not.toThrow();
  fc.assert(fc.property(fc.jsonValue(), (cell) => void read("attachment", cell)));
  const [value, reason] = read("attachment", [{ id: "attA" }]);
  expect([value, reason]).toEqual([[null], "an attachment without a URL"]);
});

test("without the key nothing is mapped", () => {
  const [spec] = specOf("attachment").rebuild;
  expect(() => compileMapper(spec!)).toThrow("no key");
});

test("switching our links on or off, or another key, rebuilds only tables that may hold attachments", () => {
  const source = { ...settings, attachmentUrls: undefined };
  const newKey = { ...settings, attachmentUrls: { prefix: PREFIX, keyVersion: 2 } };
  for (const [type, isRebuilt] of [
    ["attachment", true],
    ["lookup", true],
    ["text", false],
    ["links", false],
  ] as const) {
    for (const [before, after] of [
      [source, settings],
      [settings, source],
      [settings, newKey],
    ] as const) {
      const [spec] = specOf(type, undefined, before).rebuild;
      expect(specOf(type, undefined, before, live(spec!))).toEqual({ inPlace: [], rebuild: [], drop: [] });
      const plan = specOf(type, undefined, after, live(spec!));
      expect([type, plan.rebuild.length, plan.inPlace.length]).toEqual([type, isRebuilt ? 1 : 0, 0]);
    }
  }
});

test("a table that is renamed before it is rebuilt keeps the key that its rows were signed with", () => {
  const [spec] = specOf("attachment").rebuild;
  const field: SourceField = { id: "fld1", name: "Cell", type: "attachment", sourceType: "attachment" };
  const newKey = { ...settings, attachmentUrls: { prefix: PREFIX, keyVersion: 2 } };
  const plan = planSchema(live(spec!), schemaOf(field, "Renamed"), newKey);
  expect(plan.inPlace[0]).toMatchObject({
    name: "renamed",
    columns: [{ attachmentUrls: { keyVersion: 1 } }],
  });
  expect(plan.rebuild[0]).toMatchObject({
    name: "renamed",
    columns: [{ attachmentUrls: { keyVersion: 2 } }],
  });
});

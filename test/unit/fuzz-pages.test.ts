/** Lists of records as bytes, complete and corrupted: a page that equals `JSON.parse`, or a coded error. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { type ErrorCode, isBasetideError } from "../../core/errors";
import { MAX_LEVELS, nestsDeeper } from "../../core/nesting";
import type { RecordPage, SourceRecord, SourceTable } from "../../core/source";
import { asRecord, readPage } from "../../core/source/airtable/page";
import { anyJson, anyText, codeOr, damaged, fuzz, nested } from "../support/fuzz";

const table: SourceTable = {
  id: "tbl1",
  name: "Things",
  primaryFieldId: "fld1",
  fields: [{ id: "fld1", name: "Files", type: "attachment", sourceType: "multipleAttachments" }],
};

const recordId = fc.stringMatching(/^rec[0-9A-Za-z]{1,14}$/);
const attachment = fc.record({ id: fc.constantFrom("att1", "att2"), url: anyText, thumbnails: anyJson() });
const record = fc.record({
  id: recordId,
  createdTime: fc.constantFrom("2024-01-02T03:04:05.000Z", "2024-01-02", "0001-01-01T00:00:00Z"),
  fields: fc.dictionary(
    fc.oneof(fc.stringMatching(/^fld[0-9A-Za-z]{1,14}$/), anyText),
    anyJson(attachment, record0()),
    { maxKeys: 4, noNullPrototype: true },
  ),
});
const page = fc.record(
  { records: fc.array(record, { maxLength: 5 }), offset: fc.option(anyText, { nil: undefined }) },
  { requiredKeys: ["records"] },
);

/** A cell that looks like the record around it. */
function record0(): fc.Arbitrary<unknown> {
  return fc.record({
    id: recordId,
    createdTime: fc.constant("2024-01-02T03:04:05.000Z"),
    fields: fc.constant({}),
  });
}

/** JSON in unusual notations: with gaps, escapes, numbers of any length, repeated members. */
const pageText = fc
  .tuple(
    page,
    fc.constantFrom("", " ", "\n\t", "\r\n  "),
    fc.constantFrom("plain", "escaped", "twice", "huge"),
  )
  .map(([value, gap, way]) => {
    const text = JSON.stringify(value, null, gap);
    if (way === "escaped") return text.replace(/[^\x20-\x7e]/g, escaped);
    if (way === "twice") return text.replace('"fields":', `"fields":${gap}{"fld9":1},"fields":`);
    if (way === "huge") return text.replace(/\b\d+(?=[,}\]])/g, `1${"0".repeat(400)}`);
    return text;
  });

function escaped(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

interface Read {
  ids: string[];
  offset: string | undefined;
  records: SourceRecord[];
}

/** All methods of a page. */
function readWhole(bytes: Buffer): Read | ErrorCode {
  return codeOr(() => {
    const read: RecordPage = readPage(bytes, table);
    const indices = Array.from({ length: read.size }, (_, index) => index);
    for (const index of indices) {
      expect(typeof read.fingerprint(index)).toBe("bigint");
      expect(typeof read.hasAttachments(index)).toBe("boolean");
    }
    return {
      ids: indices.map((index) => read.id(index)),
      offset: read.offset,
      records: indices.map((index) => read.record(index)),
    };
  });
}

/** A page that is known is not split before its records are looked at: it must be the same nevertheless. */
function expectSameIfKnown(bytes: Buffer, whole: Read): void {
  const digests: number[] = [];
  const known = readPage(bytes, table, (digest) => digests.push(digest) > 0);
  expect([known.offset, known.firstId, known.digest]).toEqual([whole.offset, whole.ids[0], digests[0]]);
  const indices = Array.from({ length: known.size }, (_, index) => index);
  expect(indices.map((index) => known.id(index))).toEqual(whole.ids);
  expect(indices.map((index) => known.record(index))).toEqual(whole.records);
}

/** The meaning of the bytes, or null if they are no page. */
function parsed(bytes: Buffer): Read | null {
  try {
    const { records, offset } = JSON.parse(new TextDecoder().decode(bytes));
    if (!Array.isArray(records) || (offset ?? "") !== String(offset ?? "")) return null;
    // Records that cannot be read are left out, and of those with the same id the last one counts.
    const readable = records.flatMap((one) => {
      const read = codeOr(() => asRecord(one));
      return typeof read === "string" || nestsDeeper(one) ? [] : [read];
    });
    const last = new Map(readable.map((one) => [one.id, one]));
    const read = [...last.values()];
    return { ids: read.map(({ id }) => id), offset: offset || undefined, records: read };
  } catch (error) {
    if (!(error instanceof SyntaxError || error instanceof TypeError || isBasetideError(error))) throw error;
    return null;
  }
}

function expectRight(bytes: Buffer): void {
  const read = readWhole(bytes);
  if (typeof read === "string") expect([read, parsed(bytes)]).toEqual(["source_bad_answer", null]);
  else {
    expect(read).toEqual(parsed(bytes));
    expectSameIfKnown(bytes, read);
  }
}

fuzz(
  "a page equals JSON.parse, in any form and with any cells",
  3000,
  fc.property(pageText, (text) => expectRight(Buffer.from(text))),
);

fuzz(
  "JSON that is not a valid page is a bad answer, or a page of its valid records",
  3000,
  fc.property(fc.oneof(anyJson(page, record), damaged(page)), (value) =>
    expectRight(Buffer.from(JSON.stringify(value) ?? "")),
  ),
);

fuzz(
  "corrupted bytes are a bad answer, or a page with what they still contain",
  3000,
  fc.property(
    pageText,
    fc.nat(),
    fc.nat({ max: 4 }),
    fc.oneof(
      fc.uint8Array({ maxLength: 3 }),
      fc.constantFrom(Buffer.from([0xff]), Buffer.from([0xed, 0xa0, 0x80])),
    ),
    (text, at, removed, inserted) => {
      const whole = Buffer.from(text);
      const from = at % (whole.length + 1);
      expectRight(Buffer.concat([whole.subarray(0, from), inserted, whole.subarray(from + removed)]));
    },
  ),
);

test("a page that ends at any byte before the last is a bad answer", () => {
  const cell = ["é😀", { error: "#ERROR!" }, '}},{"id":"rec'];
  const [first, second] = fc.sample(record, { numRuns: 2, seed: 1 });
  for (const fields of [{}, { fld1: cell }, { fld1: cell[2], fld2: cell }]) {
    const records = [
      { ...first, fields },
      { ...second, fields },
    ];
    for (const text of [
      JSON.stringify({ records, offset: "itr/rec" }),
      JSON.stringify({ records }, null, 1),
    ]) {
      const bytes = Buffer.from(text);
      for (let length = 0; length < bytes.length; length++) {
        expect(readWhole(bytes.subarray(0, length)), `cut at ${length}`).toBe("source_bad_answer");
      }
      expect(readWhole(bytes)).toEqual(parsed(bytes));
    }
  }
});

test("a page with any nesting is a bad answer, or a page", () => {
  const time = '"createdTime":"2024-01-02T03:04:05.000Z"';
  // The last is deeper than the stack allows; rejecting a deeper one takes seconds.
  for (const depth of [100, 1000, 5000, 50_000]) {
    for (const cell of [
      "[".repeat(depth) + "]".repeat(depth),
      `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`,
    ]) {
      for (const gap of ["", " "]) {
        const text = `{"records":[${gap}{"id":"recA",${time},"fields":{"fld1":["att",${cell}]}}]}`;
        const read = readWhole(Buffer.from(text));
        if (typeof read === "string") expect(read).toBe("source_bad_answer");
        // A record that nests too deeply is left out.
        else expect(read.ids).toEqual(depth > MAX_LEVELS - 10 && read.ids.length === 0 ? [] : ["recA"]);
      }
    }
  }
  expect(JSON.stringify(nested(3))).toBe('{"a":[{"a":[]}]}');
});

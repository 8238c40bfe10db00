/** Answers with attachments: the digest ignores their signed URLs, and nothing else. */
import fc from "fast-check";
import { expect, test } from "vitest";
import type { SourceTable } from "../../core/source";
import { readPage } from "../../core/source/airtable/page";
import { validUntil } from "../../core/sync/state";
import { recordFingerprint, URL_REFRESH_MS } from "../../core/sync/state/record-fingerprint";

const table: SourceTable = {
  id: "tbl1",
  name: "Things",
  primaryFieldId: "fld1",
  fields: [{ id: "fld1", name: "Files", type: "attachment", sourceType: "multipleAttachments" }],
};

/** Stands for a signed URL. */
const URL_HOLE = "https://signed.example/HOLE";
const text = fc.oneof(
  fc.constantFrom("", "a", '"url":"x"', '{"id":"att1","url":"https://x"}', "\\", '\\"', "é", "HOLE"),
  fc.string({ maxLength: 6 }),
);
const picture = fc.record(
  { url: fc.constant(URL_HOLE), width: fc.nat(9), height: fc.nat(9) },
  { requiredKeys: ["url"], noNullPrototype: true },
);
const thumbnails = fc.record(
  { small: picture, large: picture, full: picture },
  { requiredKeys: ["small"], noNullPrototype: true },
);
const attachment = fc
  .record(
    {
      id: fc.constantFrom("att1", "att2"),
      width: fc.nat(9),
      url: fc.constant(URL_HOLE),
      filename: text,
      size: fc.nat(9),
      type: fc.constant("image/png"),
      thumbnails,
    },
    { requiredKeys: ["id", "url"], noNullPrototype: true },
  )
  .map(({ id, ...rest }) => ({ id, ...rest }));
/** Objects that look like attachments. */
const other = fc.oneof(
  fc.record({ id: fc.constantFrom("att1", "usr1"), url: fc.constantFrom(URL_HOLE, 1, null) }),
  fc.record({ url: fc.constant(URL_HOLE), id: fc.constant("att1") }),
  fc.record({ label: text, url: fc.constant(URL_HOLE) }),
  fc.record({
    id: fc.constant("att1"),
    thumbnails: fc.record({ small: fc.record({ url: fc.constant(URL_HOLE) }) }),
  }),
  fc.record({ id: fc.constant("att1"), url: fc.constant(URL_HOLE), more: fc.oneof(text, fc.constant([{}])) }),
);
const cell = fc.oneof(
  { weight: 4, arbitrary: fc.array(attachment, { maxLength: 2 }) },
  { weight: 1, arbitrary: fc.array(other, { maxLength: 2 }) },
  { weight: 2, arbitrary: text },
);
const records = fc.array(fc.dictionary(fc.constantFrom("fld1", "fld2"), cell, { noNullPrototype: true }), {
  minLength: 1,
  maxLength: 3,
});

type Fields = Record<string, unknown>;

function answerOf(all: Fields[]): string {
  const createdTime = "2024-01-02T03:04:05.000Z";
  return JSON.stringify({
    records: all.map((fields, index) => ({ id: `rec${index}`, createdTime, fields })),
  });
}

/** Signs every URL again. */
const signed = (answer: string, salt: string) =>
  Buffer.from(answer.replaceAll(URL_HOLE, () => `https://signed.example/${salt}`));

function read(bytes: Buffer) {
  const page = readPage(bytes, table, () => false);
  const indices = Array.from({ length: page.size }, (_, index) => index);
  const content = indices.map((index) => [
    page.id(index),
    page.fingerprint(index),
    page.hasAttachments(index),
  ]);
  return { digest: page.digest, content };
}

test("answers with the same digest have the same fingerprints", () => {
  let equal = 0;
  fc.assert(
    fc.property(records, text, fc.nat(), fc.nat(6), text, (all, salt, at, removed, inserted) => {
      const answer = answerOf(all);
      const first = read(signed(answer, "1"));
      // Other URLs, and texts that end a URL early.
      const again = read(signed(answer, JSON.stringify(salt).slice(1, -1)));
      // Any other difference.
      const from = at % answer.length;
      const edited =
        answer.slice(0, from) + JSON.stringify(inserted).slice(1, -1) + answer.slice(from + removed);
      const others = [again];
      try {
        others.push(read(signed(edited, "2")));
      } catch {
        // It is no answer any more.
      }
      for (const second of others) {
        if (first.digest === undefined || second.digest !== first.digest) continue;
        expect(second.content).toEqual(first.content);
        equal++;
      }
    }),
    { numRuns: 2000 },
  );
  expect(equal).toBeGreaterThan(500);
});

test("signed URLs do not change the digest of usual attachments", () => {
  fc.assert(
    fc.property(
      fc.array(fc.array(attachment, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 3 }),
      (all) => {
        const answer = answerOf(all.map((fld1) => ({ fld1, fld2: 'a "quoted" text' })));
        const [first, second] = [read(signed(answer, "1")), read(signed(answer, "22"))];
        expect(first.digest).toBeTypeOf("number");
        expect(second).toEqual(first);
      },
    ),
  );
});

test("a page is valid until the first of its records must be refreshed, and not a moment longer", () => {
  const page = readPage(
    signed(
      answerOf([
        { fld1: [{ id: "att1", url: URL_HOLE }] },
        { fld1: "x" },
        { fld1: [{ id: "att2", url: URL_HOLE }] },
      ]),
      "1",
    ),
    table,
  );
  fc.assert(
    fc.property(fc.double({ min: 0, max: 10 * URL_REFRESH_MS, noNaN: true }), (now) => {
      const prints = (at: number) => [0, 1, 2].map((index) => recordFingerprint(page, index, at));
      const until = validUntil({ hasLastingUrls: false }, page, now);
      expect(until).toBeGreaterThan(now);
      expect(prints((now + until) / 2)).toEqual(prints(now));
      expect(prints(until)).not.toEqual(prints(now));
      expect(validUntil({ hasLastingUrls: true }, page, now)).toBe(Infinity);
    }),
  );
});

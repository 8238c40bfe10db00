/** Pages that are recognized before they are decompressed: the same as if they had been read. */
import fc from "fast-check";
import { expect, test } from "vitest";
import type { LastPage, RecordPage, SourceTable } from "../../core/source";
import { readPage, readReceivedPage } from "../../core/source/airtable/page";
import { ReceivedBody } from "../../core/source/airtable/received-body";

const table: SourceTable = {
  id: "tbl1",
  name: "Things",
  primaryFieldId: "fld1",
  fields: [{ id: "fld1", name: "Files", type: "attachment", sourceType: "multipleAttachments" }],
};

/** Answers with few different contents, so that they repeat. */
const answers = fc.array(
  fc.record({
    ids: fc.constantFrom<string[]>(["recA", "recB"], ["recA", "recB"], ["recA"], []),
    cell: fc.constantFrom("a", "a", '"att'),
    offset: fc.constantFrom(undefined, undefined, undefined, "itr1/rec1"),
    encoding: fc.constantFrom("gzip", "gzip", "x-gzip", "identity"),
    isKnown: fc.constantFrom(true, true, false),
  }),
  { maxLength: 12, size: "max" },
);

function bytesOf({ ids, cell, offset }: { ids: string[]; cell: string; offset: string | undefined }): Buffer {
  const createdTime = "2024-01-02T03:04:05.000Z";
  const records = ids.map((id) => ({
    id,
    createdTime,
    fields: { fld1: cell.repeat(id === "recA" ? 1 : 2) },
  }));
  return Buffer.from(JSON.stringify({ records, offset }));
}

function contentOf(page: RecordPage) {
  const indices = Array.from({ length: page.size }, (_, index) => index);
  return indices.map((index) => ({
    id: page.id(index),
    record: page.record(index),
    fingerprint: page.fingerprint(index),
    hasAttachments: page.hasAttachments(index),
  }));
}

test("a page is the same, whether it is read, known, or recognized by its compressed bytes", async () => {
  let recognized = 0;
  await fc.assert(
    fc.asyncProperty(answers, async (all) => {
      let last: LastPage | undefined;
      for (const { encoding, isKnown, ...answer } of all) {
        const plain = bytesOf(answer);
        const read = readPage(plain, table, () => false);
        const body = encoding === "identity" ? plain : Buffer.from(Bun.gzipSync(Buffer.from(plain)));
        const received = new ReceivedBody(body, encoding);
        let isText = false;
        const text = received.briefText.bind(received);
        received.briefText = () => {
          isText = true;
          return text();
        };
        const page = await readReceivedPage(
          received,
          table,
          (digest) => isKnown && digest === read.digest,
          last,
        );
        expect([page.offset, page.firstId, page.digest]).toEqual([read.offset, read.firstId, read.digest]);
        expect(page.received !== undefined).toBe(answer.offset === undefined);
        expect(contentOf(page)).toEqual(contentOf(read));
        if (!isText) {
          expect([isKnown, answer.offset]).toEqual([true, undefined]);
          recognized++;
        }
        const { received: hash, digest, firstId } = page;
        if (hash !== undefined && digest !== undefined) last = { received: hash, digest, firstId };
      }
    }),
    { numRuns: 300 },
  );
  expect(recognized).toBeGreaterThan(50);
});

test("the text of one body is kept when another is decompressed in the same memory", async () => {
  const texts = ["one text ", "another "].map((text) => Buffer.from(text.repeat(1000)));
  const [one, other] = texts.map((text) => new ReceivedBody(Buffer.from(Bun.gzipSync(text)), "gzip"));
  const kept = one!.keep(one!.briefText()!);
  expect(other!.briefText()).toEqual(texts[1]);
  expect([kept, one!.textNow(), await one!.text()]).toEqual([texts[0], texts[0], texts[0]]);
  expect([other!.textNow(), await other!.text()]).toEqual([texts[1], texts[1]]);
});

test("a body that is too large to be decompressed at once has its text all the same", async () => {
  const plain = Buffer.from(crypto.getRandomValues(new Uint8Array(64_000)));
  const bodies = [0, 1].map(() => new ReceivedBody(Buffer.from(Bun.gzipSync(plain)), "gzip"));
  expect(bodies[0]!.briefText()).toBeUndefined();
  expect([await bodies[0]!.text(), bodies[1]!.textNow()]).toEqual([plain, plain]);
});

test.each([
  ["gzip", Buffer.from("not gzip, and long enough")],
  ["br", Buffer.from("anything")],
])("a body in %s that cannot be decompressed is a bad answer", async (encoding, bytes) => {
  const received = new ReceivedBody(bytes, encoding);
  await expect(received.text()).rejects.toMatchObject({ code: "source_bad_answer" });
  expect(() => received.textNow()).toThrow(expect.objectContaining({ code: "source_bad_answer" }));
});

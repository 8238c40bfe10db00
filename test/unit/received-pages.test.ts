/** Pages that are recognized before they are decompressed: they are the same as if they had been read. */
import fc from "fast-check";
import { expect, test } from "vitest";
import type { RecordPage, RememberedPage, SourceTable } from "../../core/source";
import { readPage, readReceivedPage } from "../../core/source/airtable/page";
import { ReceivedBody } from "../../core/source/airtable/received-body";

const table: SourceTable = {
  id: "tbl1",
  name: "Things",
  primaryFieldId: "fld1",
  fields: [{ id: "fld1", name: "Files", type: "attachment", sourceType: "multipleAttachments" }],
};

/** Answers with few different contents, so that they repeat, in lists of two lengths of id. */
const answers = fc.array(
  fc.record({
    ids: fc.constantFrom<string[]>(["recA", "recB"], ["recA", "recB"], ["recA", "recB"], ["recA"], []),
    cell: fc.constantFrom("a", "a", "a", "b", '"att'),
    list: fc.constantFrom("itr1", "itr2", "itrLong"),
    place: fc.constantFrom(undefined, undefined, undefined, "rec1", "rec1", "rec1", "rec2", ""),
    requested: fc.constantFrom("of the list", "of the list", "of the list", "of another", "none"),
    encoding: fc.constantFrom("gzip", "gzip", "gzip", "gzip", "x-gzip", "identity"),
    isKnown: fc.constantFrom(true, true, true, false),
  }),
  { minLength: 16, maxLength: 32, size: "max" },
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

/** Reads an answer, and tells whether it was decompressed. */
async function read(body: Buffer, encoding: string, list: Parameters<typeof readReceivedPage>[2]) {
  const received = new ReceivedBody(body, encoding);
  let isRecognized = true;
  const text = received.briefText.bind(received);
  received.briefText = () => {
    isRecognized = false;
    return text();
  };
  return { page: await readReceivedPage(received, table, list), isRecognized };
}

const gzipped = (plain: Buffer) => Buffer.from(Bun.gzipSync(Buffer.from(plain)));

test("a page is the same, whether it is read, known, or recognized by the checksum of its answer", async () => {
  const recognized = { last: 0, others: 0 };
  await fc.assert(
    fc.asyncProperty(answers, async (all) => {
      let before: RememberedPage | undefined;
      const seen = new Set<number>();
      for (const { encoding, isKnown, list, place, ...answer } of all) {
        const offset = place === undefined ? undefined : `${list}/${place}`;
        const requested = { "of the list": `${list}/rec0`, "of another": "itr3/rec0", none: undefined }[
          answer.requested
        ];
        const plain = bytesOf({ ...answer, offset });
        const whole = readPage(plain, table, () => false);
        const { page, isRecognized } = await read(
          encoding === "identity" ? plain : gzipped(plain),
          encoding,
          { isKnown: (digest) => isKnown && seen.has(digest), before, requested },
        );
        expect([page.offset, page.firstId, page.digest]).toEqual([whole.offset, whole.firstId, whole.digest]);
        expect(page.remembered !== undefined).toBe(encoding !== "identity");
        expect(contentOf(page)).toEqual(contentOf(whole));
        if (isRecognized) recognized[offset === undefined ? "last" : "others"]++;
        before = page.remembered;
        seen.add(whole.digest!);
      }
    }),
    { numRuns: 300 },
  );
  expect(Math.min(recognized.last, recognized.others)).toBeGreaterThan(20);
});

test("a page is recognized in each list, and only where it was and while its checksum is trusted", async () => {
  const page = { ids: ["recA", "recB"], cell: "a" };
  const answer = (offset: string | undefined, changes: Partial<typeof page> = {}) =>
    gzipped(bytesOf({ ...page, ...changes, offset }));
  const isKnown = () => true;
  const first = await read(answer("itr1/recB"), "gzip", { isKnown, before: undefined, requested: undefined });
  const before = first.page.remembered!;
  const recognizes = async (body: Buffer, requested: string | undefined, remembered = before) =>
    (await read(body, "gzip", { isKnown, before: remembered, requested })).isRecognized;

  expect(await recognizes(answer("itr2/recB"), "itr2/rec0")).toBe(true);
  // Only the first page of a list tells the list's id.
  expect(await recognizes(answer("itr2/recB"), undefined)).toBe(false);
  expect(await recognizes(answer("itr2/recB"), "itr1/rec0")).toBe(false);
  expect(await recognizes(answer("itr2/recC"), "itr2/rec0")).toBe(false);
  expect(await recognizes(answer(undefined), "itr2/rec0")).toBe(false);
  expect(await recognizes(answer("itr2/recB", { cell: "b" }), "itr2/rec0")).toBe(false);
  expect(await recognizes(answer("itr2/recB", { ids: ["recB", "recA"] }), "itr2/rec0")).toBe(false);
  const whole = bytesOf({ ...page, offset: "itr2/recB" });
  const members = Buffer.concat([whole.subarray(0, 20), whole.subarray(20)].map(gzipped));
  expect(
    (await read(members, "gzip", { isKnown, before: undefined, requested: undefined })).page.remembered,
  ).toBe(undefined);

  const trustedMs = before.until - performance.now();
  expect(trustedMs).toBeGreaterThan(595_000);
  expect(trustedMs).toBeLessThanOrEqual(900_000);
  const late = { ...before, until: performance.now() };
  expect(await recognizes(answer("itr2/recB"), "itr2/rec0", late)).toBe(false);
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

/** The list of a table: each page can be read while the caller has it, and its memory is freed afterwards. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { createLogger } from "../../core/log";
import type { RecordPage, SourceConnection, SourceTable } from "../../core/source";
import { readReceivedPage } from "../../core/source/airtable/page";
import { ReceivedBody } from "../../core/source/airtable/received-body";
import { type Reader, readTable } from "../../core/sync/engine/reader";
import { ReadVersionSource } from "../../core/sync/state";
import { unlimitedLimiter } from "../support/unlimited-limiter";

const table: SourceTable = { id: "tbl1", name: "Things", primaryFieldId: "fld1", fields: [] };
const never = new AbortController().signal;

/** Cells of this size have a body of their own, even if compressed. */
const CELL_BYTES = 20_000;

interface Listed {
  ids: string[];
  isKnown: boolean;
}

/** A list whose pages have these records. */
function readerOf(pages: Listed[]) {
  const cells = new Map<string, string>();
  const bodies: ReceivedBody[] = [];
  const connection = {
    async listPage(_base: string, _table: SourceTable, { offset }: { offset?: string | undefined }) {
      const nth = Number(offset ?? 0);
      const records = pages[nth]!.ids.map((id) => {
        const text = Buffer.from(crypto.getRandomValues(new Uint8Array(CELL_BYTES))).toString("hex");
        cells.set(id, text);
        return { id, createdTime: "2024-01-02T03:04:05.000Z", fields: { fld1: text } };
      });
      const next = nth + 1 < pages.length ? String(nth + 1) : undefined;
      const plain = Buffer.from(JSON.stringify({ records, offset: next }));
      const body = new ReceivedBody(Buffer.from(Bun.gzipSync(plain)), "gzip");
      bodies.push(body);
      const isKnown = () => pages[nth]!.isKnown;
      return await readReceivedPage(body, table, { isKnown, before: undefined, requested: offset });
    },
  } as unknown as SourceConnection;
  const reader: Reader = {
    connection,
    sourceBaseId: "app1",
    limiter: unlimitedLimiter(),
    quotaKey: "airtable:app1",
    share: () => 3,
    readVersions: new ReadVersionSource(async () => 1),
    log: createLogger("fatal", "test"),
    stop: never,
    kill: never,
    counts: { requests: 0, waitMs: 0 },
  };
  return { reader, cells, bodies };
}

const contentOf = (page: RecordPage) =>
  Array.from({ length: page.size }, (_, index) => page.record(index).fields.fld1);

test("a page has its records until the next one is asked for, which frees them at once", async () => {
  const listed = fc.record({ count: fc.nat({ max: 2 }), isKnown: fc.boolean() });
  await fc.assert(
    fc.asyncProperty(fc.array(listed, { minLength: 1, maxLength: 6 }), async (counts) => {
      const pages = counts.map(({ count, isKnown }, nth) => ({
        ids: Array.from({ length: count }, (_, index) => `rec${nth}x${index}`),
        isKnown,
      }));
      const { reader, cells, bodies } = readerOf(pages);
      const list = readTable(reader, table)[Symbol.asyncIterator]();
      let answer = list.next();
      for (const [nth, { ids }] of pages.entries()) {
        const { page } = (await answer).value!;
        expect(contentOf(page)).toEqual(ids.map((id) => cells.get(id)));
        answer = list.next();
        // A body without records is too small to be freed on its own.
        expect(bodies[nth]!.bytes.length === 0).toBe(ids.length > 0);
      }
      expect((await answer).done).toBe(true);
    }),
    { numRuns: 100 },
  );
});

test("a list that goes in circles ends with an error, after a few rounds at most", async () => {
  const shape = fc.record({ lead: fc.nat({ max: 20 }), round: fc.integer({ min: 1, max: 20 }) });
  await fc.assert(
    fc.asyncProperty(shape, async ({ lead, round }) => {
      const { reader } = readerOf([]);
      let asked = 0;
      const listPage: SourceConnection["listPage"] = async (_base, _table, { offset }) => {
        asked++;
        const nth = Number(offset ?? 0);
        const next = nth + 1 < lead + round ? nth + 1 : lead;
        const plain = Buffer.from(JSON.stringify({ records: [], offset: String(next) }));
        return await readReceivedPage(new ReceivedBody(plain, "identity"), table);
      };
      const connection = { listPage } as SourceConnection;
      const readAll = async () => {
        for await (const _ of readTable({ ...reader, connection }, table));
      };
      await expect(readAll()).rejects.toMatchObject({ code: "source_bad_answer" });
      expect(asked).toBeLessThanOrEqual(2 * (lead + round) + round + 2);
    }),
    { numRuns: 100 },
  );
});

/** The endpoint of SQL writes: its messages, its authentication, and the cells that it writes. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { cellsOf, converters } from "../../apps/proxy/sql-writes/cells";
import {
  MAX_QUERY_BYTES,
  MessageReader,
  ProtocolError,
  queryText,
} from "../../apps/proxy/sql-writes/messages";
import { beginScram } from "../../apps/proxy/sql-writes/scram";
import { WRITABLE_TYPES } from "../../core/replica/writable-types";
import { fuzzRuns } from "../support/fuzz";

function startup(parameters: Record<string, string>): Buffer {
  const text = Object.entries(parameters)
    .flat()
    .map((part) => `${part}\0`)
    .join("");
  const body = Buffer.from(`${text}\0`);
  const head = Buffer.alloc(8);
  head.writeUInt32BE(body.length + 8, 0);
  head.writeUInt32BE(3 << 16, 4);
  return Buffer.concat([head, body]);
}

function query(text: string): Buffer {
  const body = Buffer.from(`${text}\0`);
  const head = Buffer.from("Q\0\0\0\0");
  head.writeUInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
}

/** Reads all complete messages. */
function readAll(reader: MessageReader) {
  const found = [];
  for (let next = reader.next(); next; next = reader.next()) found.push(next);
  return found;
}

test("messages are the same however they are divided into chunks", () => {
  fc.assert(
    fc.property(
      fc.array(fc.string(), { maxLength: 5 }),
      fc.array(fc.nat(40), { maxLength: 30 }),
      (texts, cuts) => {
        const bytes = Buffer.concat([startup({ user: "bas_x", database: "writes" }), ...texts.map(query)]);
        const reader = new MessageReader();
        reader.isKnown = true;
        const read = [];
        let at = 0;
        for (const cut of [...cuts, bytes.length]) {
          reader.push(bytes.subarray(at, at + cut));
          at = Math.min(bytes.length, at + cut);
          read.push(...readAll(reader));
        }
        expect(read[0]).toEqual({
          kind: "startup",
          parameters: new Map([
            ["user", "bas_x"],
            ["database", "writes"],
          ]),
        });
        expect(read.slice(1).map((one) => (one.kind === "typed" ? queryText(one.body) : one.kind))).toEqual(
          texts.map((text) => Buffer.from(text).toString()),
        );
      },
    ),
    { numRuns: 100 * fuzzRuns },
  );
});

test("of any bytes, the reader keeps no more than a request, and complains in one way", () => {
  fc.assert(
    fc.property(
      fc.array(fc.uint8Array({ maxLength: 200 }), { maxLength: 10 }),
      fc.boolean(),
      (chunks, isKnown) => {
        const reader = new MessageReader();
        reader.isKnown = isKnown;
        try {
          for (const chunk of chunks) {
            reader.push(Buffer.from(chunk));
            readAll(reader);
          }
        } catch (error) {
          expect(error).toBeInstanceOf(ProtocolError);
        }
      },
    ),
    { numRuns: 300 * fuzzRuns },
  );
  const reader = new MessageReader();
  reader.isKnown = true;
  reader.push(startup({ user: "x" }));
  reader.next();
  const long = Buffer.from("Q\0\0\0\0");
  long.writeUInt32BE(MAX_QUERY_BYTES + 1, 1);
  reader.push(long);
  expect(() => reader.next()).toThrow(ProtocolError);
});

test("of any texts, no one is authenticated without the secret", () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), fc.string({ maxLength: 60 }), (first, second, proof) => {
      beginScram(first, "secret")?.finish(second);
      const begun = beginScram(`n,,n=,r=abc`, "secret")!;
      const [nonce] = begun.challenge.slice(2).split(",");
      expect(begun.finish(`c=biws,r=${nonce},p=${Buffer.from(proof).toString("base64")}`)).toBeUndefined();
    }),
    { numRuns: 20 * fuzzRuns },
  );
});

test("each type that can be written has a conversion, and no other", () => {
  expect(Object.keys(converters).sort()).toEqual([...WRITABLE_TYPES].sort());
  const types = {
    a: "date_time",
    b: "duration",
    c: "links",
    d: "collaborator",
    e: "barcode",
    f: "attachment",
  };
  expect(
    cellsOf(
      { a: "2026-01-02T03:04:05", b: "-1:02:03.5", c: "rec1", d: ["a@b.c"], e: 12, f: ["https://x/y"] },
      types,
      {},
    ),
  ).toEqual({
    a: "2026-01-02T03:04:05Z",
    b: -3723.5,
    c: ["rec1"],
    d: { email: "a@b.c" },
    e: { text: "12" },
    f: [{ url: "https://x/y" }],
  });
  expect(() => cellsOf({ b: "soon" }, types, {})).toThrow("not a duration");
  expect(() => cellsOf({ f: ["https://x/z"] }, types, { f: ["https://x/y"] })).toThrow("only be emptied");
});

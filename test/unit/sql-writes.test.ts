/** The endpoint of SQL writes: its messages, its authentication, and the cells that it writes. */
import { readFileSync } from "node:fs";
import fc from "fast-check";
import { expect, test } from "vitest";
import { cellsOf, converters } from "../../apps/proxy/sql-writes/cells";
import { MessageReader, ProtocolError, queryText } from "../../apps/proxy/sql-writes/messages";
import { beginScram } from "../../apps/proxy/sql-writes/scram";
import { Strangers } from "../../apps/proxy/sql-writes/strangers";
import { staleFiles, withFiles } from "../../core/control/change-sets";
import { MAX_WRITE_BYTES } from "../../core/replica";
import { WRITABLE_TYPES } from "../../core/replica/writable-types";
import { sqlRefusalOf } from "../../core/source/airtable/sqlstates";
import { fuzzRuns } from "../support/fuzz";
import { repoRoot } from "../support/source-files";

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
  long.writeUInt32BE(MAX_WRITE_BYTES + 1, 1);
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
    ),
  ).toEqual({
    a: "2026-01-02T03:04:05Z",
    b: -3723.5,
    c: ["rec1"],
    d: { email: "a@b.c" },
    e: { text: "12" },
    f: [{ url: "https://x/y" }],
  });
  expect(() => cellsOf({ b: "soon" }, types)).toThrow("not a duration");
});

test("a value that begins with all files that SQL shows adds to them; another one chooses from them", () => {
  const files = (had: string[] | null | undefined, ...urls: string[]) =>
    cellsOf(
      { f: urls },
      { f: "attachment" },
      { had: had === undefined ? undefined : { f: had }, filenames: { n: "n.txt" } },
    ).f;
  const [named, plain, all] = [{ url: "n", filename: "n.txt" }, { url: "p" }, { kept: "all" }];
  expect(files(["y", "z"], "y", "z", "n")).toEqual([all, named]);
  expect(files(null, "n", "p")).toEqual([all, named, plain]);
  expect(files(["y", "z"], "z", "n")).toEqual([{ kept: 1, of: 2 }, named]);
  expect(files(["y"], "p", "y")).toEqual([plain, { kept: 0, of: 1 }]);
  expect(files(["y"], "p")).toEqual([plain]);
  expect(files(undefined, "n")).toEqual([named]);
});

test("cells keep the files that the record has when they are sent, by the source's ids", () => {
  const [one, two] = [{ id: "att1" }, { id: "att2" }];
  const has = {
    f: [
      { ...one, url: "1" },
      { ...two, url: "2" },
    ],
  };
  const added = { f: [{ kept: "all" }, { url: "x" }], name: "n" };
  expect(withFiles(added, has)).toEqual({ f: [one, two, { url: "x" }], name: "n" });
  expect(withFiles(added, {})).toEqual({ f: [{ url: "x" }], name: "n" });
  expect(staleFiles(added, {})).toEqual([]);
  const chosen = (of: number) => ({ f: [{ kept: 1, of }, { url: "x" }] });
  expect(withFiles(chosen(2), has)).toEqual({ f: [two, { url: "x" }] });
  expect([staleFiles(chosen(2), has), staleFiles(chosen(1), has), staleFiles(chosen(1), {})]).toEqual([
    [],
    ["f"],
    ["f"],
  ]);
});

test("every type of error with which the simulated source refuses a write has an SQLSTATE", () => {
  const files = ["errors", "writes", "cells", "attachments", "upsert", "request", "api"];
  const texts = files.map((name) => readFileSync(`${repoRoot}/apps/sandbox/${name}.ts`, "utf8"));
  const types = texts.flatMap((text) =>
    [...text.matchAll(/apiError\(\s*4\d\d,\s*"([A-Z_]+)"/g)].map(([, type]) => type!),
  );
  expect(types.length).toBeGreaterThan(15);
  const ofReads = new Set(["LIST_RECORDS_ITERATOR_NOT_AVAILABLE"]);
  expect(types.filter((type) => !ofReads.has(type) && !sqlRefusalOf(type, ""))).toEqual([]);
});

test("a stranger has few connections, and few bases that do not exist are looked up for it", () => {
  const strangers = new Strangers();
  const places = Array.from({ length: 600 }, () => strangers.enter("192.0.2.1", () => {}));
  const taken = places.filter((place) => place !== undefined);
  expect(taken).toHaveLength(200);
  expect(strangers.enter("192.0.2.2", () => {})).toBeDefined();
  taken[0]![Symbol.dispose]();
  expect(strangers.enter("192.0.2.1", () => {})).toBeDefined();

  strangers.authenticated("bas_1");
  for (let nth = 0; nth < 20; nth++) {
    expect(strangers.mayLookUp("192.0.2.1", `bas_no${nth}`)).toBe(true);
    strangers.countUnknown("192.0.2.1");
  }
  expect(strangers.mayLookUp("192.0.2.1", "bas_2")).toBe(false);
  expect(strangers.mayLookUp("192.0.2.1", "bas_1")).toBe(true);
  expect(strangers.mayLookUp("192.0.2.2", "bas_2")).toBe(true);
  for (let nth = 0; nth < 20; nth++) strangers.countWrong("192.0.2.1", "bas_1");
  expect(strangers.mayLookUp("192.0.2.1", "bas_1")).toBe(false);
  expect(strangers.mayLookUp("192.0.2.2", "bas_1")).toBe(true);
});

test("clients of many networks that hold all places give way to one of another network", () => {
  const strangers = new Strangers();
  const gone: string[] = [];
  for (const network of ["192.0.2.1", "198.51.100.1", "203.0.113.1"])
    for (let nth = 0; nth < 200; nth++) strangers.enter(network, () => gone.push(network));
  const before = gone.length;
  expect(strangers.enter("10.0.0.1", () => {})).toBeDefined();
  expect(gone.length).toBe(before + 1);
});

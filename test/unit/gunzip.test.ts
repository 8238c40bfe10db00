/** Decompressing into memory that is used again: the same as zlib does, for any body. */
import { gunzipSync } from "node:zlib";
import fc from "fast-check";
import { expect, test } from "vitest";
import { gunzipAtOnce, gunzipBriefly } from "../../core/http";

const MIB = 2 ** 20;

/** Texts that compress well, and texts that do not. */
const texts = fc.oneof(
  fc.string({ maxLength: 300 }).map((text) => Buffer.from(text.repeat(1 + (text.length % 50)))),
  fc.uint8Array({ maxLength: 2000 }).map((bytes) => Buffer.from(bytes)),
);

/** A member of gzip as it is, without its last bytes, followed by another one, or by other bytes. */
function bodyOf(member: Buffer, form: string): Buffer {
  if (form === "cut") return member.subarray(0, -9);
  if (form === "twice") return Buffer.concat([member, gzipped(Buffer.from("another text"))]);
  return form === "more" ? Buffer.concat([member, Buffer.from("more")]) : member;
}

const gzipped = (text: Buffer) => Buffer.from(Bun.gzipSync(Buffer.from(text)));

test("a body has the same text as with zlib, or none", () => {
  let read = 0;
  const damage = fc.option(fc.record({ at: fc.nat(), byte: fc.integer({ min: 1, max: 255 }) }), { freq: 1 });
  fc.assert(
    fc.property(texts, fc.constantFrom("whole", "cut", "twice", "more"), damage, (text, form, damaged) => {
      const bytes = bodyOf(gzipped(text), form);
      if (damaged) bytes[damaged.at % bytes.length]! ^= damaged.byte;
      const found = gunzipBriefly(bytes);
      if (found === undefined) expect(form === "whole" && !damaged).toBe(false);
      else {
        read++;
        expect(found).toEqual(gunzipSync(bytes));
      }
    }),
    { numRuns: 2000 },
  );
  expect(read).toBeGreaterThan(200);
});

test("an invalid body does not affect the next one", () => {
  const text = Buffer.from("some text ".repeat(100));
  expect(gunzipBriefly(Buffer.from("not gzip, and long enough"))).toBeUndefined();
  expect(gunzipBriefly(gzipped(text))).toEqual(text);
});

test("a text of its own is not overwritten", () => {
  const [one, other] = ["one ", "other "].map((text) => Buffer.from(text.repeat(5000)));
  const own = gunzipAtOnce(gzipped(one!));
  const brief = gunzipBriefly(gzipped(one!));
  expect(gunzipBriefly(gzipped(other!))).toEqual(other);
  expect(own).toEqual(one);
  expect(brief).not.toEqual(one);
});

test("no body makes the memory larger than the limit, whatever length it claims", () => {
  expect(gunzipBriefly(gzipped(Buffer.alloc(MIB)))?.equals(Buffer.alloc(MIB))).toBe(true);
  expect(gunzipBriefly(gzipped(Buffer.alloc(MIB + 1)))).toBeUndefined();
  const lying = gzipped(Buffer.alloc(MIB));
  for (const claimed of [0, 17, MIB - 1, 2 ** 32 - 1]) {
    lying.writeUInt32LE(claimed, lying.length - 4);
    expect(gunzipBriefly(lying)).toBeUndefined();
  }
});

/**
 * Runs properties as tests, and generates their input: anything that may arrive over a connection.
 *
 * Each property has a bounded number of runs; FUZZ_RUNS multiplies them, for a run of hours.
 */
import fc from "fast-check";
import { expect, test } from "vitest";
import { type ErrorCode, errorCodes, isBasetideError } from "../../core/errors";

/** The factor by which FUZZ_RUNS multiplies the runs of a property. */
export const fuzzRuns = Math.max(1, Number(process.env.FUZZ_RUNS) || 1);
/** A property that has not failed by then holds; one that has failed is not shrunk further. ms */
const TIME_LIMIT_MS = 20_000 * fuzzRuns;
/** The last run may take this much longer. ms */
const GRACE_MS = 10_000;

/** Defines a test that runs `property` this many times. A failure reports the seed and the path to it. */
export function fuzz<Ts>(name: string, runs: number, property: fc.IRawProperty<Ts, boolean>): void {
  test(name, { timeout: TIME_LIMIT_MS + GRACE_MS }, async () => {
    await fc.assert(property, { numRuns: runs * fuzzRuns, interruptAfterTimeLimit: TIME_LIMIT_MS });
  });
}

/**
 * Returns the result of `work`, or the code of the BasetideError that it threw.
 *
 * @throws any other error, and an internal one of ours: neither is a valid answer to bad input
 */
export function codeOr<T>(work: () => T): T | ErrorCode {
  try {
    return work();
  } catch (error) {
    if (!isBasetideError(error) || error.code === "internal") throw error;
    expect(Object.keys(errorCodes)).toContain(error.code);
    return error.code;
  }
}

/** Text that is designed to break parsers, and text that is merely odd. */
const nasty = fc.constantFrom(
  "",
  "\0",
  "a\0b",
  "\ud800",
  "\udc00\ud800",
  "__proto__",
  "constructor",
  "toString",
  "'; drop table bases; --",
  '"',
  "\\",
  "$1",
  "{}",
  "../..",
  "%00",
  "\u2028",
  "\ufeff",
  "NaN",
  "1e999",
  "0001-01-01",
);

/** Any text that a JSON string can carry: lone surrogates, control characters, whole graphemes, known attacks. */
export const anyText = fc.oneof(
  fc.string({ unit: "grapheme", maxLength: 40 }),
  fc.string({ unit: "binary", maxLength: 40 }),
  fc
    .array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 30 })
    .map((units) => String.fromCharCode(...units)),
  nasty,
);

/** Any number that `JSON.parse` returns, including infinity (from 1e999). */
const anyNumber = fc.oneof(
  fc.double({ noNaN: true }),
  fc.integer(),
  fc.constantFrom(0, -0, 1e308, 5e-324, 2 ** 53, Number.POSITIVE_INFINITY),
);

/** Any value that `JSON.parse` returns; `likely` values are more frequent than by chance. */
export function anyJson(...likely: fc.Arbitrary<unknown>[]): fc.Arbitrary<unknown> {
  return fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 4, depthSize: "small", withCrossShrink: true },
      fc.constantFrom(null, true, false),
      anyText,
      anyNumber,
      ...likely,
      fc.array(tie("value"), { maxLength: 5 }),
      fc.dictionary(anyText, tie("value"), { maxKeys: 5, noNullPrototype: true }),
    ),
  })).value;
}

/** Arrays or objects nested `depth` times. */
export function nested(depth: number): unknown {
  let value: unknown = [];
  for (let level = 0; level < depth; level++) value = level % 2 ? [value] : { a: value };
  return value;
}

/** `value` with one part, at any depth, replaced by anything or removed. */
export function damaged(value: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  return fc
    .tuple(value, fc.nat(), anyJson(), fc.boolean())
    .map(([whole, at, other, isRemoved]) => damage(structuredClone(whole), at, other, isRemoved));
}

function damage(whole: unknown, at: number, other: unknown, isRemoved: boolean): unknown {
  const places = placesIn(whole);
  if (places.length === 0) return other;
  const { within, key } = places[at % places.length]!;
  if (isRemoved) delete within[key];
  else within[key] = other;
  return JSON.parse(JSON.stringify(whole));
}

type DamageSite = { within: Record<string, unknown>; key: string };

function placesIn(value: unknown): DamageSite[] {
  if (typeof value !== "object" || value === null) return [];
  const within = value as Record<string, unknown>;
  return Object.keys(within).flatMap((key) => [{ within, key }, ...placesIn(within[key])]);
}

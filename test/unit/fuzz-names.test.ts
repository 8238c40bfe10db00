/** Names of tables and fields: any text, any length, any number of them. */
import fc from "fast-check";
import { expect } from "vitest";
import { snakeCase } from "../../core/replica";
import { assignNames } from "../../core/replica/naming";
import { anyText, fuzz } from "../support/fuzz";

/** Longest tested name, in UTF-16 units. */
const LONGEST = 100_000;

/** A name of the same few characters, repeated: this reveals a slow pattern. */
const longName = fc
  .tuple(
    anyText,
    fc.oneof(
      fc.constantFrom("a", "A", "e\u0301", "\u0301", "\u200d", "👩‍", "_", " ", "aB", "\ud800", "क्षि"),
      anyText,
    ),
    fc.constantFrom(100, 10_000, LONGEST),
    anyText,
  )
  .map(([head, part, length, tail]) =>
    (head + part.repeat(length / Math.max(1, part.length)) + tail).slice(0, length),
  );

const anyName = fc.oneof({ weight: 4, arbitrary: anyText }, { weight: 1, arbitrary: longName });
/** Few names that differ a lot, many that differ slightly. */
const names = fc.oneof(
  fc.array(anyName, { maxLength: 30 }),
  fc
    .tuple(longName, fc.integer({ min: 1, max: 500 }))
    .map(([name, count]) => Array<string>(count).fill(name)),
  fc
    .tuple(longName, fc.integer({ min: 1, max: 500 }))
    .map(([name, count]) => Array.from({ length: count }, (_, index) => `${name} ${index}`)),
);
const kind = fc.constantFrom("table" as const, "column" as const);

fuzz(
  "every name becomes a unique one of 1 to 63 well-formed bytes, and keeps it",
  60,
  fc.property(names, kind, (all, kind) => {
    const entries = all.map((name, index) => ({ id: `id${index}`, name }));
    const given = assignNames(entries, { kind });
    const unique = new Set(Array.from(given.values(), (name) => name.normalize("NFC").toLowerCase()));
    expect(unique.size).toBe(entries.length);
    for (const name of given.values()) {
      expect(Buffer.byteLength(name)).toBeGreaterThan(0);
      expect(Buffer.byteLength(name)).toBeLessThanOrEqual(63);
      expect(name.isWellFormed() && !name.startsWith("_") && !/\p{C}/u.test(name)).toBe(true);
    }
    const remembered = new Map(
      entries.map(({ id, name }) => [id, { name: given.get(id)!, sourceName: name }]),
    );
    expect(assignNames(entries.toReversed(), { kind, remembered })).toEqual(given);
  }),
);

fuzz(
  "a name of 100,000 characters takes no longer to read than to write",
  100,
  fc.property(longName, (name) => {
    const from = performance.now();
    snakeCase(name);
    // A pattern that backtracks takes minutes.
    expect(performance.now() - from).toBeLessThan(2000);
  }),
);

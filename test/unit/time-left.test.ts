/** How long a first sync takes, estimated while it runs; the sync is simulated in virtual time. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { compileFormula } from "../../apps/sandbox/formula";
import { Random } from "../../apps/sandbox/random";
import { estimateSize } from "../../core/source";
import { sample } from "../../core/source/airtable/facts";
import { shapes, simulateFirstSync } from "../support/first-sync-simulation";
import { quantile } from "../support/quantile";

const bases = fc.record({
  /** 100 to 50,000, evenly by order of magnitude. */
  magnitude: fc.double({ min: 2, max: Math.log10(50_000), noNaN: true }),
  tables: fc.integer({ min: 1, max: 20 }),
  shape: fc.constantFrom<(keyof typeof shapes)[]>("equal", "halving", "mixed"),
  share: fc.constantFrom(3, 5),
  latencyMs: fc.integer({ min: 60, max: 500 }),
  seed: fc.nat(),
  isMeasured: fc.boolean(),
});

test("the first range is shown within 5 s, and the first sync ends within it, in 9 of 10 bases", () => {
  const drawn = fc.sample(bases, { numRuns: 500, seed: fc.sample(fc.nat(), 1)[0]! });
  const misses = drawn.filter(({ magnitude, tables, shape, seed, ...facts }) => {
    const sizes = shapes[shape](tables, 10 ** magnitude, new Random(seed));
    const { ranges, endMs } = simulateFirstSync({ ...facts, sizes, seed });
    const first = ranges[0];
    if (!first) return endMs > 5000;
    return first.atMs > 5000 || endMs < first.leastMs || endMs > first.mostMs;
  });
  expect(misses.length / drawn.length, JSON.stringify(misses.slice(0, 5))).toBeLessThan(0.1);
});

test("after 15 s, the end of 9 of 10 ranges is at most 2.5 times the beginning, and 8 of 10 syncs end within them", () => {
  const drawn = fc.sample(bases, { numRuns: 1500, seed: fc.sample(fc.nat(), 1)[0]! });
  const later = drawn.flatMap(({ magnitude, tables, shape, seed, ...facts }) => {
    const sizes = shapes[shape](tables, 10 ** magnitude, new Random(seed));
    const { ranges, endMs } = simulateFirstSync({ ...facts, sizes, seed });
    const range = ranges.find(({ atMs }) => atMs >= 15_000);
    // Below that, a multiple of 5 s is more than the uncertainty.
    return range && endMs - range.atMs > 40_000 ? [{ ...range, endMs }] : [];
  });
  const wide = later.filter(({ atMs, leastMs, mostMs }) => mostMs - atMs > 2.5 * (leastMs - atMs));
  expect(wide.length / later.length, JSON.stringify(wide.slice(0, 5))).toBeLessThan(0.1);
  const misses = later.filter(({ endMs, leastMs, mostMs }) => endMs < leastMs || endMs > mostMs);
  expect(misses.length / later.length, JSON.stringify(misses.slice(0, 5))).toBeLessThan(0.2);
});

test("tables of a first sync are complete in the order of their sizes, wherever they are in the base", () => {
  const facts = { share: 3, latencyMs: 200, seed: 1 };
  for (const isMeasured of [true, false]) {
    expect(simulateFirstSync({ ...facts, isMeasured, sizes: [30_000, 12_000, 8000] }).order).toEqual([
      2, 1, 0,
    ]);
    expect(simulateFirstSync({ ...facts, isMeasured, sizes: [9000, 16_000, 4000] }).order).toEqual([2, 0, 1]);
  }
});

test("the size of a table is estimated from its ids, random or consecutive, to a few standard errors", async () => {
  const row = { createdTime: 0, lastModifiedTime: () => null, cell: () => null, now: () => 0 };
  const seed = fc.sample(fc.nat(), 1)[0]!;
  const random = new Random(seed);
  const ways = {
    random: () => random.id("rec"),
    consecutive: (at: number) => `rec${String(at).padStart(14, "0")}`,
  };
  for (const [way, idAt] of Object.entries(ways)) {
    const errors = new Map<number, number[]>();
    // Of a small table, few ids are counted: one estimate in many is as uncertain as the table is large.
    for (const records of [...Array<number>(9).fill(101), ...Array<number>(9).fill(900), 7000, 40_000]) {
      const ids = Array.from({ length: records }, (_, at) => idAt(at));
      const list = async (filter: string, offset = "0") => {
        const formula = compileFormula(filter, () => undefined);
        const matched = ids.filter((recordId) => formula.isTrue({ ...row, recordId })).length;
        const next = Number(offset) + 100;
        return {
          size: Math.min(next, matched) - Number(offset),
          offset: next < matched ? `${next}` : undefined,
        };
      };
      const { records: found, error } = await estimateSize(sample, ids.slice(0, 100), list);
      const shown = `${way} ${records}: ${found} ± ${error}, seed ${seed}`;
      expect(Math.abs(found - records) / error, shown).toBeLessThan(5);
      errors.set(records, [...(errors.get(records) ?? []), error]);
    }
    for (const [records, all] of errors)
      expect(quantile(all, 0.5) / records, `${way} ${records}, seed ${seed}`).toBeLessThan(
        records === 101 ? 2 : 0.5,
      );
  }
});

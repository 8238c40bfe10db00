import fc from "fast-check";
import { expect, test } from "vitest";
import { Fingerprints } from "../../core/sync/state";
import { FINGERPRINT_BITS } from "../../core/sync/state/fingerprints";

/** From this size on, the first allocation is used. */
const FIRST = 14;

const ids = fc.constantFrom(...Array.from({ length: 40 }, (_, index) => `rec${index}`));
const hashes = fc.bigInt({ min: 1n, max: 2n ** 64n - 1n });
const steps = fc.array(
  fc.oneof(
    fc.record({ step: fc.constant("see" as const), id: ids, hash: hashes }),
    fc.record({ step: fc.constant("learn" as const), id: ids, hash: hashes }),
    fc.record({ step: fc.constant("expect" as const), id: ids }),
    fc.record({ step: fc.constant("expectAll" as const) }),
    fc.record({ step: fc.constant("beginScan" as const), times: fc.constantFrom(1, 1, 1, 254, 255, 256) }),
    fc.record({ step: fc.constant("forgetUnseen" as const) }),
  ),
  { maxLength: 200 },
);

test("fingerprints behave like a map of ids, whatever happens to them", () => {
  fc.assert(
    fc.property(steps, (all) => {
      const prints = new Fingerprints();
      const model = new Map<string, { hash: bigint; isSeen: boolean }>();
      const entry = (id: string) => {
        const known = model.get(id) ?? { hash: 0n, isSeen: false };
        model.set(id, known);
        return known;
      };
      for (const step of all) {
        if (step.step === "see") {
          const known = entry(step.id);
          known.isSeen = true;
          expect(prints.see(step.id, step.hash)).toBe(isSame(known.hash, step.hash));
        } else if (step.step === "learn") {
          entry(step.id).hash = step.hash;
          prints.learn(step.id, step.hash);
        } else if (step.step === "expect") {
          entry(step.id).hash = 0n;
          prints.expect(step.id);
        } else if (step.step === "beginScan") {
          for (const known of model.values()) known.isSeen = false;
          for (let times = 0; times < step.times; times++) prints.beginScan();
        } else if (step.step === "expectAll") {
          for (const known of model.values()) known.hash = 0n;
          prints.expectAll();
        } else {
          for (const [id, known] of model) if (!known.isSeen) model.delete(id);
          prints.forgetUnseen();
        }
        expect(prints.size).toBe(model.size);
        expect(prints.seen).toBe([...model.values()].filter((known) => known.isSeen).length);
        for (const [id, known] of model) {
          expect(prints.hasSeen(id)).toBe(known.isSeen);
          expect(prints.get(id)).toBe(known.hash & FINGERPRINT_BITS);
          expect(prints.isKnown(id, known.hash)).toBe(isSame(known.hash, known.hash));
        }
      }
    }),
  );
});

/** Zero means that a record has no fingerprint. */
function isSame(known: bigint, hash: bigint): boolean {
  return (hash & FINGERPRINT_BITS) !== 0n && (known & FINGERPRINT_BITS) === (hash & FINGERPRINT_BITS);
}

test("a record takes at most 16 bytes at any size, and an empty table nothing", () => {
  const prints = new Fingerprints();
  expect(prints.bytes).toBe(0);
  let most = 0;
  for (let size = 1; size <= 30_000; size++) {
    prints.learn(`rec${size}`, BigInt(size));
    if (size >= FIRST) most = Math.max(most, prints.bytes / size);
  }
  expect(most).toBeLessThanOrEqual(16);
  prints.beginScan();
  for (let size = 1; size <= FIRST; size++) prints.see(`rec${size}`, BigInt(size));
  prints.forgetUnseen();
  expect(prints.bytes).toBeLessThanOrEqual(16 * FIRST);
  prints.evict();
  expect([prints.bytes, prints.size]).toEqual([0, 0]);
  expect(prints.see("rec1", 1n)).toBe(false);
});

test("a build knows which of its scans read a record, until it forgets them", () => {
  const prints = new Fingerprints({ isKeepingScans: true });
  const first = prints.scan;
  const scans = 70_000;
  for (let scan = 0; scan < scans; scan++) {
    prints.beginScan();
    prints.see(`rec${scan}`, 0n);
    prints.learn(`rec${scan}`, BigInt(scan + 1));
  }
  for (let scan = 0; scan < scans; scan++) expect(prints.scanOf(`rec${scan}`)).toBe(first + 1 + scan);
  expect(prints.bytes / scans).toBeLessThanOrEqual(20);
  prints.forgetScans();
  expect(prints.bytes / scans).toBeLessThanOrEqual(16);
  prints.beginScan();
  expect(prints.hasSeen("rec5")).toBe(false);
  expect(prints.see("rec5", 6n)).toBe(true);
});

test("fingerprints grow past their first capacity and forget nothing", () => {
  const prints = new Fingerprints();
  prints.beginScan();
  for (let index = 0; index < 50_000; index++) {
    expect(prints.see(`rec${index}`, BigInt(index + 1))).toBe(false);
    prints.learn(`rec${index}`, BigInt(index + 1));
  }
  expect(prints.size).toBe(50_000);
  prints.beginScan();
  for (let index = 0; index < 50_000; index++) {
    if (!prints.see(`rec${index}`, BigInt(index + 1))) throw new Error(`rec${index} was forgotten`);
  }
  expect(prints.seen).toBe(50_000);
});

test("asking for a record that is not known does not make it known", () => {
  const prints = new Fingerprints();
  expect(prints.hasSeen("rec1")).toBe(false);
  expect(prints.scanOf("rec1")).toBeUndefined();
  expect(prints.size).toBe(0);
});

import fc from "fast-check";
import { expect, test } from "vitest";
import { Fingerprints } from "../../core/sync/state";

const ids = fc.constantFrom(...Array.from({ length: 40 }, (_, index) => `rec${index}`));
const hashes = fc.bigInt({ min: 1n, max: 2n ** 64n - 1n });
const steps = fc.array(
  fc.oneof(
    fc.record({ step: fc.constant("see" as const), id: ids, hash: hashes }),
    fc.record({ step: fc.constant("learn" as const), id: ids, hash: hashes }),
    fc.record({ step: fc.constant("expect" as const), id: ids }),
    fc.record({ step: fc.constant("beginScan" as const) }),
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
          expect(prints.see(step.id, step.hash)).toBe(known.hash === step.hash);
        } else if (step.step === "learn") {
          entry(step.id).hash = step.hash;
          prints.learn(step.id, step.hash);
        } else if (step.step === "expect") {
          entry(step.id).hash = 0n;
          prints.expect(step.id);
        } else if (step.step === "beginScan") {
          for (const known of model.values()) known.isSeen = false;
          prints.beginScan();
        } else {
          for (const [id, known] of model) if (!known.isSeen) model.delete(id);
          prints.forgetUnseen();
        }
        expect(prints.size).toBe(model.size);
        expect(prints.seen).toBe([...model.values()].filter((known) => known.isSeen).length);
        for (const [id, known] of model) expect(prints.hasSeen(id)).toBe(known.isSeen);
      }
    }),
  );
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

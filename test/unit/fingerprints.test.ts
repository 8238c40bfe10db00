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
  // And the pages.
  expect(prints.bytes).toBeLessThanOrEqual(16 * FIRST + 64);
  prints.evict();
  expect([prints.bytes, prints.size]).toEqual([0, 0]);
  expect(prints.see("rec1", 1n)).toBe(false);
});

const PERIOD = 40;

/** The ids and contents of a page's records. */
const pages = fc.array(fc.tuple(ids, fc.integer({ min: 1, max: 3 })), { maxLength: 4 });
const unchanged = Array.from({ length: 4 }, (_, page) =>
  Array.from({ length: 3 }, (_, index): [string, number] => [`rec${3 * page + index}`, 1]),
);
const changes = { way: fc.constantFrom("learn", "see", "expect"), id: ids, content: fc.nat(3) };
// A sweep of the last list, or with another page in it: up to this page, applying this part of the changes.
const sweep = fc.record({
  edit: fc.option(fc.tuple(fc.nat(4), pages), { freq: 3 }),
  until: fc.constantFrom(9, 9, 9, 9, 0, 1, 2),
  applied: fc.constantFrom("all", "all", "all", "all", "none", "lost"),
  between: fc.option(fc.record(changes), { freq: 3 }),
});
const events = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: sweep },
    { weight: 1, arbitrary: fc.constantFrom("expectAll", "evict", "beginScan", "forgetUnseen") },
    { weight: 1, arbitrary: fc.record(changes) },
    { weight: 1, arbitrary: fc.record({ passed: fc.nat(2 * PERIOD) }) },
  ),
  { maxLength: 20, size: "max" },
);

/** Every third record has a fingerprint that changes once in every period. */
const phaseOf = (id: string) => (Number(id.slice(3)) % 3 === 0 ? Number(id.slice(3)) % PERIOD : undefined);
function printOf(id: string, content: number, now: number): bigint {
  const phase = phaseOf(id);
  return BigInt(
    content && phase !== undefined ? 10 + 10 * Math.floor((now + phase) / PERIOD) + content : content,
  );
}
function lastsUntil(id: string, now: number): number {
  const phase = phaseOf(id);
  return phase === undefined ? Infinity : (1 + Math.floor((now + phase) / PERIOD)) * PERIOD - phase;
}

test("a page that is seen as a whole counts exactly as if its records had been looked at", () => {
  let repeated = 0;
  fc.assert(
    fc.property(events, (all) => {
      const [whole, single] = [new Fingerprints(), new Fingerprints()];
      const both = [whole, single];
      let list = unchanged;
      let now = 0;
      const change = (way: string, id: string, content: number) => {
        for (const prints of both) {
          if (way === "learn") prints.learn(id, printOf(id, content, now));
          else if (way === "expect") prints.expect(id);
          else prints.see(id, printOf(id, content, now));
        }
      };
      const seePage = (prints: Fingerprints, page: [string, number][], position: number) => {
        const digest = prints === whole ? Number(Bun.hash.wyhash(JSON.stringify(page)) >> 11n) : undefined;
        let isLookedAt = page.length === 0;
        const listed = {
          digest,
          size: page.length,
          id: (index: number) => {
            isLookedAt = true;
            return page[index]![0];
          },
        };
        const differing = prints.seePage(listed, (index) => printOf(...page[index]!, now), position, {
          now,
          validUntil: () => Math.min(...page.map(([id]) => lastsUntil(id, now))),
        });
        if (!isLookedAt) repeated++;
        return differing;
      };
      for (const step of all) {
        if (typeof step === "string") for (const prints of both) prints[step as "evict"]();
        else if ("passed" in step) now += step.passed;
        else if ("way" in step) change(step.way, step.id, step.content);
        else {
          const { edit, until, applied, between } = step;
          if (edit) list = list.toSpliced(edit[0], 1, edit[1]);
          for (const prints of both) prints.beginScan();
          for (const [position, page] of list.slice(0, until).entries()) {
            const differing = seePage(whole, page, position);
            expect(differing).toEqual(seePage(single, page, position));
            for (const index of differing) {
              if (applied === "all") change("learn", ...page[index]!);
              else if (applied === "lost") change("expect", ...page[index]!);
            }
            if (between && position === 0) change(between.way, between.id, between.content);
          }
          if (until >= list.length) for (const prints of both) prints.forgetUnseen();
        }
        expect([whole.size, whole.seen]).toEqual([single.size, single.seen]);
        for (let index = 0; index < 40; index++) {
          const id = `rec${index}`;
          expect([whole.get(id), whole.hasSeen(id)]).toEqual([single.get(id), single.hasSeen(id)]);
        }
      }
    }),
    { numRuns: 200 },
  );
  expect(repeated).toBeGreaterThan(200);
});

test("more pages than there are numbers for are still all seen", () => {
  const prints = new Fingerprints();
  const pages = 70_000;
  const seeAll = () => {
    prints.beginScan();
    let differing = 0;
    for (let page = 0; page < pages; page++) {
      const listed = { size: 1, digest: page, id: () => `rec${page}` };
      const found = prints.seePage(listed, () => BigInt(page + 1), page);
      differing += found.length;
      if (found.length > 0) prints.learn(`rec${page}`, BigInt(page + 1));
    }
    return { differing, seen: prints.seen };
  };
  expect(seeAll()).toEqual({ differing: pages, seen: pages });
  expect(seeAll()).toEqual({ differing: 0, seen: pages });
  expect(prints.hasSeen("rec0")).toBe(true);
  expect(prints.bytes / pages).toBeLessThan(16 * 3);
  expect(seeAll()).toEqual({ differing: 0, seen: pages });
});

test("pages of a table that changes with every scan take no more and more memory", () => {
  const prints = new Fingerprints();
  const id = (index: number) => `rec${index}`;
  const mostBytes = (scans: number) => {
    let most = 0;
    for (let scan = 1; scan <= scans; scan++) {
      const content = BigInt(prints.scan);
      prints.beginScan();
      for (let position = 0; position < 3; position++) {
        const listed = { size: 1, digest: Number(content), id: () => id(position) };
        const differing = prints.seePage(listed, () => content, position);
        expect(differing).toEqual([0]);
        prints.learn(id(position), content);
      }
      prints.forgetUnseen();
      most = Math.max(most, prints.bytes);
    }
    return most;
  };
  const first = mostBytes(100);
  expect(mostBytes(1000)).toBe(first);
});

test("a build knows which of its scans read a record, until the next sweep", () => {
  const prints = new Fingerprints();
  const first = prints.scan;
  // One for each page, of which a list has at most 50,000.
  const scans = 60_000;
  for (let scan = 0; scan < scans; scan++) {
    prints.beginScan(true);
    for (const id of [`rec${scan}`, `rec${scans + scan}`]) {
      prints.see(id, 0n);
      prints.learn(id, BigInt(scan + 1));
    }
  }
  for (let scan = 0; scan < scans; scan++) {
    expect(prints.scanOf(`rec${scan}`)).toBe(first + 1 + scan);
    expect(prints.scanOf(`rec${scans + scan}`)).toBe(first + 1 + scan);
  }
  prints.beginScan();
  expect(prints.bytes / (2 * scans)).toBeLessThanOrEqual(16);
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

test("packed fingerprints are the same when they are unpacked, and are seen by no scan", () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.tuple(ids, hashes), { selector: ([id]) => id }), (all) => {
      const prints = new Fingerprints();
      for (const [id, hash] of all) prints.learn(id, hash);
      for (const [id] of all.slice(0, 3)) prints.expect(id);
      const packed = prints.pack();
      expect(packed).toHaveLength(12 * all.length);
      const unpacked = Fingerprints.unpack(packed)!;
      expect([unpacked.size, unpacked.seen]).toEqual([all.length, 0]);
      for (const [id, hash] of all) {
        expect(unpacked.get(id)).toBe(prints.get(id));
        expect(unpacked.hasSeen(id)).toBe(false);
        expect(unpacked.see(id, hash)).toBe(prints.isKnown(id, hash));
      }
      expect(unpacked.size).toBe(all.length);
    }),
  );
});

test("unpacked fingerprints of any size take at most 15 bytes a record, and a search for an unknown one ends", () => {
  const prints = new Fingerprints();
  for (let size = 1; size <= 300; size++) {
    prints.learn(`rec${size}`, BigInt(size));
    const unpacked = Fingerprints.unpack(prints.pack())!;
    expect(unpacked.isKnown("recUnknown", 1n)).toBe(false);
    if (size >= FIRST) expect(unpacked.bytes / size).toBeLessThanOrEqual(15);
  }
});

test("bytes that are not packed fingerprints are refused", () => {
  const prints = new Fingerprints();
  for (const id of ["recA", "recB"]) prints.learn(id, 1n);
  const packed = prints.pack();
  const twice = Uint8Array.from([...packed, ...packed]);
  for (const bytes of [packed.subarray(1), twice, new Uint8Array(12)])
    expect(Fingerprints.unpack(bytes)).toBe(null);
  expect(Fingerprints.unpack(new Uint8Array(0))?.size).toBe(0);
});

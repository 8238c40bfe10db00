import fc from "fast-check";
import { expect, test } from "vitest";
import { type DirtyBatch, type DirtyRecord, DirtySet, MAX_BATCH } from "../../core/sync/state";

const direct = (cursor: number, ...fields: string[]): DirtyRecord => ({
  cursor,
  why: "direct",
  fields: new Set(fields),
});
const dependent = (cursor: number): DirtyRecord => ({ cursor, why: "dependent", fields: null });
const destroyed = (cursor: number, readVersion?: number): DirtyRecord => ({
  cursor,
  why: "destroyed",
  fields: null,
  readVersion,
});

/** A feed of which one batch was read. */
function pending(from = 1, to = 5): DirtySet {
  const made = new DirtySet();
  made.beginBatch(from);
  made.endBatch(to);
  return made;
}

const idsOf = (batch: DirtyBatch | undefined) => [...(batch?.entries.keys() ?? [])];

test("direct changes come before dependents, and share one batch", () => {
  const waits = pending();
  for (let index = 0; index < 90; index++) waits.add("tblA", `dep${index}`, dependent(1));
  for (let index = 0; index < 30; index++) waits.add("tblA", `rec${index}`, direct(1, "fld1"));
  const batch = waits.take("tblA");
  expect(idsOf(batch)).toHaveLength(MAX_BATCH);
  expect(idsOf(batch).slice(0, 30)).toEqual(Array.from({ length: 30 }, (_, index) => `rec${index}`));
  expect(idsOf(waits.take("tblA"))).toHaveLength(20);
  expect(waits.take("tblA")).toBeUndefined();
});

test("a record that is reported while it is read is read once more", () => {
  const waits = pending(1, 5);
  waits.add("tblA", "rec1", direct(1, "fld1"));
  const first = waits.take("tblA")!;
  waits.beginBatch(5);
  waits.add("tblA", "rec1", direct(5, "fld2"));
  waits.endBatch(6);
  waits.ack(first, ["rec1"]);
  expect(waits.durableCursor).toBe(5);
  const second = waits.take("tblA")!;
  expect(second.entries.get("rec1")).toMatchObject({ fields: new Set(["fld2"]) });
  waits.ack(second, ["rec1"]);
  expect(waits.durableCursor).toBe(6);
});

test("a requeued record combines what was reported before and meanwhile", () => {
  const waits = pending();
  waits.add("tblA", "rec1", direct(1, "fld1"));
  const first = waits.take("tblA")!;
  waits.add("tblA", "rec1", direct(3, "fld2"));
  waits.requeue(first);
  expect(waits.take("tblA")!.entries.get("rec1")).toMatchObject({
    cursor: 1,
    fields: new Set(["fld1", "fld2"]),
  });
});

test("the feed's last report counts: deleted, and restored", () => {
  const waits = pending();
  waits.add("tblA", "gone", direct(1, "fld1"));
  waits.add("tblA", "gone", destroyed(1, 7));
  waits.add("tblA", "gone", dependent(1));
  waits.add("tblA", "back", destroyed(1, 7));
  waits.add("tblA", "back", direct(3, "fld1"));
  const gone = waits.takeDestroyed("tblA")!;
  expect(idsOf(gone)).toEqual(["gone"]);
  expect(gone.entries.get("gone")).toMatchObject({ why: "destroyed", readVersion: 7 });
  // Every cell of a restored record may have changed.
  expect(waits.take("tblA")!.entries.get("back")).toMatchObject({ why: "direct", fields: null });
});

test("a deleted record whose image lost is read again", () => {
  const waits = pending();
  waits.add("tblA", "gone", destroyed(1, 7));
  waits.requeue(waits.takeDestroyed("tblA")!);
  expect(waits.takeDestroyed("tblA")).toBeUndefined();
  expect(waits.take("tblA")!.entries.get("gone")).toMatchObject({ why: "destroyed" });
});

test("at the feed's end, a record last reported as deleted need not be read, whichever part of it reported that", () => {
  const waits = pending();
  for (const id of ["gone", "back", "lost"]) waits.add("tblA", id, destroyed(1));
  expect(waits.takeDestroyed("tblA")).toBeUndefined();
  waits.add("tblA", "back", direct(3));
  waits.endFeed(7);
  const batch = waits.takeDestroyed("tblA")!;
  expect(idsOf(batch)).toEqual(["gone", "lost"]);
  waits.ack(batch, ["gone"]);
  waits.requeue(batch);
  // A client wrote it meanwhile: no later end of the feed makes it one that need not be read.
  waits.endFeed(9);
  expect(waits.takeDestroyed("tblA")).toBeUndefined();
  expect(waits.counts("tblA")).toEqual({ records: 2, destroyed: 1, isWhole: false });
  expect(idsOf(waits.take("tblA"))).toEqual(["back", "lost"]);
});

test("a deferred record holds the durable cursor, delays no batch, and returns in time", () => {
  const waits = pending(1, 5);
  waits.add("tblA", "rec1", direct(1, "fld1"));
  const batch = waits.take("tblA")!;
  waits.defer(batch, "rec1", 1000);
  expect([waits.durableCursor, waits.batchCursor]).toEqual([1, 5]);
  waits.resumeDeferred(400);
  expect(waits.take("tblA")).toBeUndefined();
  waits.resumeDeferred(1000);
  expect([waits.durableCursor, waits.batchCursor]).toEqual([1, 1]);
  expect(idsOf(waits.take("tblA"))).toEqual(["rec1"]);
});

test("a full read acknowledges what was reported before it, except what it could not judge", () => {
  const waits = pending(1, 5);
  for (const id of ["old", "lost", "held"]) waits.add("tblA", id, direct(1));
  waits.add("tblB", "other", direct(1));
  waits.addTable("tblA", 1);
  const { sequence } = waits;
  waits.add("tblA", "new", direct(1));
  waits.add("tblA", "held", direct(1));
  waits.ackTable("tblA", sequence, new Set(["lost"]));
  expect(waits.counts("tblA")).toMatchObject({ records: 3, isWhole: false });
  expect(idsOf(waits.take("tblA"))).toEqual(["lost", "new", "held"]);
  waits.forgetTable("tblB");
  expect(waits.counts("tblB").records).toBe(0);
});

test("a suspected schema change holds the cursor until a schema check that started after it", () => {
  const waits = pending(1, 5);
  waits.suspect("tblA", 1);
  const { sequence } = waits;
  waits.suspect("tblB", 1);
  expect([waits.suspected(), waits.durableCursor]).toEqual([["tblA", "tblB"], 1]);
  waits.ackSuspects(sequence);
  expect([waits.suspected(), waits.isSuspect("tblA"), waits.durableCursor]).toEqual([["tblB"], false, 1]);
  waits.ackSuspects(waits.sequence);
  expect(waits.durableCursor).toBe(5);
});

test("every change that leaves something to do, or advances a cursor, wakes the scheduler", () => {
  const waits = pending();
  const woken = recordWakes(waits);
  const wakes = (change: () => void) => {
    woken.times = 0;
    change();
    return woken.times > 0;
  };
  expect(wakes(() => waits.suspect("tblA", 1))).toBe(true);
  expect(wakes(() => waits.add("tblA", "rec1", direct(1)))).toBe(true);
  expect(wakes(() => waits.ackSuspects(waits.sequence))).toBe(true);
  const batch = waits.take("tblA")!;
  expect(wakes(() => waits.requeue(batch))).toBe(true);
  const again = waits.take("tblA")!;
  expect(wakes(() => waits.ack(again, ["rec1"]))).toBe(true);
  expect(wakes(() => waits.addTable("tblA", 5))).toBe(true);
});

/** Counts how often the set wakes the scheduler from now on. */
function recordWakes({ wake }: DirtySet): { times: number } {
  const woken = { times: 0 };
  wake.notify = () => void woken.times++;
  return woken;
}

interface Naming {
  cursor: number;
  at: number;
}

/** A generated history of a feed and of the loops that process it. */
const step = fc.oneof(
  fc.record({ kind: fc.constant("read" as const), named: fc.array(fc.tuple(fc.nat(5), fc.nat(2))) }),
  fc.record({
    kind: fc.constantFrom("take", "destroyed", "settle", "give back", "park", "unpark"),
    pick: fc.nat(),
  }),
  fc.record({ kind: fc.constantFrom("sweep begins", "sweep ends"), pick: fc.nat() }),
);

test("L1, L2: the durable cursor never passes unacknowledged changes, and every reported record is read after its report", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const waits = new DirtySet();
      const woken = recordWakes(waits);
      const whys = ["direct", "dependent", "destroyed"] as const;
      /** By record: the batches that reported it, and when; without those that it was read after. */
      const unsettled = new Map<string, Naming[]>();
      const taken: { batch: DirtyBatch; at: number }[] = [];
      let sweep: { sequence: number; at: number } | undefined;
      let cursor = 1;
      const read = (ids: Iterable<string>, at: number, isHeld = (_id: string, _naming: Naming) => false) => {
        for (const id of ids) {
          const left = (unsettled.get(id) ?? []).filter((naming) => naming.at > at || isHeld(id, naming));
          if (left.length > 0) unsettled.set(id, left);
          else unsettled.delete(id);
        }
      };
      const all = (batch: DirtyBatch) => [...batch.entries.keys()];
      for (const [at, one] of steps.entries()) {
        const { durableCursor, batchCursor } = waits;
        woken.times = 0;
        if ("named" in one) {
          waits.beginBatch(cursor);
          for (const [number, why] of one.named) {
            const id = `rec${number}`;
            waits.add("tblA", id, { cursor, why: whys[why]!, fields: new Set(["fld1"]) });
            unsettled.set(id, [...(unsettled.get(id) ?? []), { cursor, at }]);
          }
          cursor += 1;
          waits.endBatch(cursor);
        } else if (one.kind === "take" || one.kind === "destroyed") {
          const batch = one.kind === "take" ? waits.take("tblA") : waits.takeDestroyed("tblA");
          if (batch) taken.push({ batch, at });
        } else if (one.kind === "sweep begins") sweep ??= { sequence: waits.sequence, at };
        else if (one.kind === "sweep ends") {
          if (sweep) {
            waits.ackTable("tblA", sweep.sequence, new Set());
            // A record that a loop has taken is acknowledged by that loop; one that was reported afterwards is read by
            // the sweep.
            read(unsettled.keys(), sweep.at, (id, naming) =>
              taken.some(({ batch, at: takenAt }) => {
                const { cursor: from = Infinity } = batch.entries.get(id) ?? {};
                return naming.at < takenAt && naming.cursor >= from;
              }),
            );
          }
          sweep = undefined;
        } else if (one.kind === "unpark") waits.resumeDeferred(Number.POSITIVE_INFINITY);
        else if (taken.length > 0) {
          const index = one.pick % taken.length;
          const { batch, at: takenAt } = taken[index]!;
          taken.splice(index, 1);
          const ids = all(batch);
          if (one.kind === "settle") {
            read(ids, takenAt);
            waits.ack(batch, ids);
          } else if (one.kind === "park") for (const id of ids) waits.defer(batch, id, 1);
          else waits.requeue(batch);
        }
        const least = Math.min(cursor, ...[...unsettled.values()].flat().map((naming) => naming.cursor));
        expect(waits.durableCursor).toBeLessThanOrEqual(least);
        for (const id of unsettled.keys()) expect(waits.has("tblA", id)).toBe(true);
        if (waits.durableCursor > durableCursor || waits.batchCursor > batchCursor)
          expect(woken.times).toBeGreaterThan(0);
      }
      for (const { batch } of taken) waits.ack(batch, all(batch));
      waits.resumeDeferred(Number.POSITIVE_INFINITY);
      for (let batch = waits.take("tblA"); batch; batch = waits.take("tblA")) waits.ack(batch, all(batch));
      for (let batch = waits.takeDestroyed("tblA"); batch; batch = waits.takeDestroyed("tblA"))
        waits.ack(batch, all(batch));
      expect([waits.size, waits.durableCursor, waits.batchCursor]).toEqual([
        0,
        cursor === 1 ? 0 : cursor,
        cursor === 1 ? 0 : cursor,
      ]);
    }),
    { numRuns: 1000 },
  );
});

test("entries of a table that is set aside stay, and no batch waits for them", () => {
  const dirty = new DirtySet();
  dirty.beginBatch(1);
  dirty.add("tblA", "rec1", { cursor: 1, why: "direct", fields: null });
  dirty.addTable("tblA", 1);
  dirty.add("tblB", "rec2", { cursor: 2, why: "direct", fields: null });
  dirty.endBatch(3);
  dirty.setAside(["tblA"]);
  expect([dirty.durableCursor, dirty.batchCursor, dirty.size, dirty.waiting]).toEqual([1, 2, 3, 1]);
  const batch = dirty.take("tblB")!;
  expect(dirty.batchCursor).toBe(2);
  dirty.ack(batch, ["rec2"]);
  expect([dirty.durableCursor, dirty.batchCursor, dirty.waiting]).toEqual([1, 3, 0]);
  dirty.setAside([]);
  expect([dirty.durableCursor, dirty.batchCursor, dirty.waiting]).toEqual([1, 1, 2]);
});

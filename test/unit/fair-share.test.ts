import fc from "fast-check";
import { expect, test } from "vitest";
import { type BalancedWorker, balance } from "../../apps/worker/balance";
import { fairShares } from "../../core/queue";

const jobs = fc.integer({ min: 0, max: 2000 });
const workers = (capacity: fc.Arbitrary<number>) =>
  fc
    .array(fc.record({ capacity, bases: fc.integer({ min: 0, max: 400 }) }), { minLength: 1, maxLength: 12 })
    .map((all) => all.map((one, index): BalancedWorker => ({ id: `w${index}`, isSettled: true, ...one })));

test("shares cover all bases or all capacity, none exceeds its worker, and each is within one of its proportion", () => {
  fc.assert(
    fc.property(jobs, workers(fc.integer({ min: 1, max: 400 })), (count, all) => {
      const shares = fairShares(count, all);
      const capacity = all.reduce((sum, worker) => sum + worker.capacity, 0);
      expect([...shares.values()].reduce((sum, share) => sum + share, 0)).toBe(Math.min(count, capacity));
      for (const worker of all) {
        const share = shares.get(worker.id)!;
        expect(share).toBeLessThanOrEqual(worker.capacity);
        const part = (Math.min(count, capacity) * worker.capacity) / capacity;
        expect(Math.abs(share - part)).toBeLessThanOrEqual(1);
      }
    }),
  );
});

test("evenly distributed bases stay where they are", () => {
  fc.assert(
    fc.property(jobs, workers(fc.constant(400)), (count, all) => {
      const shares = fairShares(count, all);
      const even = all.map((worker) => ({ ...worker, bases: shares.get(worker.id)! }));
      expect(fairShares(count, even)).toEqual(shares);
      for (const worker of even) {
        const { excess } = balance(worker.id, worker.bases, { jobs: count, overdue: 0 }, even);
        expect(excess).toBe(0);
      }
    }),
  );
});

test("from any start, workers converge to within one base of each other, and no base is moved twice", () => {
  fc.assert(
    fc.property(workers(fc.constant(5000)), (start) => {
      const count = start.reduce((sum, worker) => sum + worker.bases, 0);
      let all = start;
      let moves = 0;
      for (let round = 0; round < 30; round++) {
        const known = all;
        const given = known.map(
          (worker) => balance(worker.id, worker.bases, { jobs: count, overdue: 0 }, known).excess,
        );
        let free = given.reduce((sum, excess) => sum + excess, 0);
        moves += free;
        all = known.map((worker, index) => ({ ...worker, bases: worker.bases - given[index]! }));
        all = all.map((worker) => {
          const { share } = balance(worker.id, worker.bases, { jobs: count, overdue: 0 }, all);
          const taken = Math.min(free, Math.max(0, share - worker.bases));
          free -= taken;
          return { ...worker, bases: worker.bases + taken };
        });
        expect(free).toBe(0);
      }
      const held = all.map((worker) => worker.bases);
      expect(Math.max(...held) - Math.min(...held)).toBeLessThanOrEqual(1);
      const part = count / start.length;
      const needed = start.reduce((sum, worker) => sum + Math.max(0, worker.bases - Math.floor(part)), 0);
      expect(moves).toBeLessThanOrEqual(needed);
    }),
  );
});

test("a new worker takes free bases, and is given none until it has run for a while", () => {
  const old = { id: "old", bases: 10, capacity: 200, isSettled: true };
  const fresh = { id: "new", bases: 0, capacity: 200, isSettled: false };
  const load = { jobs: 10, overdue: 0 };
  expect(balance("new", 0, load, [old, fresh])).toMatchObject({ share: 5, excess: 0 });
  expect(balance("old", 10, load, [old, fresh])).toMatchObject({ excess: 0 });
  expect(balance("old", 10, load, [old, { ...fresh, isSettled: true }])).toMatchObject({ excess: 2 });
});

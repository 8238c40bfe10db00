import fc from "fast-check";
import { expect, test } from "vitest";
import { companyLimit, type Group, groupFor, MAX_GROUPS } from "../../apps/worker/suspect-groups";
import { fuzz } from "../support/fuzz";

interface Child extends Group {
  /** Intervals that it has been running. */
  age: number;
}

/**
 * Intervals after which a base that was synced without a crash returns to the worker: a lease of 60 s in intervals of 5
 * s.
 */
const TRIAL = 12;

/**
 * Simulates the crashes of one worker's children, interval by interval: the remaining suspects are given to children,
 * and each child that holds the culprit crashes at the end of an interval.
 */
function play(suspects: number, killer: number, capacity: number) {
  const company = new Map<string, number | null>();
  for (let index = 0; index < suspects; index++) company.set(`base${index}`, null);
  const deadly = `base${killer}`;
  const waited = new Map<string, number>();
  let children: Child[] = [];
  let [deaths, rounds] = [0, 0];
  for (; ; rounds++) {
    if (rounds > 200) throw new Error("the killer is not found");
    for (const [id, before] of company) {
      if (children.some(({ limits }) => limits.has(id))) continue;
      const limit = companyLimit(before, capacity);
      const found = groupFor(children, limit);
      if (found === null) waited.set(id, (waited.get(id) ?? 0) + 1);
      else if (found === "new") children.push({ limits: new Map([[id, limit]]), age: 0 });
      else found.limits.set(id, limit);
    }
    expect(children.length).toBeLessThanOrEqual(MAX_GROUPS);
    for (const { limits } of children) expect(limits.size).toBeLessThanOrEqual(Math.min(...limits.values()));
    const dying = children.find(({ limits }) => limits.has(deadly));
    if (dying) {
      deaths++;
      if (dying.limits.size === 1) return { deaths, rounds, waited: Math.max(0, ...waited.values()) };
      for (const id of dying.limits.keys()) company.set(id, dying.limits.size);
    }
    for (const child of children) {
      child.age++;
      if (child.age >= TRIAL && child !== dying) for (const id of child.limits.keys()) company.delete(id);
    }
    children = children.filter((child) => child !== dying && child.age < TRIAL);
  }
}

fuzz(
  "one culprit among as many suspects as a worker holds is isolated after few crashes, and the others wait little",
  100,
  fc.property(fc.integer({ min: 1, max: 201 }), fc.nat(), (suspects, nth) => {
    const { deaths, waited } = play(suspects, nth % suspects, 200);
    expect(deaths).toBeLessThanOrEqual(Math.ceil(Math.log2(suspects)) + 1);
    // Never longer than two leases of those that are in child processes meanwhile.
    expect(waited).toBeLessThanOrEqual(2 * TRIAL);
    return true;
  }),
);

test("suspects without a culprit among them are all synced at once", () => {
  const children: Group[] = [];
  for (let index = 0; index < 200; index++) {
    const limit = companyLimit(null, 200);
    const found = groupFor(children, limit);
    expect(found).not.toBeNull();
    if (found === "new") children.push({ limits: new Map([[`base${index}`, limit]]) });
    else found!.limits.set(`base${index}`, limit);
  }
  expect(children).toHaveLength(2);
});

test("bases that must be alone leave child processes to those that need not", () => {
  const alone = () => ({ limits: new Map([[crypto.randomUUID(), 1]]) });
  expect(groupFor([alone()], 1)).toBe("new");
  expect(groupFor([alone(), alone(), alone()], 1)).toBeNull();
  expect(groupFor([alone(), alone(), alone()], 2)).toBe("new");
});

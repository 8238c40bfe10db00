import { expect, test } from "vitest";
import { Random } from "../../apps/sandbox/random";
import { Parts } from "../chaos/harness/parts";
import type { Supervised } from "../chaos/harness/supervised";
import { type Hit, Timeline } from "../chaos/harness/timeline";

/** Old enough to be over, and recent enough to be remembered. */
const start = performance.now() - 100_000;

function hit(from: number, to: number, boundMs = 60_000): Hit {
  return { from: start + from, to: start + to, bases: [], processes: [], sparesWrites: false, boundMs };
}

/** Healthy at these times, and at no other. */
function wellAt(...times: number[]) {
  return (since: number) => times.map((at) => start + at).find((at) => at > since);
}

function healed(own: Hit, others: Hit[], healedAt: (since: number) => number | undefined) {
  const timeline = new Timeline();
  for (const one of [own, ...others]) timeline.add(one);
  return timeline.healed({ what: "it recovers", own, since: own.to, isInTheWay: () => true, healedAt });
}

test("a fault recovers from its end on", async () => {
  const result = await healed(hit(0, 1000), [hit(8000, 9000)], wellAt(900, 3000));
  expect(result).toEqual({ ms: 2000, isDisturbed: false });
});

test("the clock starts when the last overlapping fault ended, before and during the recovery", async () => {
  const others = [hit(500, 2000), hit(1900, 4000), hit(4500, 6000)];
  expect(await healed(hit(0, 1000), others, wellAt(1500, 5000, 7000))).toEqual({
    ms: 1000,
    isDisturbed: true,
  });
});

test("a fault that came after the recovery changes nothing", async () => {
  const result = await healed(hit(0, 1000), [hit(2500, 9000)], wellAt(2000, 9500));
  expect(result).toEqual({ ms: 1000, isDisturbed: false });
});

test("a fault without recovery is reported, however many faults came in between", async () => {
  const others = [hit(500, 2000), hit(3000, 4000)];
  await expect(healed(hit(0, 1000), others, wellAt(1500))).rejects.toThrow(
    "waited 60000 ms until it recovers",
  );
});

test("a continuing fault is waited for", async () => {
  const timeline = new Timeline();
  const own = timeline.add(hit(0, 1000));
  const other = timeline.add({ ...hit(500, 0), to: Number.POSITIVE_INFINITY });
  const healing = timeline.healed({
    what: "it recovers",
    own,
    since: own.to,
    isInTheWay: () => true,
    healedAt: wellAt(1500, 8000),
  });
  setTimeout(() => Object.assign(other, { to: start + 5000 }), 20);
  expect(await healing).toEqual({ ms: 3000, isDisturbed: true });
});

test("what worked again is not late because it was only known later that another fault had not hit it", async () => {
  const timeline = new Timeline();
  const own = timeline.add(hit(0, 1000));
  const other = timeline.add({ ...hit(500, 0), to: Number.POSITIVE_INFINITY });
  let isInTheWay = true;
  // As a process that is asked whether it is ready.
  const healing = timeline.healed({
    what: "it is ready",
    own,
    since: own.to,
    isInTheWay: (one) => one === other && isInTheWay,
    healedAt: () => (isInTheWay ? start + 3000 : start + 90_000),
  });
  setTimeout(() => {
    isInTheWay = false;
    Object.assign(other, { to: start + 65_000 });
  }, 120);
  expect(await healing).toMatchObject({ ms: 2000 });
});

const processes = ["worker", "worker", "worker", "proxy", "console"].map(
  (role, index) => ({ role, name: `${role} ${index}` }) as Supervised,
);

test("faults in the same part wait for each other, others do not", async () => {
  const parts = new Parts(processes, new Random(1));
  const control = await parts.take({ breaks: ["control"] });
  const source = await parts.take({ breaks: ["source"] });
  let isTaken = false;
  const third = parts.take({ needs: ["control"] }).then((taken) => {
    isTaken = true;
    return taken;
  });
  source.release();
  await Bun.sleep(0);
  expect(isTaken).toBe(false);
  control.release();
  const needing = await third;
  await parts.take({ needs: ["control"] });
  needing.release();
});

test("one of several processes is never hit, and no process is hit twice", async () => {
  const parts = new Parts(processes, new Random(1));
  const later = await parts.take({ role: "worker", isNamedLater: true });
  const one = await parts.take({ role: "worker" });
  expect(later.takes(one.process)).toBe(false);
  expect(later.takes(processes[3])).toBe(false);
  const others = processes.filter((process) => process.role === "worker" && process !== one.process);
  expect(later.takes(others[0])).toBe(true);
  expect(later.takes(others[1])).toBe(false);
  let isTaken = false;
  void parts.take({ role: "worker" }).then(() => {
    isTaken = true;
  });
  await Bun.sleep(0);
  expect(isTaken).toBe(false);
  // If there is only one proxy or console, it may be hit all the same.
  expect((await parts.take({ role: "console" })).process.role).toBe("console");
  one.release();
  await Bun.sleep(0);
  expect(isTaken).toBe(true);
});

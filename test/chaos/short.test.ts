/**
 * The short form: a service of real processes survives one fault of each kind under load. `bun run chaos` is the long
 * form, with all of them.
 */
import { expect, test } from "vitest";
import { Random } from "../../apps/sandbox/random";
import { slowness } from "../support/machine-speed";
import { shortWaves } from "./faults";
import { Chaos } from "./harness/chaos";
import { contractCounts } from "./harness/contract";
import { Figures } from "./harness/figures";
import { TIMES } from "./harness/heal";
import { Service } from "./harness/service";
import { repairsDone } from "./harness/settle";

/** The longest time that a worker's bases wait for another worker, ms; the machine runs other tests. */
const WORKER_LOST_MS = 30_000;
const GREEN_MS = 60_000;

test("I1-I7: whatever is killed, disconnected or full, nothing is lost, no reader sees a wrong state, and it recovers by itself", {
  timeout: 300_000 * slowness(),
  tags: "once",
}, async () => {
  await using service = await Service.start({ modes: ["turbo", "live"] });
  const figures = new Figures();
  const chaos = new Chaos(service, new Random(), figures);
  chaos.people.start();
  try {
    for (const wave of shortWaves)
      expect(await chaos.suffer(wave), wave.map(({ name }) => name).join(", ")).toEqual([]);
  } finally {
    await chaos.people.stop();
  }
  console.log(figures.describe());
  expect(figures.missed).toBe(0);
  expect(chaos.people.answered.ok).toBeGreaterThan(20);
  expect(figures.percentile(TIMES.workerLost, 100)).toBeLessThan(WORKER_LOST_MS);
  const contract = contractCounts(service.bases);
  console.log(contract);
  expect(contract.looks).toBeGreaterThan(50);
  expect(contract.renames).toBeGreaterThan(0);
  expect(await repairsDone(chaos)).toEqual([]);
  expect(await service.untilGreen(GREEN_MS)).toEqual([]);
});

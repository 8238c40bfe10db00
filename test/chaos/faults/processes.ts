/** What happens to processes of ours: killed, frozen, started with a wrong clock, replaced by a new version. */
import { until } from "../../support/poll";
import type { Fault } from "../harness/chaos";
import type { Role } from "../harness/supervised";
import { killed, now } from "./kit";

const HOUR_MS = 3_600_000;

/** Kills a process that has something to do, at any moment. */
export function killAtRandom(role: Role): Fault {
  return {
    name: `kill -9 of a ${role}`,
    weight: role === "worker" ? 6 : 3,
    sparesWrites: true,
    async run(chaos) {
      const victim = chaos.random.pick(chaos.service.of(role));
      await Bun.sleep(chaos.random.int(0, 700));
      return killed(chaos, victim);
    },
  };
}

/** A worker stands still for longer than anybody waits for it, and then goes on as if nothing had been. */
export function freeze(ms: number): Fault {
  return {
    name: `SIGSTOP of a worker for ${ms / 1000} s`,
    weight: ms > 30_000 ? 1 : 3,
    sparesWrites: true,
    async run(chaos) {
      const victim = chaos.random.pick(chaos.service.of("worker"));
      const orphans = await chaos.heldBy(victim);
      const brokenAt = now();
      victim.freeze();
      try {
        await Bun.sleep(ms);
      } finally {
        victim.thaw();
      }
      return { brokenAt, mendedAt: now(), orphans };
    },
  };
}

/** A process that starts with the time of day an hour off, and keeps it until it is started again. */
export const clockOff: Fault = {
  name: "the clock of one process an hour off",
  weight: 3,
  sparesWrites: true,
  async run(chaos) {
    const process = chaos.random.pick(chaos.service.processes);
    process.clockShiftMs = chaos.random.pick([-HOUR_MS, HOUR_MS, 0]);
    const pid = process.pid;
    const done = await killed(chaos, process);
    await until(() => process.pid !== pid && process.isReady(), {
      what: "it is up again",
      timeoutMs: 30_000,
    });
    return { ...done, mendedAt: now() };
  },
};

/** A version is rolled out: told to end, a process does so by itself and in order. */
export const rollOut: Fault = {
  name: "SIGTERM of a process, as of a new version",
  weight: 3,
  sparesWrites: true,
  async run({ service, random }) {
    const process = random.pick(service.processes);
    const brokenAt = now();
    const code = await process.stop();
    if (code !== 0) process.faults.push(`${process.name} ended with ${code} at SIGTERM`);
    await until(() => process.isReady(), { what: "it is up again", timeoutMs: 30_000, intervalMs: 50 });
    return { brokenAt, mendedAt: now() };
  },
};

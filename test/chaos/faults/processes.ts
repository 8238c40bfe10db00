/** Faults of our processes: killed, suspended, started with a wrong clock, replaced by a new version. */
import { until } from "../../support/poll";
import type { Fault } from "../harness/chaos";
import type { Role } from "../harness/supervised";
import { allParts, killed, now } from "./kit";

const HOUR_MS = 3_600_000;
/** The longest start of a process on a busy machine, ms. */
const START_MS = 30_000;

const ROLES: Role[] = ["worker", "worker", "proxy", "proxy", "console"];

/** Kills a busy process at a random moment. */
export function killAtRandom(role: Role): Fault {
  return {
    name: `kill -9 of a ${role}`,
    weight: role === "worker" ? 6 : 3,
    sparesWrites: true,
    aim: (chaos) => ({
      role,
      async run({ process }) {
        await Bun.sleep(chaos.random.int(0, 700));
        return killed(chaos, process);
      },
    }),
  };
}

/** Suspends a worker for longer than any time-out, and then resumes it. */
export function freeze(ms: number): Fault {
  return {
    name: `SIGSTOP of a worker for ${ms / 1000} s`,
    weight: ms > 30_000 ? 1 : 3,
    sparesWrites: true,
    lastsMs: ms,
    aim: (chaos) => ({
      role: "worker",
      async run({ process }) {
        const orphans = await chaos.heldBy(process);
        const brokenAt = now();
        process.freeze();
        try {
          await Bun.sleep(ms);
        } finally {
          process.thaw();
        }
        return { brokenAt, repairedAt: now(), orphans };
      },
    }),
  };
}

/** Starts a process with a time of day that is an hour off, until its next start. */
export const clockOff: Fault = {
  name: "the clock of one process an hour off",
  weight: 3,
  sparesWrites: true,
  aim: (chaos) => ({
    role: chaos.random.pick(ROLES),
    needs: allParts(chaos.service),
    async run({ process }) {
      process.clockShiftMs = chaos.random.pick([-HOUR_MS, HOUR_MS, 0]);
      const pid = process.pid;
      const done = await killed(chaos, process);
      await until(() => process.pid !== pid && process.isReady(), {
        what: "it is up again",
        timeoutMs: START_MS,
      });
      return { ...done, repairedAt: now() };
    },
  }),
};

/** Rolls out a version: a process that is told to stop ends by itself and in order. */
export const rollOut: Fault = {
  name: "SIGTERM of a process, as of a new version",
  weight: 3,
  sparesWrites: true,
  aim: (chaos) => ({
    role: chaos.random.pick(ROLES),
    needs: allParts(chaos.service),
    async run({ process }) {
      // Before that, its runtime ends it at once, as any program.
      await until(() => process.isReady(), { what: "it is up", timeoutMs: START_MS, intervalMs: 50 });
      const brokenAt = now();
      const code = await process.stop();
      if (code !== 0) process.faults.push(`${process.name} ended with ${code} at SIGTERM`);
      await until(() => process.isReady(), {
        what: "it is up again",
        timeoutMs: START_MS,
        intervalMs: 50,
      });
      return { brokenAt, repairedAt: now() };
    },
  }),
};

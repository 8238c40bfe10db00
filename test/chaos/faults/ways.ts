/** Faults of the connections between processes: cut, slow, narrow, half open, blackholed. */
import { CAN_DEAFEN } from "../../support/deaf-socket";
import type { Chaos, Fault } from "../harness/chaos";
import type { Claim, Taken } from "../harness/parts";
import type { SourceWay, Spoilable } from "../harness/source-lines";
import { now } from "./kit";

type Way = "control plane" | "replicas" | "source";

/** The target of the fault: one process's connection, or every connection to some replicas. */
function aim(
  chaos: Chaos,
  way: Way,
): { claim: Claim; lines: (taken: Taken) => (Spoilable & Partial<SourceWay>)[] } {
  if (way === "replicas") {
    const clusters = chaos.pickClusters();
    return {
      claim: { breaks: clusters.map(({ part }) => part) },
      lines: () => clusters.map(({ line }) => line),
    };
  }
  const roles = chaos.service.processes.map(({ role }) => role);
  const role = chaos.random.pick(roles.filter((one) => way !== "source" || one !== "console"));
  return {
    claim: { role, needs: [way === "source" ? "source" : "control"] },
    lines: ({ process }) => [way === "source" ? process.source : process.control],
  };
}

/** Disturbs one process's connection, or every connection to the replicas, for some seconds. */
function spoilt(
  way: Way,
  how: string,
  spoil: (line: Spoilable, chaos: Chaos) => void | Promise<void>,
  isCutAtEnd = false,
): Fault {
  return {
    name: `the way to the ${way} ${how}`,
    weight: 2,
    aim(chaos) {
      const { claim, lines } = aim(chaos, way);
      return {
        ...claim,
        async run(taken) {
          const brokenAt = now();
          for (const line of lines(taken)) {
            line.countFromSent?.();
            await spoil(line, chaos);
          }
          await Bun.sleep(chaos.random.int(2000, 9000));
          for (const line of lines(taken)) {
            if (isCutAtEnd) line.reset();
            line.restore();
          }
          return { brokenAt, repairedAt: now() };
        },
      };
    },
  };
}

const WAYS: Way[] = ["control plane", "replicas", "source"];

const SLOW_MS: [number, number] = [40, 250];

/**
 * Adds latency to the source for some seconds, for all processes alike; requests count from their arrival. At the end,
 * requests under way are dropped, because they would arrive together.
 */
const farSource: Fault = {
  name: "the way to the source slow, then cut",
  weight: 2,
  aim: ({ service, random }) => ({
    breaks: ["source"],
    async run() {
      const lines = service.processes.map(({ source }) => source);
      const [brokenAt, delayMs] = [now(), random.int(...SLOW_MS)];
      for (const line of lines) line.delayMs = delayMs;
      await Bun.sleep(random.int(2000, 9000));
      for (const line of lines) {
        line.reset();
        line.restore();
      }
      return { brokenAt, repairedAt: now() };
    },
  }),
};

export const spoiltWays: Fault[] = [
  farSource,
  ...WAYS.flatMap((way) => [
    spoilt(way, "cut", (line) => line.cut()),
    spoilt(way, "slow", (line, { random }) => {
      line.delayMs = random.int(...SLOW_MS);
    }),
    spoilt(way, "narrow", (line) => {
      line.upBytesPerSecond = line.downBytesPerSecond = 30_000;
    }),
    spoilt(way, "half open, then as before", (line) => line.stall()),
    spoilt(way, "half open, then cut", (line) => line.stall(), true),
    // Existing connections are dead without notice, and stay so; new connections are served. Requests to the source
    // have our time-out; connections to databases end when their data is not acknowledged.
    spoilt(way, "blackholed", (line) => line.blackhole(), way !== "source" && !CAN_DEAFEN),
  ]),
];

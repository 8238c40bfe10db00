/** What happens to the ways between processes: cut, slow, narrow, half open, blackholed. */
import { CAN_DEAFEN } from "../../support/deaf-socket";
import type { Chaos, Fault } from "../harness/chaos";
import type { Claim, Taken } from "../harness/parts";
import type { SourceWay, Spoilable } from "../harness/source-lines";
import { now } from "./kit";

type Way = "control plane" | "replicas" | "source";

/** At whom a spoiled way is aimed: one process's way, or everybody's to some replicas. */
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

/** The way of one process, or everybody's to the replicas, is spoiled for some seconds. */
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
 * The source is further away for some seconds, for all processes alike, and what they send counts from when it arrives. In
 * the end what is on its way is lost, where it would come in a bunch.
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
    // What was connected is dead without a word, and stays so; whoever connects anew is served. Requests to the source
    // have a time-out of ours; connections to databases end when nobody acknowledges what they send.
    spoilt(way, "blackholed", (line) => line.blackhole(), way !== "source" && !CAN_DEAFEN),
  ]),
];

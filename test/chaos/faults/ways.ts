/** What happens to the ways between processes: cut, slow, narrow, half open, stranded. */
import { CAN_DEAFEN } from "../../support/deaf-socket";
import type { FaultLine } from "../../support/fault-line";
import { clockMs } from "../../support/stall-watch";
import type { Chaos, Fault } from "../harness/chaos";
import { now } from "./kit";

type Way = "control plane" | "replicas" | "source";

function waysTo({ service, random }: Chaos, way: Way): FaultLine[] {
  if (way === "replicas") return [service.replicaLine];
  const process = random.pick(service.processes.filter(({ role }) => way !== "source" || role !== "console"));
  return [way === "source" ? process.source : process.control];
}

/** The way of one process, or everybody's to the replicas, is spoiled for some seconds. */
function spoilt(
  way: Way,
  how: string,
  spoil: (line: FaultLine, chaos: Chaos) => void | Promise<void>,
  isCutAtEnd = false,
): Fault {
  return {
    name: `the way to the ${way} ${how}`,
    weight: 2,
    async run(chaos) {
      const lines = waysTo(chaos, way);
      const [brokenAt, from] = [now(), clockMs()];
      for (const line of lines) await spoil(line, chaos);
      await Bun.sleep(chaos.random.int(2000, 9000));
      for (const line of lines) {
        if (isCutAtEnd) line.reset();
        line.mend();
      }
      if (way === "source") chaos.service.excuses.push({ from, to: clockMs(), ms: Number.POSITIVE_INFINITY });
      return { brokenAt, mendedAt: now() };
    },
  };
}

const WAYS: Way[] = ["control plane", "replicas", "source"];

export const spoiltWays: Fault[] = WAYS.flatMap((way) => [
  spoilt(way, "cut", (line) => line.cut()),
  spoilt(way, "slow", (line, { random }) => {
    line.delayMs = random.int(40, 250);
  }),
  spoilt(way, "narrow", (line) => {
    line.bytesPerSecond = 30_000;
  }),
  spoilt(way, "half open, then as before", (line) => line.stall()),
  spoilt(way, "half open, then cut", (line) => line.stall(), true),
  // What was connected is dead without a word, and stays so; whoever connects anew is served. Requests to the source
  // have a time-out of ours; connections to databases end when nobody acknowledges what they send.
  spoilt(way, "stranded", (line) => line.strand(), way !== "source" && !CAN_DEAFEN),
]);

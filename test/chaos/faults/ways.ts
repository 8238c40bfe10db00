/** What happens to the ways between processes: cut, slow, narrow, half open, stranded. */
import { CAN_DEAFEN } from "../../support/deaf-socket";
import type { Chaos, Fault } from "../harness/chaos";
import type { Spoilable } from "../harness/source-lines";
import { now } from "./kit";

type Way = "control plane" | "replicas" | "source";

function waysTo({ service, random }: Chaos, way: Way): Spoilable[] {
  if (way === "replicas") return [service.replicaLine];
  const process = random.pick(service.processes.filter(({ role }) => way !== "source" || role !== "console"));
  return [way === "source" ? process.source : process.control];
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
    async run(chaos) {
      const lines = waysTo(chaos, way);
      const brokenAt = now();
      for (const line of lines) await spoil(line, chaos);
      await Bun.sleep(chaos.random.int(2000, 9000));
      for (const line of lines) {
        if (isCutAtEnd) line.reset();
        line.mend();
      }
      return { brokenAt, mendedAt: now() };
    },
  };
}

const WAYS: Way[] = ["control plane", "replicas", "source"];

const SLOW_MS: [number, number] = [40, 250];

const slow = (way: Way): Fault =>
  spoilt(way, "slow", (line, { random }) => {
    line.delayMs = random.int(...SLOW_MS);
  });

/**
 * The source is further away for some seconds, for all processes alike: what one sends then arrives among what another
 * sent later, if that is near as before, and no margin that follows the network can know of that at once. In the end
 * what is on its way is lost, where it would come in a bunch.
 */
const farSource: Fault = {
  name: "the way to the source slow, then cut",
  weight: 2,
  async run({ service, random }) {
    const lines = service.processes.map(({ source }) => source);
    const [brokenAt, delayMs] = [now(), random.int(...SLOW_MS)];
    for (const line of lines) line.delayMs = delayMs;
    await Bun.sleep(random.int(2000, 9000));
    for (const line of lines) {
      line.reset();
      line.mend();
    }
    return { brokenAt, mendedAt: now() };
  },
};

export const spoiltWays: Fault[] = WAYS.flatMap((way) => [
  spoilt(way, "cut", (line) => line.cut()),
  way === "source" ? farSource : slow(way),
  // For the source, of answers: how long a narrow way takes a request depends on its size.
  spoilt(way, "narrow", (line) => {
    line.downBytesPerSecond = 30_000;
    if (way !== "source") line.upBytesPerSecond = 30_000;
  }),
  spoilt(way, "half open, then as before", (line) => line.stall()),
  spoilt(way, "half open, then cut", (line) => line.stall(), true),
  // What was connected is dead without a word, and stays so; whoever connects anew is served. Requests to the source
  // have a time-out of ours; connections to databases end when nobody acknowledges what they send.
  spoilt(way, "stranded", (line) => line.strand(), way !== "source" && !CAN_DEAFEN),
]);

/** A server is lost for good, and its standby takes its place at another address. */
import type { Fault } from "../harness/chaos";
import type { Database } from "./databases";
import { now } from "./kit";

/** What an asynchronous standby lacks, ms of writes. */
const LAG_MS: [number, number] = [300, 2000];
/** Until whoever looks after the servers has seen that one is dead, ms. Answers under way arrive by then. */
const NOTICED_MS: [number, number] = [500, 3000];
/** Rows that a server has lost are found by reading everything again, ms. */
const FOUND_MS = 120_000;

/**
 * @param kind with a synchronous standby nothing that was answered is lost. With an asynchronous one the server loses the
 *   last writes: SQL does not owe them any more, but everything has to be equal in the end
 */
export function promote(which: Database, kind: "synchronous" | "asynchronous"): Fault {
  return {
    name: `promotion of ${kind === "synchronous" ? "a" : "an"} ${kind} standby: ${which}`,
    weight: 2,
    ...(kind === "asynchronous" ? { boundMs: FOUND_MS } : {}),
    aim({ service, random }) {
      const cluster = which === "replicas" ? random.pick(service.clusters) : undefined;
      const server = cluster?.postgres ?? service.control;
      const part = cluster?.part ?? "control";
      return {
        breaks: [part],
        async run() {
          await using standby = await server.standby();
          let rewind: (() => void)[] = [];
          if (kind === "synchronous") await standby.setSynchronous(true);
          else {
            rewind = service.bases.filter((base) => base.cluster === cluster).map((base) => base.mark());
            await standby.caughtUp();
            standby.replication.cut();
          }
          await Bun.sleep(random.int(...LAG_MS));
          const brokenAt = now();
          await server.failOver(standby, async () => {
            await Bun.sleep(random.int(...NOTICED_MS));
            for (const one of rewind) one();
          });
          return { brokenAt, repairedAt: now(), returned: [part] };
        },
      };
    },
  };
}

/** Loses a server for good; its standby is promoted at another address. */
import type { Fault } from "../harness/chaos";
import type { Database } from "./databases";
import { now } from "./kit";

/** How far an asynchronous standby lags behind, ms of writes. */
const LAG_MS: [number, number] = [300, 2000];
/** The time until an operator has noticed that a server is dead, ms. Answers that are under way arrive by then. */
const NOTICED_MS: [number, number] = [500, 3000];
/** Rows that a server has lost are found by a full check, ms. */
const FOUND_MS = 120_000;

/**
 * @param kind with a synchronous standby, nothing that was confirmed is lost. With an asynchronous one, the server
 *   loses the last writes: SQL need not show them any more, but must be equal to the source in the end
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

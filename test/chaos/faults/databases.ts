/** Faults of databases: killed, unreachable, full. */

import { until } from "../../support/poll";
import { fillDisk } from "../harness/audit";
import { type Chaos, type Fault, NotReached } from "../harness/chaos";
import type { Part } from "../harness/parts";
import type { WatchedBase } from "../harness/watched-base";
import { now } from "./kit";

export type Database = "control" | "replicas";

/** The affected servers: the control plane's, and one or all of the replicas' servers. */
function pick(chaos: Chaos, which: readonly Database[]) {
  const { service } = chaos;
  const clusters = which.includes("replicas") ? chaos.pickClusters() : [];
  const isControl = which.includes("control");
  const parts: Part[] = [...(isControl ? ["control" as const] : []), ...clusters.map(({ part }) => part)];
  const servers = [...(isControl ? [service.control] : []), ...clusters.map(({ postgres }) => postgres)];
  const lines = [
    ...(isControl ? service.processes.map(({ control }) => control) : []),
    ...clusters.map(({ line }) => line),
  ];
  return { parts, servers, lines, clusters };
}

/** Kills Postgres, and restarts it after a moment. */
export function killDatabases(...which: Database[]): Fault {
  return {
    name: `kill -9 of Postgres: ${which.join(" and ")}`,
    weight: 3,
    aim(chaos) {
      const { parts, servers } = pick(chaos, which);
      return {
        breaks: parts,
        async run() {
          const brokenAt = now();
          await Promise.all(servers.map((one) => one.kill()));
          await Bun.sleep(chaos.random.int(0, 4000));
          await Promise.all(servers.map((one) => one.start()));
          return { brokenAt, repairedAt: now(), returned: parts };
        },
      };
    },
  };
}

/**
 * Kills one backend, which makes the server end all its processes and recover. Until it has, it belongs to this fault: a
 * promotion, say, could not even begin.
 */
export function killBackend(which: Database): Fault {
  return {
    name: `kill -9 of a backend of Postgres: ${which}`,
    weight: 2,
    aim(chaos) {
      const { parts, servers } = pick(chaos, [which]);
      return {
        breaks: parts,
        async run() {
          const hitAt: number[] = [];
          for (const server of servers) {
            // After another fault, clients may not be back yet.
            await until(() => server.killBackend(), { what: "a backend serves a client" }).catch(
              (error: Error) => {
                throw new NotReached(error.message);
              },
            );
            hitAt.push(now());
          }
          await Promise.all(servers.map((server) => server.recovered()));
          return { brokenAt: hitAt[0]!, repairedAt: hitAt.at(-1)! };
        },
      };
    },
  };
}

/** Makes the database unreachable for a while, although it runs. */
export function away(which: Database[], ms: number): Fault {
  return {
    name: `${which.join(" and ")} away for ${ms / 1000} s`,
    weight: ms > 30_000 ? 1 : 3,
    lastsMs: ms,
    aim(chaos) {
      const { parts, lines } = pick(chaos, which);
      return {
        breaks: parts,
        async run() {
          const brokenAt = now();
          for (const line of lines) line.cut();
          await Bun.sleep(ms);
          for (const line of lines) line.restore();
          return { brokenAt, repairedAt: now(), returned: parts };
        },
      };
    },
  };
}

export const diskFull: Fault = {
  name: "the replicas' disk full",
  weight: 3,
  aim(chaos) {
    const { parts, clusters } = pick(chaos, ["replicas"]);
    return {
      breaks: parts,
      async run() {
        const bases = chaos.service.bases.filter(({ cluster }) => clusters.includes(cluster));
        const brokenAt = now();
        try {
          for (const base of bases) await fillDisk(base.owner, true);
          await Bun.sleep(chaos.random.int(2000, 6000));
        } finally {
          for (const base of bases) await freeDisk(base);
        }
        return { brokenAt, repairedAt: now() };
      },
    };
  },
};

/** Also after a failure: a disk that stayed full would break everything that follows. */
function freeDisk({ owner }: WatchedBase): Promise<true> {
  const options = { what: "the disk is free again", retryErrors: true };
  return until(() => fillDisk(owner, false).then(() => true as const), options);
}

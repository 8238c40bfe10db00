/** What happens to the databases: killed, out of reach, full. */
import { fillDisk } from "../harness/audit";
import type { Database, Fault } from "../harness/chaos";
import { now } from "./kit";

/** Kills Postgres, and starts it again after a moment. */
export function killDatabases(...which: Database[]): Fault {
  return {
    name: `kill -9 of Postgres: ${which.join(" and ")}`,
    weight: 3,
    async run(chaos) {
      const brokenAt = now();
      await Promise.all(which.map((one) => chaos.service[one].kill()));
      await Bun.sleep(chaos.random.int(0, 4000));
      await Promise.all(which.map((one) => chaos.service[one].start()));
      return { brokenAt, mendedAt: now(), returned: which };
    },
  };
}

/** One backend dies, and the server restarts all of them. */
export function killBackend(which: Database): Fault {
  return {
    name: `kill -9 of a backend of Postgres: ${which}`,
    weight: 2,
    async run(chaos) {
      const brokenAt = now();
      chaos.service[which].killBackend();
      return { brokenAt, mendedAt: now() };
    },
  };
}

/** The database cannot be reached for a while, though it runs. */
export function away(which: Database[], ms: number): Fault {
  return {
    name: `${which.join(" and ")} away for ${ms / 1000} s`,
    weight: ms > 30_000 ? 1 : 3,
    async run({ service }) {
      const lines = which.flatMap((one) =>
        one === "replicas" ? [service.replicaLine] : service.processes.map((process) => process.control),
      );
      const brokenAt = now();
      for (const line of lines) line.cut();
      await Bun.sleep(ms);
      for (const line of lines) line.mend();
      return { brokenAt, mendedAt: now(), returned: which };
    },
  };
}

export const diskFull: Fault = {
  name: "the replicas' disk full",
  weight: 3,
  async run({ service, random }) {
    const brokenAt = now();
    for (const base of service.bases) await fillDisk(base.owner, true);
    await Bun.sleep(random.int(2000, 6000));
    for (const base of service.bases) await fillDisk(base.owner, false);
    return { brokenAt, mendedAt: now() };
  },
};

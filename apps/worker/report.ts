/** A worker's report to the fleet: one row in the control plane, while the worker runs. */
import { hostname } from "node:os";
import type { Config } from "../../core/config";
import type { Db } from "../../core/context";
import { removeProcess, reportWorker } from "../../core/control/fleet";

export function workerReport({ db, config }: { db: Db; config: Config }) {
  const id = crypto.randomUUID();
  const startedAt = new Date();
  let latest: Promise<unknown> = Promise.resolve();
  let hasEnded = false;
  return {
    id,
    /** @param bases the number of bases that the worker holds. @returns all workers that are alive */
    async send(bases: number): ReturnType<typeof reportWorker> {
      if (hasEnded) return [];
      const [host, capacity] = [hostname(), config.workerConcurrency];
      const sent = reportWorker(db, { id, host, pid: process.pid, startedAt, bases, capacity });
      latest = sent;
      return sent;
    },
    async end(): Promise<void> {
      hasEnded = true;
      // A report that arrives late would insert the row again.
      await latest.catch(() => {});
      await removeProcess(db, id);
    },
  };
}

/** What a worker says of itself to the fleet: one row in the control plane, while it runs. */
import { hostname } from "node:os";
import type { Config } from "../../core/config";
import type { Db } from "../../core/context";
import { removeWorker, reportWorker } from "../../core/control";

export function workerReport({ db, config }: { db: Db; config: Config }) {
  const id = crypto.randomUUID();
  const startedAt = new Date();
  let latest: Promise<void> = Promise.resolve();
  return {
    /** @param bases those in hand */
    send(bases: number): Promise<void> {
      const [host, capacity] = [hostname(), config.workerConcurrency];
      latest = reportWorker(db, { id, host, pid: process.pid, startedAt, bases, capacity });
      return latest;
    },
    async end(): Promise<void> {
      // A report that comes late would bring the row back.
      await latest.catch(() => {});
      await removeWorker(db, id);
    },
  };
}

/** The running processes of the service: each reports itself and its version to the control plane. */
import { hostname } from "node:os";
import { version } from "../../../package.json" with { type: "json" };
import { repeat, withTimeout } from "../../async";
import type { Db } from "../../context";

/** A process without a report for this long is shown as dead. */
export const SILENCE = "15 seconds";
const REPORT_MS = 6000;
/** Longest time that a stopping process waits for the control plane, ms. Its row counts as dead soon after. */
const STOP_MS = 1000;

export interface ProcessReport {
  id: string;
  role: "worker" | "proxy" | "console";
  host: string;
  pid: number;
  startedAt: Date;
  /** Of a worker: bases that it holds, and the most that it takes. */
  bases?: number;
  capacity?: number;
}

interface RunningVersion {
  role: ProcessReport["role"];
  version: string;
  processes: number;
}

/** The statement that reports that the process is alive, for every few seconds. */
export function reported(db: Db, process: ProcessReport) {
  const { id, role, host, pid, startedAt, bases = 0, capacity = 0 } = process;
  return db`
    insert into processes (id, role, version, host, pid, started_at, seen_at, bases, capacity)
    values (${id}, ${role}, ${version}, ${host}, ${pid}, ${startedAt}, now(), ${bases}, ${capacity})
    on conflict (id) do update set seen_at = now(), bases = excluded.bases`;
}

/** Removes a stopped process. */
export async function removeProcess(db: Db, id: string): Promise<void> {
  await db`delete from processes where id = ${id}`;
}

/** Reports a proxy or a console until it is stopped; while the control plane is away, nothing needs to know of it. */
export function startReports(db: Db, role: "proxy" | "console") {
  const own = { id: crypto.randomUUID(), role, host: hostname(), pid: process.pid, startedAt: new Date() };
  const sending = repeat(
    REPORT_MS,
    async () => reported(db, own),
    () => {},
  );
  void sending.now();
  return {
    id: own.id,
    async stop(): Promise<void> {
      // A report that arrives late would insert the row again.
      const removed = sending.stop().then(() => removeProcess(db, own.id));
      await withTimeout(
        STOP_MS,
        () => {},
        removed.catch(() => {}),
      );
    },
  };
}

/** The versions of the processes that are alive, by role. */
export async function runningVersions(db: Db): Promise<RunningVersion[]> {
  return db<RunningVersion[]>`
    select role, version, count(*)::int as processes from processes
    where seen_at > now() - ${SILENCE}::interval group by role, version order by role desc, version`;
}

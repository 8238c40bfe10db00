/**
 * Takes sync jobs from the queue and holds a lease for each, up to the configured number at once.
 *
 * I7. Whatever dies is found by its missing heartbeat and queued again by any worker's reconciler.
 */
import { Gauge } from "prom-client";
import { recordRun } from "../../core/control";
import { BasetideError, isBasetideError } from "../../core/errors";
import type { Queue, SyncJob } from "../../core/queue";
import { failedRun, failurePauseMs, holdLease, type Memories, type SyncContext } from "../../core/sync";
import { wait } from "../../core/wait";
import { workerReport } from "./report";

const HEARTBEAT_MS = 3000;
/** How often bases without a job are looked for. */
const RECONCILE_MS = 2000;
/** How often the queue is looked at when nobody rings. */
const POLL_MS = 1000;
/** Longest that a stopping worker waits for the pages in hand. */
const DRAIN_MS = 10_000;

export interface Worker {
  /** Bases in hand. */
  readonly busy: number;
  /** Stops taking jobs, finishes the pages in hand, gives the leases back. */
  stop(): Promise<void>;
}

/** Starts taking jobs. */
export async function runWorker(ctx: SyncContext, queue: Queue): Promise<Worker> {
  const { log, config } = ctx;
  const stop = new AbortController();
  const kill = new AbortController();
  const memories: Memories = new Map();
  const leases = new Map<SyncJob, Promise<void>>();
  /** Leases in a row that failed, by base id. */
  const failures = new Map<string, number>();
  let wake = Promise.withResolvers<void>();
  const ring = () => wake.resolve();

  new Gauge({
    name: "basetide_worker_bases",
    help: "Bases whose lease this worker holds",
    registers: [ctx.metrics],
    collect() {
      this.set(leases.size);
    },
  });

  /** What is not queued again here the reconciler queues, when it is to be synced. */
  async function hold(job: SyncJob): Promise<void> {
    const again = await lease(job);
    leases.delete(job);
    await queue.finish(job, again && !stop.signal.aborted).catch((error: unknown) => {
      log.warn({ baseId: job.baseId, error }, "job not finished");
    });
    ring();
  }

  /** @returns whether the base is to go on at once */
  async function lease({ baseId }: SyncJob): Promise<boolean> {
    try {
      const again = await holdLease(ctx, baseId, memories, { stop: stop.signal, kill: kill.signal });
      failures.delete(baseId);
      return again;
    } catch (error) {
      if (isBasetideError(error, "not_found")) return false;
      const inARow = (failures.get(baseId) ?? 0) + 1;
      failures.set(baseId, inARow);
      log.error({ baseId, error }, "lease failed");
      await recordRun(ctx.db, baseId, failedRun(error)).catch(() => {});
      // The job stays in hand meanwhile, so that no other worker takes it at once.
      await wait(failurePauseMs(inARow), stop.signal).catch(() => {});
      return false;
    }
  }

  async function takeJobs(): Promise<void> {
    while (!stop.signal.aborted) {
      const free = config.workerConcurrency - leases.size;
      wake = Promise.withResolvers<void>();
      try {
        const jobs = free > 0 ? await queue.fetch(free) : [];
        for (const job of jobs) leases.set(job, hold(job));
      } catch (error) {
        log.warn({ error }, "jobs not fetched");
      }
      await Promise.race([wake.promise, Bun.sleep(POLL_MS)]);
    }
  }

  /** Calls `work` every `ms`, never twice at once, until the worker has stopped. */
  function every(ms: number, what: string, work: () => Promise<unknown>): () => void {
    let isRunning = false;
    const timer = setInterval(async () => {
      if (isRunning) return;
      isRunning = true;
      await work().catch((error: unknown) => log.warn({ error }, what));
      isRunning = false;
    }, ms);
    return () => clearInterval(timer);
  }

  const stopHeartbeats = every(HEARTBEAT_MS, "heartbeat not sent", () => queue.heartbeat([...leases.keys()]));
  const report = workerReport(ctx);
  const stopReports = every(HEARTBEAT_MS, "worker not reported", () => report.send(leases.size));
  const stopReconciling = every(RECONCILE_MS, "queue not reconciled", async () => {
    if ((await queue.reconcile()) > 0) ring();
  });
  await queue.onRequest(ring);
  await report.send(0).catch((error: unknown) => log.warn({ error }, "worker not reported"));
  const taking = takeJobs();

  return {
    get busy() {
      return leases.size;
    },
    async stop() {
      stopReconciling();
      stop.abort(new BasetideError("sync_stopped"));
      ring();
      const cutOff = setTimeout(() => kill.abort(new BasetideError("sync_stopped")), DRAIN_MS);
      await taking;
      await Promise.all(leases.values());
      clearTimeout(cutOff);
      stopHeartbeats();
      stopReports();
      await report.end().catch((error: unknown) => log.warn({ error }, "worker not signed off"));
    },
  };
}

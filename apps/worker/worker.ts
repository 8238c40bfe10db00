/**
 * Takes sync jobs from the queue and holds their bases (`Holds`), up to its share and capacity.
 *
 * I7. A base whose worker dies is detected by the missing heartbeat and queued again by any worker's reconciler.
 */
import { Counter, Gauge } from "prom-client";
import { Notifier, withTimeout } from "../../core/async";
import { basesBuilding, livingWorkers } from "../../core/control/fleet";
import type { Queue } from "../../core/queue";
import { shareServers } from "../../core/replica";
import { holdLease } from "../../core/sync/lease";
import { evictFingerprints } from "../../core/sync/state";
import { type Balance, balance } from "./balance";
import { watchFreezes } from "./freeze-watch";
import { Holds } from "./holds";
import { repeat } from "./repeat";
import { workerReport } from "./report";
import type { WorkerContext } from "./sync-context";

const HEARTBEAT_MS = 3000;
/** How often the load is balanced, and how often the first of all workers looks for bases without a job. */
const BALANCE_MS = 2000;
/**
 * How often the other workers look for them, in case the first does not; and how often the memory of fingerprints is
 * checked. A full sync reads no more than 50,000 records of a base meanwhile.
 */
const SELDOM_MS = 10_000;
/** How often the queue is polled without a notification; and while it may contain more jobs than were taken. */
const POLL_MS = 1000;
const POLL_MORE_MS = 200;
/**
 * Leases that may be starting at the same time: each connects to a replica, and takes CPU of this process and of the
 * server. If these are slow, fewer bases are taken.
 */
const MOST_OPENING = 50;
/** Longest wait of a stopping worker to sign off at the control plane. */
const SIGN_OFF_MS = 1000;
/** A process frozen for this long has lost its jobs because of that, ms; and it learns of the loss within this time. */
const FROZEN_MS = 8_000;
const FROZEN_NOTED_MS = 30_000;
const MB = 2 ** 20;

export interface Worker {
  /** Number of bases held. */
  readonly busy: number;
  /** The child processes that sync suspects. */
  readonly children: { pid: number; bases: string[] }[];
  /** Stops taking jobs, finishes the current pages, gives the bases back. */
  stop(): Promise<void>;
}

/**
 * Starts taking jobs.
 *
 * @param leaseBase holds a lease; a simulation has its own
 */
export async function runWorker(ctx: WorkerContext, queue: Queue, leaseBase = holdLease): Promise<Worker> {
  const { log, config, db } = ctx;
  const capacity = config.workerConcurrency;
  const stopping = new AbortController();
  const report = workerReport(ctx);
  const freezes = watchFreezes();
  let now: Balance = { share: 0, overdue: 0, excess: 0, isFirst: false };
  const notifier = new Notifier();
  const holds: Holds = new Holds(ctx, queue, {
    leaseBase,
    isSaturated: () => now.overdue > 0 && holds.size >= capacity,
    onRoom: () => notifier.notify(),
  });
  const metrics = workerMetrics(ctx, { bases: () => holds.size, share: () => now.share });

  async function takeJobs(): Promise<void> {
    while (!stopping.signal.aborted) {
      let isMore = false;
      try {
        const most = mayTake();
        const jobs = most > 0 ? await queue.fetch(most) : [];
        isMore = jobs.length === most;
        await holds.take(jobs);
      } catch (error) {
        log.warn({ error }, "fetching jobs failed");
      }
      await notifier.wait(isMore ? POLL_MORE_MS : POLL_MS, stopping.signal).catch(() => {});
    }
  }

  function mayTake(): number {
    const due = Math.max(now.share - holds.size, now.overdue);
    return Math.min(capacity - holds.size, due, MOST_OPENING - holds.opening);
  }

  async function beat(): Promise<void> {
    const lost = await queue.heartbeat(holds.jobs);
    const known = new Set(holds.jobs);
    const baseIds = lost.filter((job) => known.has(job)).map((job) => job.baseId);
    if (baseIds.length === 0) return;
    // The control plane was unreachable, or this process frozen. Bases that no other worker has taken meanwhile stay
    // here, with their caches.
    if (!freezes.stoodStill(FROZEN_MS, FROZEN_NOTED_MS)) await queue.forgive(lost);
    await holds.take(await queue.reclaim(baseIds));
    holds.lose(lost);
  }

  async function shareOut(): Promise<void> {
    const held = holds.lasting;
    await report.send(held);
    const [load, workers] = await Promise.all([queue.load(), livingWorkers(db)]);
    shareServers(workers.length);
    now = balance(report.id, held, load, workers);
    holds.forgetOld();
    if (now.excess > 0) {
      const bases = await holds.giveUp(now.excess, (ids) => basesBuilding(db, ids));
      if (bases > 0) log.info({ bases, share: now.share }, "bases released to other workers");
      metrics.givenUp.inc(bases);
    }
    if (mayTake() > 0) notifier.notify();
  }

  let reconciledAt = Number.NEGATIVE_INFINITY;
  async function reconcile(): Promise<void> {
    if (!now.isFirst && performance.now() - reconciledAt < SELDOM_MS) return;
    reconciledAt = performance.now();
    if ((await queue.reconcile()) > 0) notifier.notify();
  }

  async function evict(): Promise<void> {
    const mostBytes = config.workerFingerprintsMb * MB;
    const { bytes, evicted } = evictFingerprints(holds.caches.values(), mostBytes);
    metrics.fingerprintBytes.set(bytes);
    metrics.evicted.inc(evicted);
  }

  const beating = repeat(HEARTBEAT_MS, log, "sending a heartbeat failed", beat);
  const sharing = repeat(BALANCE_MS, log, "balancing load failed", shareOut);
  const reconciling = repeat(BALANCE_MS, log, "queue reconcile failed", reconcile);
  const evicting = repeat(SELDOM_MS, log, "evicting fingerprints failed", evict);
  // A stopping worker leaves its share to the others before it gives its bases back.
  await queue.onRequest(() => void sharing.now().then(() => notifier.notify()));
  await sharing.now();
  const taking = takeJobs();

  return {
    get busy() {
      return holds.size;
    },
    get children() {
      return holds.isolation.children;
    },
    async stop() {
      stopping.abort();
      sharing.stop();
      reconciling.stop();
      evicting.stop();
      const signingOff = report
        .end()
        .catch((error: unknown) => log.warn({ error }, "deregistering the worker failed"));
      await withTimeout(SIGN_OFF_MS, () => {}, signingOff);
      const closing = holds.close();
      await taking;
      await closing;
      freezes.stop();
      beating.stop();
      await signingOff;
    },
  };
}

function workerMetrics(ctx: WorkerContext, read: { bases: () => number; share: () => number }) {
  const registers = [ctx.metrics];
  new Gauge({
    name: "basetide_worker_bases",
    help: "Bases whose lease this worker holds",
    registers,
    collect() {
      this.set(read.bases());
    },
  });
  new Gauge({
    name: "basetide_worker_share",
    help: "This worker's fair share of the bases",
    registers,
    collect() {
      this.set(read.share());
    },
  });
  const givenUp = new Counter({
    name: "basetide_worker_bases_given_up_total",
    help: "Bases that this worker released so that other workers get their fair share",
    registers,
  });
  const fingerprintBytes = new Gauge({
    name: "basetide_worker_fingerprint_bytes",
    help: "Memory of this worker's fingerprints of records",
    registers,
  });
  const evicted = new Counter({
    name: "basetide_worker_fingerprints_evicted_total",
    help: "Tables whose fingerprints were dropped to stay within `WORKER_FINGERPRINTS_MB`",
    registers,
  });
  return { givenUp, fingerprintBytes, evicted };
}

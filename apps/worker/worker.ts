/**
 * Takes sync jobs from the queue and holds their bases (`Holds`), up to its share and capacity.
 *
 * I7. A base whose worker dies is detected by the missing heartbeat and queued again by any worker's reconciler.
 */
import { Counter, Gauge } from "prom-client";
import { Notifier, repeat, withTimeout } from "../../core/async";
import { MB } from "../../core/byte-units";
import { basesBuilding } from "../../core/control/fleet";
import type { Queue } from "../../core/queue";
import { shareServers } from "../../core/replica";
import { holdLease } from "../../core/sync/lease";
import { TICK_MS } from "../../core/sync/pacing";
import { evictFingerprints } from "../../core/sync/state";
import { type Balance, balance } from "./balance";
import { watchFreezes } from "./freeze-watch";
import { Holds } from "./holds";
import { workerReport } from "./report";
import type { WorkerContext } from "./sync-context";

/** How often a heartbeat is sent, the load is balanced, and the first of all workers looks for bases without a job. */
const HEARTBEAT_MS = 3000;
/**
 * How often the other workers look for them, in case the first does not; and how often the memory of fingerprints is
 * checked. A full sync reads no more than 50,000 records of a base meanwhile.
 */
const SELDOM_MS = 10_000;
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
      const waitMs = queue.load.readyAt - performance.now();
      // What cannot be taken now is tried again after the next heartbeat.
      let restMs = waitMs > 0 ? waitMs : Infinity;
      try {
        if (waitMs <= 0 && (await takeSome())) restMs = TICK_MS;
      } catch (error) {
        log.warn({ error }, "fetching jobs failed");
      }
      await notifier.wait(restMs, stopping.signal).catch(() => {});
    }
  }

  /** Returns whether the queue may contain more than were taken. */
  async function takeSome(): Promise<boolean> {
    const most = Math.min(wanted(), MOST_OPENING - holds.opening);
    if (most <= 0) return wanted() > 0;
    const jobs = await queue.fetch(most);
    await holds.take(jobs);
    return jobs.length === most;
  }

  function wanted(): number {
    return Math.min(capacity - holds.size, Math.max(now.share - holds.size, now.overdue));
  }

  async function beat(): Promise<void> {
    await keepJobs();
    // A stopping worker leaves its share to the others before it gives its bases back.
    if (!stopping.signal.aborted) await shareOut();
  }

  let lookedAt = Number.NEGATIVE_INFINITY;
  async function keepJobs(): Promise<void> {
    const looks = now.isFirst || performance.now() - lookedAt >= SELDOM_MS;
    if (looks) lookedAt = performance.now();
    const lost = await queue.heartbeat(holds.jobs, looks);
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
    const workers = await report.send(held);
    shareServers(workers.length);
    now = balance(report.id, held, queue.load, workers);
    holds.forgetOld();
    if (now.excess > 0) {
      const bases = await holds.giveUp(now.excess, (ids) => basesBuilding(db, ids));
      if (bases > 0) log.info({ bases, share: now.share }, "bases released to other workers");
      metrics.givenUp.inc(bases);
    }
    if (wanted() > 0) notifier.notify();
  }

  async function evict(): Promise<void> {
    const mostBytes = config.workerFingerprintsMb * MB;
    const { bytes, evicted } = evictFingerprints(holds.caches.values(), mostBytes);
    metrics.fingerprintBytes.set(bytes);
    metrics.evicted.inc(evicted);
  }

  const beating = repeat(HEARTBEAT_MS, beat, (error) => log.warn({ error }, "sending a heartbeat failed"));
  const evicting = repeat(SELDOM_MS, evict, (error) => log.warn({ error }, "evicting fingerprints failed"));
  await queue.onRequest(() => void beating.now());
  await beating.now();
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
      void evicting.stop();
      const signingOff = report
        .end()
        .catch((error: unknown) => log.warn({ error }, "deregistering the worker failed"));
      await withTimeout(SIGN_OFF_MS, () => {}, signingOff);
      const closing = holds.close();
      await taking;
      await closing;
      freezes.stop();
      void beating.stop();
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

/**
 * Takes sync jobs from the queue and holds consecutive leases for each, up to its share and capacity.
 *
 * A base stays with its worker, with a warm cache, until it no longer has to be synced, moves to even the load, or
 * others wait and there is no room for all.
 *
 * I7. A base whose worker dies is detected by the missing heartbeat and queued again by any worker's reconciler.
 *
 * A base whose workers died repeatedly is held in a child process (`Isolation`), so it crashes no further worker.
 */
import { Counter, Gauge } from "prom-client";
import { Notifier, wait, withTimeout } from "../../core/async";
import { recordRun } from "../../core/control/bases";
import { basesBuilding, livingWorkers } from "../../core/control/fleet";
import { BasetideError, isBasetideError } from "../../core/errors";
import type { Queue, Suspect, SyncJob } from "../../core/queue";
import { shareServers } from "../../core/replica";
import { type BaseCaches, failedRun, holdLease, type LeaseSignals } from "../../core/sync/lease";
import { failurePauseMs } from "../../core/sync/pacing";
import { evictFingerprints } from "../../core/sync/state";
import { type Balance, balance } from "./balance";
import { watchFreezes } from "./freeze-watch";
import { Isolation } from "./isolation";
import { repeat } from "./repeat";
import { workerReport } from "./report";
import type { WorkerContext } from "./sync-context";

const HEARTBEAT_MS = 3000;
/** How often the load is balanced, and how often the first of all workers looks for bases without a job. */
const BALANCE_MS = 2000;
/** How often the memory of fingerprints is checked. A full sync reads no more than 50,000 records of a base meanwhile. */
const EVICT_MS = 10_000;
/** How often the other workers look for them, in case the first does not. */
const RECONCILE_MS = 10_000;
/** How often the queue is polled without a notification; and while it may contain more jobs than were taken. */
const POLL_MS = 1000;
const POLL_MORE_MS = 200;
/**
 * Leases that may be starting at the same time: each connects to a replica, and takes CPU of this process and of the
 * server. If these are slow, fewer bases are taken. A lease that has failed, or takes longer than OPENING_MS, no longer
 * counts: its server may be unavailable.
 */
const MOST_OPENING = 50;
const OPENING_MS = 20_000;
/** A lease that fails after this time counts as the first failure in a row. */
const LASTING_MS = 60_000;
/** A base that rests for longer than this after a failure is given back meanwhile. */
const LONGEST_REST_MS = 10_000;
/** How long the cache of a resting base is kept, in case the base comes back. */
const MEMORY_KEPT_MS = 10 * 60_000;
/** A lease that is stopped finishes its current pages; after this time, its requests are aborted. */
const DRAIN_MS = 10_000;
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

/** A base that this worker holds. */
interface Hold {
  job: SyncJob;
  /** Set while the base is suspected of crashing processes: its leases are held in a child process. */
  suspect: Suspect | undefined;
  /** performance.now() */
  takenAt: number;
  /** The epoch of the last known previous lease. */
  epochBefore: number | undefined;
  /** Aborts when the base must move to another worker, or has moved: the current page is finished. */
  stop: AbortController;
  /** Aborts the requests of a lease that has not ended some time after it was stopped. */
  kill: AbortController;
  /** Another worker has the job. */
  isLost: boolean;
  over: Promise<void>;
}

/** Time until the next lease of a base after one has ended, ms; null: none for now. */
type Next = number | null;

/**
 * Starts taking jobs.
 *
 * @param leaseBase holds a lease; a simulation has its own
 */
export async function runWorker(ctx: WorkerContext, queue: Queue, leaseBase = holdLease): Promise<Worker> {
  const { log, config, db } = ctx;
  const capacity = config.workerConcurrency;
  const stopping = new AbortController();
  const caches: BaseCaches = new Map();
  /** By base id. */
  const holds = new Map<string, Hold>();
  /** Those whose first lease had not started yet when this was looked at. */
  const opening = new Set<Hold>();
  /** When bases with a cache that are not held were last held, by id. */
  const restingSince = new Map<string, number>();
  /** Consecutive leases that failed, by base id. */
  const failures = new Map<string, number>();
  const report = workerReport(ctx);
  const freezes = watchFreezes();
  const isolation = new Isolation(ctx, queue);
  let now: Balance = { share: 0, overdue: 0, excess: 0, isFirst: false };
  const notifier = new Notifier();
  const metrics = workerMetrics(ctx, { bases: () => holds.size, share: () => now.share });

  async function takeJobs(): Promise<void> {
    while (!stopping.signal.aborted) {
      let isMore = false;
      try {
        const most = mayTake();
        const jobs = most > 0 ? await queue.fetch(most) : [];
        isMore = jobs.length === most;
        await takeAll(jobs);
      } catch (error) {
        log.warn({ error }, "fetching jobs failed");
      }
      await notifier.wait(isMore ? POLL_MORE_MS : POLL_MS, stopping.signal).catch(() => {});
    }
  }

  function mayTake(): number {
    for (const hold of opening) if (!isOpening(hold)) opening.delete(hold);
    const due = Math.max(now.share - holds.size, now.overdue);
    return Math.min(capacity - holds.size, due, MOST_OPENING - opening.size);
  }

  function isOpening(hold: Hold): boolean {
    const { baseId } = hold.job;
    const isLate = performance.now() - hold.takenAt >= OPENING_MS;
    return holds.get(baseId) === hold && !isOpen(hold) && !failures.has(baseId) && !isLate;
  }

  /** Has its first lease started? */
  function isOpen({ job, suspect, epochBefore }: Hold): boolean {
    return suspect !== undefined || caches.get(job.baseId)?.epoch !== epochBefore;
  }

  /** No lease starts before it is known whether the base is a suspect. */
  async function takeAll(jobs: SyncJob[]): Promise<void> {
    try {
      const suspects = await queue.suspects(jobs.map((job) => job.baseId));
      for (const job of jobs) take(job, suspects.get(job.baseId));
    } catch (error) {
      await Promise.all(jobs.map((job) => putBack(job, POLL_MS)));
      throw error;
    }
  }

  function take(job: SyncJob, suspect: Suspect | undefined): void {
    const known = holds.get(job.baseId);
    if (known && !known.stop.signal.aborted) {
      // The job was lost and queued again before this worker noticed: the lease continues with the new job.
      known.job = job;
    } else if (known || stopping.signal.aborted) {
      putBack(job, stopping.signal.aborted ? 0 : POLL_MS);
    } else {
      const hold: Hold = {
        job,
        suspect,
        takenAt: performance.now(),
        epochBefore: caches.get(job.baseId)?.epoch,
        stop: new AbortController(),
        kill: new AbortController(),
        isLost: false,
        over: Promise.resolve(),
      };
      holds.set(job.baseId, hold);
      opening.add(hold);
      hold.over = keep(hold);
    }
  }

  /** Holds consecutive leases, for as long as the base belongs to this worker. */
  async function keep(hold: Hold): Promise<void> {
    const { baseId } = hold.job;
    let next = await lease(hold);
    while (next === 0 && isKept(hold)) next = await lease(hold);
    holds.delete(baseId);
    // The cache is useless once another worker has held the base.
    if (hold.stop.signal.aborted) caches.delete(baseId);
    restingSince.set(baseId, performance.now());
    notifier.notify();
    if (hold.isLost) return;
    if (next !== null) await putBack(hold.job, next);
    else
      await queue
        .finish(hold.job)
        .catch((error: unknown) => log.warn({ baseId, error }, "completing a job failed"));
  }

  function isKept(hold: Hold): boolean {
    return !hold.stop.signal.aborted && !isSaturated();
  }

  /** If there are more bases than all workers hold at once, they take turns. */
  function isSaturated(): boolean {
    return now.overdue > 0 && holds.size >= capacity;
  }

  async function lease(hold: Hold): Promise<Next> {
    const { job, stop, kill } = hold;
    const { baseId } = job;
    const startedAt = performance.now();
    try {
      const signals = { stop: stop.signal, kill: kill.signal, isSaturated };
      const againMs = hold.suspect
        ? await leaseIsolated(hold, hold.suspect, signals)
        : await leaseBase(ctx, baseId, caches, signals);
      failures.delete(baseId);
      return againMs;
    } catch (error) {
      if (isBasetideError(error, "not_found")) return null;
      const hasLasted = performance.now() - startedAt >= LASTING_MS;
      const inARow = hasLasted ? 1 : (failures.get(baseId) ?? 0) + 1;
      failures.set(baseId, inARow);
      const restMs = isBasetideError(error, "sync_crashed") ? error.details.afterMs : undefined;
      const afterMs = typeof restMs === "number" ? restMs : failurePauseMs(inARow, error);
      log.error({ baseId, error, afterMs }, "lease failed");
      await recordRun(db, baseId, failedRun(error)).catch(() => {});
      if (afterMs > LONGEST_REST_MS || isSaturated()) return afterMs;
      await wait(afterMs, stop.signal).catch(() => {});
      return 0;
    }
  }

  async function leaseIsolated(hold: Hold, suspect: Suspect, signals: LeaseSignals): Promise<Next> {
    const { next, isCleared } = await isolation.lease(suspect, signals);
    if (isCleared) hold.suspect = undefined;
    return next;
  }

  async function putBack(job: SyncJob, afterMs: number): Promise<void> {
    await queue.giveBack(job, afterMs).catch((error: unknown) => {
      log.warn({ baseId: job.baseId, error }, "releasing a job failed");
    });
  }

  async function beat(): Promise<void> {
    const lost = await queue.heartbeat([...holds.values()].map((hold) => hold.job));
    const baseIds = lost.filter((job) => holds.get(job.baseId)?.job === job).map((job) => job.baseId);
    if (baseIds.length === 0) return;
    // The control plane was unreachable, or this process frozen. Bases that no other worker has taken meanwhile stay
    // here, with their caches.
    if (!freezes.stoodStill(FROZEN_MS, FROZEN_NOTED_MS)) await queue.forgive(lost);
    await takeAll(await queue.reclaim(baseIds));
    for (const hold of holds.values()) {
      if (!lost.includes(hold.job)) continue;
      log.warn({ baseId: hold.job.baseId }, "job lost to another worker");
      hold.isLost = true;
      stop(hold);
    }
  }

  async function shareOut(): Promise<void> {
    const held = [...holds.values()].filter((hold) => !hold.stop.signal.aborted);
    await report.send(held.length);
    const [load, workers] = await Promise.all([queue.load(), livingWorkers(db)]);
    shareServers(workers.length);
    now = balance(report.id, held.length, load, workers);
    forgetOld();
    if (now.excess > 0) await giveUp(held, now.excess);
    if (mayTake() > 0) notifier.notify();
  }

  function forgetOld(): void {
    for (const [baseId, since] of restingSince) {
      if (!holds.has(baseId) && performance.now() - since < MEMORY_KEPT_MS) continue;
      restingSince.delete(baseId);
      if (holds.has(baseId)) continue;
      caches.delete(baseId);
      failures.delete(baseId);
    }
  }

  /**
   * Gives up the bases that are cheapest to load again elsewhere. One that is being built stays, as it would have to
   * start over.
   */
  async function giveUp(held: Hold[], count: number): Promise<void> {
    const ids = held.filter(isOpen).map((hold) => hold.job.baseId);
    const building = new Set(await basesBuilding(db, ids));
    const known = (id: string) =>
      [...(caches.get(id)?.tables.values() ?? [])].reduce((sum, table) => sum + table.fingerprints.size, 0);
    const cheapest = ids.filter((id) => !building.has(id)).toSorted((a, b) => known(a) - known(b));
    const given = cheapest.slice(0, count).flatMap((id) => holds.get(id) ?? []);
    if (given.length > 0)
      log.info({ bases: given.length, share: now.share }, "bases released to other workers");
    metrics.givenUp.inc(given.length);
    given.forEach(stop);
  }

  function stop(hold: Hold): void {
    // A lost job is met again at every heartbeat until its lease has ended.
    if (hold.stop.signal.aborted) return;
    hold.stop.abort(new BasetideError("sync_stopped"));
    const { baseId } = hold.job;
    const late = setTimeout(() => {
      log.warn(
        { baseId, isChild: hold.suspect !== undefined },
        "a stopped lease has not ended; aborting its requests",
      );
      hold.kill.abort(new BasetideError("sync_stopped"));
    }, DRAIN_MS);
    void hold.over.finally(() => clearTimeout(late));
  }

  let reconciledAt = Number.NEGATIVE_INFINITY;
  async function reconcile(): Promise<void> {
    if (!now.isFirst && performance.now() - reconciledAt < RECONCILE_MS) return;
    reconciledAt = performance.now();
    if ((await queue.reconcile()) > 0) notifier.notify();
  }

  async function evict(): Promise<void> {
    const mostBytes = config.workerFingerprintsMb * MB;
    const { bytes, evicted } = evictFingerprints(caches.values(), mostBytes);
    metrics.fingerprintBytes.set(bytes);
    metrics.evicted.inc(evicted);
  }

  const beating = repeat(HEARTBEAT_MS, log, "sending a heartbeat failed", beat);
  const sharing = repeat(BALANCE_MS, log, "balancing load failed", shareOut);
  const reconciling = repeat(BALANCE_MS, log, "queue reconcile failed", reconcile);
  const evicting = repeat(EVICT_MS, log, "evicting fingerprints failed", evict);
  // A stopping worker leaves its share to the others before it gives its bases back.
  await queue.onRequest(() => void sharing.now().then(() => notifier.notify()));
  await sharing.now();
  const taking = takeJobs();

  return {
    get busy() {
      return holds.size;
    },
    get children() {
      return isolation.children;
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
      for (const hold of holds.values()) stop(hold);
      await taking;
      await Promise.all([...holds.values()].map((hold) => hold.over));
      isolation.close();
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

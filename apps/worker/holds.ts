/**
 * The bases that a worker holds: each has a job and consecutive leases, until it no longer has to be synced, moves to even
 * the load, or others wait and there is no room for all. Meanwhile its cache stays warm.
 *
 * A base whose workers died repeatedly is held in a child process (`Isolation`), so it crashes no further worker.
 */
import { wait } from "../../core/async";
import { recordRun } from "../../core/control/bases";
import { BasetideError, isBasetideError } from "../../core/errors";
import type { Queue, Suspect, SyncJob } from "../../core/queue";
import { type BaseCaches, failedRun, type holdLease } from "../../core/sync/lease";
import {
  failurePauseMs,
  MAX_FAILURE_PAUSE_MS,
  RECENT_MS,
  REST_MS,
  SHORTEST_MS,
} from "../../core/sync/pacing";
import { Isolation } from "./isolation";
import type { WorkerContext } from "./sync-context";

/** A lease that takes longer to start no longer counts as starting: its server may be unavailable. */
const OPENING_MS = 20_000;
/** A lease that is stopped finishes its current pages; after this time, its requests are aborted. */
const DRAIN_MS = 10_000;
/**
 * After this time, one that has not ended all the same is left alone, ms: its base does not wait for what hangs. Handing over what is
 * known of rows may take so long.
 */
const LEAVE_MS = 25_000;

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
  /** Resolves `over` although the lease has not ended. */
  leave: () => void;
}

/** Time until the next lease of a base after one has ended, ms; null: none for now. */
type Next = number | null;

interface Surroundings {
  /** Holds a lease; a simulation has its own. */
  leaseBase: typeof holdLease;
  /** Returns whether there are more bases than all workers hold at once: they take turns. */
  isSaturated: () => boolean;
  /** Called when there is room for another base. */
  onRoom: () => void;
}

export class Holds {
  readonly caches: BaseCaches = new Map();
  readonly isolation: Isolation;
  readonly #ctx: WorkerContext;
  readonly #queue: Queue;
  readonly #around: Surroundings;
  readonly #holds = new Map<string, Hold>();
  /** How many leases of each base failed in a row, and when it was last held (performance.now()), by id. */
  readonly #past = new Map<string, { failures: number; heldAt: number }>();
  /** The jobs that are being put back, or ended. */
  readonly #leaving = new Set<Promise<void>>();
  #isClosed = false;

  constructor(ctx: WorkerContext, queue: Queue, around: Surroundings) {
    this.#ctx = ctx;
    this.#queue = queue;
    this.#around = around;
    this.isolation = new Isolation(ctx, queue);
  }

  /** Number of bases held. */
  get size(): number {
    return this.#holds.size;
  }

  /** Those among them that are not about to be given back. */
  get lasting(): number {
    return this.#lasting().length;
  }

  /** Those whose first lease is starting. One that has failed no longer counts. */
  get opening(): number {
    const now = performance.now();
    return [...this.#holds.values()].filter(
      (hold) => !this.#isOpen(hold) && !this.#failures(hold.job.baseId) && now - hold.takenAt < OPENING_MS,
    ).length;
  }

  get jobs(): SyncJob[] {
    return [...this.#holds.values()].map(({ job }) => job);
  }

  /** Holds the bases of these jobs. No lease starts before it is known whether the base is a suspect. */
  async take(jobs: SyncJob[]): Promise<void> {
    try {
      const suspects = await this.#queue.suspects(jobs.map((job) => job.baseId));
      for (const job of jobs) this.#take(job, suspects.get(job.baseId));
    } catch (error) {
      await Promise.all(jobs.map((job) => this.#putBack(job, SHORTEST_MS)));
      throw error;
    }
  }

  /** Ends the leases of jobs that belong to another worker by now. */
  lose(jobs: SyncJob[]): void {
    for (const hold of this.#holds.values()) {
      if (!jobs.includes(hold.job)) continue;
      this.#ctx.log.warn({ baseId: hold.job.baseId }, "job lost to another worker");
      hold.isLost = true;
      this.#stop(hold);
    }
  }

  /**
   * Gives up the bases that are cheapest to load again elsewhere. One that is being built stays, as it would have to
   * start over.
   *
   * @param building returns those of these bases that are being built
   * @returns how many were given up
   */
  async giveUp(most: number, building: (ids: string[]) => Promise<Iterable<string>>): Promise<number> {
    const open = this.#lasting().filter((hold) => this.#isOpen(hold));
    const kept = new Set(await building(open.map(({ job }) => job.baseId)));
    const records = ({ job }: Hold) =>
      [...(this.caches.get(job.baseId)?.tables.values() ?? [])].reduce(
        (sum, table) => sum + table.fingerprints.size,
        0,
      );
    const cheapest = open
      .filter(({ job }) => !kept.has(job.baseId))
      .toSorted((a, b) => records(a) - records(b))
      .slice(0, most);
    for (const hold of cheapest) this.#stop(hold);
    return cheapest.length;
  }

  /** Forgets bases that have not been held recently: the cache of one that rests is kept in case it comes back. */
  forgetOld(): void {
    for (const [baseId, { heldAt }] of this.#past) {
      if (this.#holds.has(baseId) || performance.now() - heldAt < RECENT_MS) continue;
      this.#past.delete(baseId);
      this.caches.delete(baseId);
    }
  }

  /** Gives all bases back, and takes no more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const hold of this.#holds.values()) this.#stop(hold);
    await Promise.all([...this.#holds.values()].map((hold) => hold.over));
    // A job that was still held would count as a crash of its base.
    await Promise.all(this.#leaving);
    this.isolation.close();
  }

  #lasting(): Hold[] {
    return [...this.#holds.values()].filter((hold) => !hold.stop.signal.aborted);
  }

  /** Has its first lease started? */
  #isOpen({ job, suspect, epochBefore }: Hold): boolean {
    return suspect !== undefined || this.caches.get(job.baseId)?.epoch !== epochBefore;
  }

  #failures(baseId: string): number {
    return this.#past.get(baseId)?.failures ?? 0;
  }

  #take(job: SyncJob, suspect: Suspect | undefined): void {
    const known = this.#holds.get(job.baseId);
    if (known && !known.stop.signal.aborted) {
      // The job was lost and queued again before this worker noticed: the lease continues with the new job.
      known.job = job;
    } else if (known || this.#isClosed) {
      void this.#putBack(job, this.#isClosed ? 0 : SHORTEST_MS);
    } else {
      const left = Promise.withResolvers<void>();
      const hold: Hold = {
        job,
        suspect,
        takenAt: performance.now(),
        epochBefore: this.caches.get(job.baseId)?.epoch,
        stop: new AbortController(),
        kill: new AbortController(),
        isLost: false,
        over: left.promise,
        leave: left.resolve,
      };
      this.#holds.set(job.baseId, hold);
      hold.over = Promise.race([this.#keep(hold), left.promise]);
    }
  }

  /** Holds consecutive leases, for as long as the base belongs to this worker. */
  async #keep(hold: Hold): Promise<void> {
    const { baseId } = hold.job;
    const isKept = () => !hold.stop.signal.aborted && !this.#around.isSaturated();
    let next = await this.#lease(hold);
    while (next === 0 && isKept()) next = await this.#lease(hold);
    if (this.#holds.get(baseId) !== hold) return;
    this.#holds.delete(baseId);
    // The cache is useless once another worker has held the base.
    if (hold.stop.signal.aborted) this.caches.delete(baseId);
    this.#past.set(baseId, { failures: this.#failures(baseId), heldAt: performance.now() });
    this.#around.onRoom();
    if (hold.isLost) return;
    if (next !== null) return this.#putBack(hold.job, next);
    await this.#leaves(baseId, this.#queue.finish(hold.job));
  }

  async #lease(hold: Hold): Promise<Next> {
    const { job, stop, kill, suspect } = hold;
    const { baseId } = job;
    const { leaseBase, isSaturated } = this.#around;
    const startedAt = performance.now();
    const failed = (failures: number) => this.#past.set(baseId, { failures, heldAt: performance.now() });
    try {
      const signals = { stop: stop.signal, kill: kill.signal, isSaturated };
      let againMs: Next;
      if (suspect) {
        const { next, isCleared } = await this.isolation.lease(suspect, signals);
        againMs = next;
        if (isCleared) hold.suspect = undefined;
      } else againMs = await leaseBase(this.#ctx, baseId, this.caches, signals);
      failed(0);
      return againMs;
    } catch (error) {
      if (isBasetideError(error, "not_found")) return null;
      // One that has lasted is the first failure in a row.
      const hasLasted = performance.now() - startedAt >= MAX_FAILURE_PAUSE_MS;
      const inARow = hasLasted ? 1 : this.#failures(baseId) + 1;
      failed(inARow);
      const restMs = isBasetideError(error, "sync_crashed") ? error.details.afterMs : undefined;
      const afterMs = typeof restMs === "number" ? restMs : failurePauseMs(inARow, error);
      this.#ctx.log.error({ baseId, error, afterMs }, "lease failed");
      await recordRun(this.#ctx.db, baseId, failedRun(error)).catch(() => {});
      if (afterMs > REST_MS || isSaturated()) return afterMs;
      await wait(afterMs, stop.signal).catch(() => {});
      return 0;
    }
  }

  #putBack(job: SyncJob, afterMs: number): Promise<void> {
    return this.#leaves(job.baseId, this.#queue.giveBack(job, afterMs));
  }

  async #leaves(baseId: string, leaving: Promise<void>): Promise<void> {
    const left = leaving.catch((error: unknown) => {
      this.#ctx.log.warn({ baseId, error }, "releasing a job failed");
    });
    this.#leaving.add(left);
    await left;
    this.#leaving.delete(left);
  }

  #stop(hold: Hold): void {
    // A lost job is met again at every heartbeat until its lease has ended.
    if (hold.stop.signal.aborted) return;
    hold.stop.abort(new BasetideError("sync_stopped"));
    const late = setTimeout(() => {
      const facts = { baseId: hold.job.baseId, isChild: hold.suspect !== undefined };
      this.#ctx.log.warn(facts, "a stopped lease has not ended; aborting its requests");
      hold.kill.abort(new BasetideError("sync_stopped"));
    }, DRAIN_MS);
    const hung = setTimeout(() => void this.#leave(hold), LEAVE_MS);
    void hold.over.finally(() => {
      clearTimeout(late);
      clearTimeout(hung);
    });
  }

  /** Gives the base of a lease back that does not end. I5: what the lease may still write ends with the next one's epoch. */
  async #leave(hold: Hold): Promise<void> {
    const { baseId } = hold.job;
    this.#ctx.log.error({ baseId }, "a stopped lease does not end; its base is given back");
    this.#holds.delete(baseId);
    this.caches.delete(baseId);
    if (!hold.isLost) await this.#putBack(hold.job, 0);
    hold.leave();
    this.#around.onRoom();
  }
}

/**
 * Syncs suspects in child processes, so that a base that kills or freezes its process ends a child and not this worker.
 *
 * A child that exits, freezes or uses too much memory is recorded as a crash of the bases whose leases it held. If that
 * is a single base, it is certainly the cause.
 */
import { appPath } from "../../core/app-path";
import type { Context } from "../../core/context";
import { BasetideError } from "../../core/errors";
import type { Queue, Suspect } from "../../core/queue";
import type { LeaseSignals } from "../../core/sync/lease";
import { REST_MS, SHORTEST_MS } from "../../core/sync/pacing";
import { type Child, startChild } from "./isolated-child";
import { companyLimit, type Group, groupFor } from "./suspect-groups";

const CHILD = appPath("apps/worker/isolated.ts");

interface Cell extends Group {
  child: Child;
  /** Ends an idle child. */
  idle: ReturnType<typeof setTimeout> | undefined;
}

export class Isolation {
  readonly #ctx: Pick<Context, "config" | "log">;
  readonly #queue: Pick<Queue, "crashed" | "behaved">;
  #cells: Cell[] = [];

  constructor(ctx: Pick<Context, "config" | "log">, queue: Pick<Queue, "crashed" | "behaved">) {
    this.#ctx = ctx;
    this.#queue = queue;
  }

  /** The running children, with the bases whose leases each holds. */
  get children(): { pid: number; bases: string[] }[] {
    return this.#cells.map(({ child, limits }) => ({ pid: child.pid, bases: [...limits.keys()] }));
  }

  /**
   * Holds a lease of the suspect in a child, and updates `suspect.company`.
   *
   * @returns as `holdLease` does, and whether the base is no longer a suspect
   * @throws BasetideError `sync_crashed` with `afterMs`: the child died because of this base; errors of the lease
   */
  async lease(suspect: Suspect, signals: LeaseSignals): Promise<{ next: number | null; isCleared: boolean }> {
    const { baseId } = suspect;
    if (suspect.restMs > 0) return { next: suspect.restMs, isCleared: false };
    const limit = companyLimit(suspect.company, this.#ctx.config.workerConcurrency);
    const found = groupFor(this.#cells, limit);
    if (found === null) return { next: SHORTEST_MS, isCleared: false };
    const cell = found === "new" ? this.#open() : found;
    clearTimeout(cell.idle);
    cell.limits.set(baseId, limit);
    const { pid } = cell.child;
    this.#ctx.log.info(
      { baseId, pid, company: suspect.company },
      "syncing a suspect base in a child process",
    );
    try {
      const outcome = await cell.child.lease(baseId, signals);
      if (outcome.type === "ended")
        return { next: outcome.next, isCleared: await this.#queue.behaved(baseId).catch(() => false) };
      if (outcome.type === "failed") throw new BasetideError(outcome.code, outcome.message);
      suspect.company = outcome.company;
      if (outcome.company > 1) return { next: 0, isCleared: false };
      const details = { afterMs: outcome.restMs };
      throw new BasetideError("sync_crashed", undefined, { details });
    } finally {
      this.#leave(cell, baseId);
    }
  }

  close(): void {
    for (const cell of this.#cells) {
      clearTimeout(cell.idle);
      cell.child.end();
    }
    this.#cells = [];
  }

  #open(): Cell {
    const child = startChild(this.#ctx, CHILD, {
      exited: (it) => this.#remove(it),
      crashed: (baseIds) => this.#queue.crashed(baseIds),
    });
    const cell: Cell = { child, limits: new Map(), idle: undefined };
    this.#cells.push(cell);
    return cell;
  }

  #leave(cell: Cell, baseId: string): void {
    cell.limits.delete(baseId);
    if (cell.limits.size > 0 || !this.#cells.includes(cell)) return;
    cell.idle = setTimeout(() => {
      this.#remove(cell.child);
      cell.child.end();
    }, REST_MS);
  }

  #remove(child: Child): void {
    this.#cells = this.#cells.filter((cell) => cell.child !== child);
  }
}

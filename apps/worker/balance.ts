/**
 * Computes how many bases this worker may take, and how many it must give up, so that all workers hold their fair
 * share.
 *
 * There is no coordinator: every worker reports what it holds, reads what the others hold, and computes the same
 * shares. A base stays where it is unless moving it evens the load: a worker gives up a base only if it is above its
 * share, and another worker is below its own. A base that no worker has taken for some seconds may be taken by any
 * worker with room, so a share computed from outdated reports delays a base, but never leaves it without a worker.
 */
import { fairShares, type Holder, type QueueLoad } from "../../core/queue";

/**
 * The part of the excess that is given up at a time: moved bases need a full comparison each, so not all move at once.
 */
const GIVEN_UP_AT_ONCE = 1 / 3;

export interface Balance {
  /** Maximum number of bases to hold, unless others are overdue. */
  share: number;
  /** Jobs that have waited too long: any worker with room takes them. */
  overdue: number;
  /** Number of bases to give up now. */
  excess: number;
  /** The first of all workers does the work that only one has to do. */
  isFirst: boolean;
}

export interface BalancedWorker extends Holder {
  isSettled: boolean;
}

/** @param self the worker's id, which is among `workers` if it is to have a share */
export function balance(
  self: string,
  held: number,
  load: Pick<QueueLoad, "jobs" | "overdue">,
  workers: BalancedWorker[],
): Balance {
  const known = workers.map((worker) => (worker.id === self ? { ...worker, bases: held } : worker));
  const settled = known.filter((worker) => worker.isSettled || worker.id === self);
  const lasting = fairShares(load.jobs, settled);
  const room = settled
    .filter((worker) => worker.id !== self)
    .reduce((sum, worker) => sum + Math.max(0, lasting.get(worker.id)! - worker.bases), 0);
  const tooMany = Math.min(held - (lasting.get(self) ?? held), room);
  return {
    share: fairShares(load.jobs, known).get(self) ?? 0,
    overdue: load.overdue,
    excess: tooMany > 0 ? Math.ceil(tooMany * GIVEN_UP_AT_ONCE) : 0,
    isFirst: workers.every((worker) => self <= worker.id),
  };
}

/**
 * How many bases this worker may take, and how many it is to give up, so that all workers hold their fair share.
 *
 * Nobody hands anything out: every worker says what it holds, sees what the others hold, and works out the same shares.
 * A base stays where it is unless that evens the load: one is given up only by a worker above its share, and only while
 * another one is below its own. What nobody takes for some seconds any worker with room takes, so a share that was
 * worked out from what is no longer true delays a base, and never strands it.
 */
import { fairShares, type Holder, type QueueLoad } from "../../core/queue";

/** The part of what is too much that is given up at a time: moved bases are compared row by row once, not all at once. */
const GIVEN_UP_AT_ONCE = 1 / 3;

export interface Balance {
  /** Bases that it is to hold at most, unless others are overdue. */
  share: number;
  /** Jobs that wait for too long already: they are for whoever has room. */
  overdue: number;
  /** Bases to be given up now. */
  excess: number;
  /** The first of all workers does for all what one can do. */
  isFirst: boolean;
}

export interface BalancedWorker extends Holder {
  isSettled: boolean;
}

/** @param self the worker's id, which is among `workers` when it is to have a share */
export function balance(self: string, held: number, load: QueueLoad, workers: BalancedWorker[]): Balance {
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

/** Limits how many works of one owner run at once; those beyond the limit wait in order. */

interface Queue {
  running: number;
  waiting: (() => void)[];
}

interface Patience {
  patienceMs: number;
  tooLate: () => Error;
}

export class Turns<Owner = unknown> {
  readonly #most: (owner: Owner) => number;
  readonly #longestMs: number | undefined;
  readonly #byOwner = new Map<Owner, Queue>();

  /**
   * @param most works of one owner that run at once. A new limit takes effect when the next one begins or ends
   * @param longestMs a work that takes longer passes its turn on, and continues without one; absent: none does
   */
  constructor(most: number | ((owner: Owner) => number), longestMs?: number) {
    this.#most = typeof most === "number" ? () => most : most;
    this.#longestMs = longestMs;
  }

  /**
   * Runs `work` when its owner has a free turn.
   *
   * @param owner a name, or an object
   * @param limits absent: it waits for as long as it takes
   * @throws the error of `work`; the result of `tooLate` if there is no turn within `patienceMs`
   */
  async run<T>(owner: Owner, work: () => Promise<T>, limits?: Patience): Promise<T> {
    const queue = this.#byOwner.get(owner) ?? { running: 0, waiting: [] };
    this.#byOwner.set(owner, queue);
    this.#admit(owner, queue);
    if (queue.running < this.#most(owner)) queue.running++;
    else await waitIn(queue, limits);
    let hasTurn = true;
    const passOn = () => {
      if (!hasTurn) return;
      hasTurn = false;
      queue.running--;
      this.#admit(owner, queue);
      if (queue.running === 0) this.#byOwner.delete(owner);
    };
    const timer = this.#longestMs === undefined ? undefined : setTimeout(passOn, this.#longestMs);
    try {
      return await work();
    } finally {
      clearTimeout(timer);
      passOn();
    }
  }

  /** Gives the free turns to those that wait. */
  #admit(owner: Owner, queue: Queue): void {
    while (queue.waiting.length > 0 && queue.running < this.#most(owner)) {
      queue.running++;
      queue.waiting.shift()!();
    }
  }
}

function waitIn(queue: Queue, limits: Patience | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const begin = () => {
      clearTimeout(timer);
      resolve();
    };
    const leave = ({ tooLate }: Patience) => {
      queue.waiting.splice(queue.waiting.indexOf(begin), 1);
      reject(tooLate());
    };
    const timer = limits && setTimeout(leave, limits.patienceMs, limits);
    queue.waiting.push(begin);
  });
}

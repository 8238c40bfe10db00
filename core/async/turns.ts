/** Limits how many works of one owner run at once; those beyond the limit wait in order. */

interface Queue {
  running: number;
  waiting: (() => void)[];
}

export class Turns {
  readonly #most: number;
  readonly #byOwner = new Map<string, Queue>();

  /** @param most works of one owner that run at once */
  constructor(most: number) {
    this.#most = most;
  }

  /**
   * Runs `work` when its owner has a free turn.
   *
   * @throws the error of `work`; the result of `tooLate` if there is no turn within `patienceMs`
   */
  async run<T>(
    owner: string,
    work: () => Promise<T>,
    { patienceMs, tooLate }: { patienceMs: number; tooLate: () => Error },
  ): Promise<T> {
    const queue = this.#byOwner.get(owner) ?? { running: 0, waiting: [] };
    this.#byOwner.set(owner, queue);
    if (queue.running < this.#most) queue.running++;
    else await waitIn(queue, patienceMs, tooLate);
    try {
      return await work();
    } finally {
      const next = queue.waiting.shift();
      // The turn goes to the next one, which counts as running already.
      if (next) next();
      else if (--queue.running === 0) this.#byOwner.delete(owner);
    }
  }
}

function waitIn(queue: Queue, patienceMs: number, tooLate: () => Error): Promise<void> {
  return new Promise((resolve, reject) => {
    const begin = () => {
      clearTimeout(timer);
      resolve();
    };
    const timer = setTimeout(() => {
      queue.waiting.splice(queue.waiting.indexOf(begin), 1);
      reject(tooLate());
    }, patienceMs);
    queue.waiting.push(begin);
  });
}

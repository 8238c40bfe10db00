/**
 * Runs callbacks at a time of the sandbox's clock, which tests advance.
 */

/** The longest wait of one timer, ms: longer ones overflow. */
const MAX_TIMER_MS = 3_600_000;

interface Task {
  dueMs: number;
  run: () => void;
}

export class Schedule {
  readonly #now: () => number;
  readonly #tasks = new Set<Task>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** @param now the sandbox's clock, ms */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Runs `run` once at `dueMs`, never before this call has returned. */
  at(dueMs: number, run: () => void): void {
    this.#tasks.add({ dueMs, run });
    this.#arm();
  }

  /** Call it after the clock was changed. */
  clockMoved(): void {
    this.#arm();
  }

  clear(): void {
    this.#tasks.clear();
    clearTimeout(this.#timer);
  }

  #arm(): void {
    clearTimeout(this.#timer);
    if (this.#tasks.size === 0) return;
    const dueMs = Math.min(...[...this.#tasks].map((task) => task.dueMs));
    const waitMs = Math.min(Math.max(0, dueMs - this.#now()), MAX_TIMER_MS);
    this.#timer = setTimeout(() => this.#runDue(), waitMs);
    this.#timer.unref();
  }

  #runDue(): void {
    const nowMs = this.#now();
    for (const task of [...this.#tasks].sort((a, b) => a.dueMs - b.dueMs)) {
      if (task.dueMs > nowMs) break;
      this.#tasks.delete(task);
      task.run();
    }
    this.#arm();
  }
}

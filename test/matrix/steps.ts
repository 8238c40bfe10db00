/** Runs named steps in order. Records the duration of each, and the error of the first that failed. */

export interface Step {
  name: string;
  ms: number;
  /** Absent if it succeeded. */
  error?: string;
}

export class Steps {
  readonly done: Step[] = [];

  get failed(): Step | undefined {
    return this.done.find(({ error }) => error !== undefined);
  }

  /** Adds a step that succeeded. */
  add(name: string, ms: number): void {
    this.done.push({ name, ms: Math.round(ms) });
  }

  /** Adds to the message of the step that failed. */
  explain(words: string): void {
    const { failed } = this;
    if (failed && words !== "" && !failed.error!.includes(words)) failed.error += `; ${words}`;
  }

  /** Runs `work`, unless an earlier step has failed; never throws. */
  async run(name: string, work: () => Promise<unknown>): Promise<void> {
    if (this.failed) return;
    const from = performance.now();
    const error = await work().then(
      () => undefined,
      (thrown: unknown) => (thrown instanceof Error ? thrown.message : String(thrown)),
    );
    this.done.push({
      name,
      ms: Math.round(performance.now() - from),
      ...(error === undefined ? {} : { error }),
    });
  }
}

/** @throws Error with the message `what` */
export function check(isTrue: boolean, what: string): void {
  if (!isTrue) throw new Error(what);
}

/** Named steps, one after the other: what each took, and what the first that failed said. */

export interface Step {
  name: string;
  ms: number;
  /** Absent: it went well. */
  error?: string;
}

export class Steps {
  readonly done: Step[] = [];

  get failed(): Step | undefined {
    return this.done.find(({ error }) => error !== undefined);
  }

  /** A step that went well. */
  add(name: string, ms: number): void {
    this.done.push({ name, ms: Math.round(ms) });
  }

  /** Adds to what the step that failed said. */
  explain(words: string): void {
    const { failed } = this;
    if (failed && words !== "" && !failed.error!.includes(words)) failed.error += `; ${words}`;
  }

  /** Runs `work`, unless a step before it has failed; never throws. */
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

/** @throws Error that says `what` */
export function check(isTrue: boolean, what: string): void {
  if (!isTrue) throw new Error(what);
}

/** Runs tasks concurrently as a group: the first that fails or finishes ends all. */
import { asBasetideError, BasetideError } from "../errors";
import { type LinkedAbort, linkedAbort } from "./abort";

export class TaskGroup implements Disposable {
  readonly #abort: LinkedAbort;
  readonly #outer: AbortSignal;
  #failure: BasetideError | undefined;

  /** @param outer also ends the group */
  constructor(outer: AbortSignal) {
    this.#outer = outer;
    this.#abort = linkedAbort(outer);
  }

  /** Aborts, with `sync_stopped`, when the group has ended. */
  get stop(): AbortSignal {
    return this.#abort.signal;
  }

  /** Ends all tasks: the lease is over, or an error that concerns the whole base occurred. */
  end(caught?: unknown): void {
    const error = caught === undefined ? undefined : asBasetideError(caught);
    // Errors of tasks that were stopped because of another's failure are ignored; a lost lease is always reported.
    if (!this.stop.aborted || error?.code === "lease_lost") this.#failure = error;
    this.#abort.abort();
  }

  /**
   * Waits until all tasks have ended.
   *
   * @throws BasetideError that ended them, `sync_stopped` if `outer` ended them
   */
  async run(works: Promise<void>[]): Promise<void> {
    await Promise.all(works.map((work) => work.catch((error) => this.end(error))));
    if (this.#failure) throw this.#failure;
    if (this.#outer.aborted) throw new BasetideError("sync_stopped");
  }

  [Symbol.dispose](): void {
    this.#abort[Symbol.dispose]();
  }
}
